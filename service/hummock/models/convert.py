"""Turns a published BERT checkpoint into a small ONNX file, without torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from hummock.models.checkpoint import BertCheckpoint, read_checkpoint
from hummock.models.description import Pooling
from hummock.models.errors import ConverterMissing

if TYPE_CHECKING:
    import onnx


RECIPE_VERSION = 1
"""Moves when the same checkpoint would give other vectors."""


def require_converter() -> None:
    """Raise ConverterMissing unless the packages of the extra `convert` are there."""
    for package in ("onnx", "safetensors"):
        if importlib.util.find_spec(package) is None:
            raise ConverterMissing(package)


def convert(config: Path, weights: Path, target: Path, pooling: Pooling) -> None:
    """Write the checkpoint as an ONNX graph with int8 weights (recipe version 1).

    Raises:
        CheckpointUnsupported: It is no BERT that the graph builder knows.
        ConverterMissing: The extra `convert` is not installed.
    """
    require_converter()
    write_int8(read_checkpoint(config, weights), target, pooling)


def write_float32(checkpoint: BertCheckpoint, target: Path, pooling: Pooling) -> None:
    """Write the graph as it is, unquantised."""
    import onnx

    from hummock.models.bert_graph import build_graph

    onnx.save_model(build_graph(checkpoint, pooling), str(target))


def write_int8(checkpoint: BertCheckpoint, target: Path, pooling: Pooling) -> None:
    """Write the graph with weights in int8 per channel and activations quantised as they come.

    Per tensor would be the library's default; it loses five hundredths of cosine.
    """
    from hummock.models.bert_graph import build_graph

    _write_int8(build_graph(checkpoint, pooling), target)


def write_cross_encoder_int8(checkpoint: BertCheckpoint, target: Path) -> None:
    """Write a cross-encoder's graph in the same way."""
    from hummock.models.bert_graph import build_cross_encoder

    _write_int8(build_cross_encoder(checkpoint), target)


def _write_int8(graph: onnx.ModelProto, target: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        graph,
        str(target),
        per_channel=True,
        weight_type=QuantType.QInt8,
        # The types of fused operators' outputs cannot be inferred, and it gives up without this.
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )
