"""Converts a published checkpoint into a small ONNX file, without torch or TensorFlow.

Of a BERT encoder it reads the shape (`config.json`) and the weights (`model.safetensors`); `use_graph.py` and
`e5_graph.py` have the other forms.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hummock.models.description import DATA_FILE, GRAPH_FILE, Conversion, Form, ModelDescription
from hummock.models.errors import CheckpointUnsupported, ConverterMissing

if TYPE_CHECKING:
    import onnx

LAYER_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_LARGE_BYTES = 1 << 20

Float32Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class BertShape:
    """The sizes of a BERT encoder."""

    layers: int
    heads: int
    hidden: int
    layer_norm_epsilon: float
    first_position: int = 0
    """Row of the position table for the first token: 0 in BERT, 2 in RoBERTa and XLM-R."""

    def __post_init__(self) -> None:
        if min(self.layers, self.heads, self.hidden) < 1 or self.hidden % self.heads:
            raise CheckpointUnsupported(
                f"{self.layers} layers, {self.heads} heads and {self.hidden} dims are no BERT encoder: "
                "each is at least 1 and heads divide dims"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BertCheckpoint:
    """Shape and float32 weights, named as in the original checkpoint without its `bert.` prefix.

    Matrices of linear layers are (out, in), as torch stores them.
    """

    shape: BertShape
    weights: Mapping[str, Float32Array]

    def layer(self, index: int, name: str) -> Float32Array:
        """The weight `name` of encoder layer `index`."""
        return self.weights[f"encoder.layer.{index}.{name}"]


def require_converter() -> None:
    """Raise ConverterMissing unless the packages of the extra `convert` are installed."""
    for package in ("onnx", "safetensors"):
        if importlib.util.find_spec(package) is None:
            raise ConverterMissing(package)


def convert(model: ModelDescription, conversion: Conversion, directory: Path) -> None:
    """Write the checkpoint in this directory as an ONNX graph with int8 weights.

    By the recipe that `Conversion.recipe_version` counts. Raises: CheckpointUnsupported: It is no BERT that the graph
    builder knows. ConverterMissing.
    """
    require_converter()
    weights = directory / conversion.weights.name
    match conversion.form:
        case Form.BERT:
            if conversion.config is None:
                raise CheckpointUnsupported(f"{model.name} has no configuration")
            config = directory / conversion.config.name
            from hummock.models.bert_graph import build_graph

            write_int8(build_graph(read_checkpoint(config, weights), model.pooling), directory / GRAPH_FILE)
        case Form.USE:
            from hummock.models.use_graph import convert_use

            write_int8(
                convert_use(weights), directory / GRAPH_FILE, ["MatMul"]
            )  # Its table of pieces is in bytes already.
            _put_apart(directory / GRAPH_FILE, directory / DATA_FILE)
        case Form.E5:
            from hummock.models.bert_graph import build_graph
            from hummock.models.e5_graph import E5File, add_word_table, e5_checkpoint

            source = E5File(weights)
            # Without its table, for which the quantiser would take 2.5 GB.
            graph = build_graph(e5_checkpoint(source), model.pooling)
            write_int8(graph, directory / GRAPH_FILE, ["Attention", "MatMul"])
            add_word_table(directory / GRAPH_FILE, source)


def _put_apart(graph: Path, data: Path) -> None:
    """Move large weights of a graph into a file that onnxruntime maps: only a table's rows in use are loaded."""
    import onnx

    loaded = onnx.load(graph)
    onnx.save_model(loaded, str(graph), save_as_external_data=True, location=data.name, size_threshold=_LARGE_BYTES)


def read_checkpoint(config_path: Path, weights_path: Path) -> BertCheckpoint:
    """The encoder that the two files describe; a pooler head and position ids are left out.

    Raises:
        CheckpointUnsupported: It is not a BERT with absolute positions and exact GELU, or a weight is missing.
        ConverterMissing: The package `safetensors` is not installed.
    """
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise ConverterMissing("safetensors") from error
    shape = _shape(json.loads(config_path.read_text(encoding="utf-8")))
    loaded = {name.removeprefix("bert."): tensor for name, tensor in load_file(weights_path).items()}
    missing = [name for name in _needed(shape) if name not in loaded]
    if missing:
        raise CheckpointUnsupported(f"{weights_path.name} holds no weight {missing[0]}")
    weights = {name: np.ascontiguousarray(loaded[name], dtype=np.float32) for name in _needed(shape)}
    return BertCheckpoint(shape=shape, weights=weights)


def write_int8(graph: onnx.ModelProto, target: Path, operators: Sequence[str] | None = None) -> None:
    """Write a graph with weights in int8 per channel, those of some operators or of all that can be.

    Activations are quantised as they come. Per tensor would be the library's default; it loses five hundredths of
    cosine.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    # Shape inference and fusions of its own are neither needed nor wanted; without this it logs that they are missing.
    add_pre_process_metadata(graph)
    quantize_dynamic(
        graph,
        str(target),
        op_types_to_quantize=operators,
        per_channel=True,
        weight_type=QuantType.QInt8,
        # The types of fused operators' outputs cannot be inferred, and it gives up without this.
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


def _shape(config: Mapping[str, object]) -> BertShape:
    required = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for key, wanted in required.items():
        found = config.get(key, wanted)
        if found != wanted:
            raise CheckpointUnsupported(f"config.json has {key} {found!r}; only {wanted!r} can be converted")
    return BertShape(
        layers=_integer(config, "num_hidden_layers"),
        heads=_integer(config, "num_attention_heads"),
        hidden=_integer(config, "hidden_size"),
        layer_norm_epsilon=float(str(config.get("layer_norm_eps", 1e-12))),
    )


def _integer(config: Mapping[str, object], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int):
        raise CheckpointUnsupported(f"config.json has no whole number {key}")
    return value


def _needed(shape: BertShape) -> list[str]:
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    names = [f"embeddings.{table}.weight" for table in tables]
    parts = ["embeddings.LayerNorm"]
    for index in range(shape.layers):
        parts += [f"encoder.layer.{index}.{part}" for part in LAYER_PARTS]
    return names + [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
