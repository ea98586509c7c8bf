"""A model of any dim that costs nothing: for benches whose memories and questions bring their own vectors.

The service needs a model to start. This one is a table of random vectors, one a letter, so that neither its start nor
its memory hides the service's own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from hummock.core.embedding import Calibration
from hummock.models import ModelDescription
from hummock.models.description import (
    GRAPH_FILE,
    TOKENIZER_FILE,
    ModelFile,
    Pooling,
    read_description,
    write_description,
)
from hummock.models.files import sha256_of

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_UNKNOWN = "[UNK]"
_SEED = 7420
_OPSET, _IR_VERSION = 17, 10


def build_stub(models_dir: Path, dim: int) -> ModelDescription:
    """The stub in `<models_dir>/stub-<dim>`, built unless it is there; the same on every run."""
    name = f"stub-{dim}"
    directory = models_dir / name
    there = read_description(models_dir, name)
    if isinstance(there, ModelDescription):
        return there
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = {token: number for number, token in enumerate((_UNKNOWN, *_LETTERS))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = Split(Regex("."), "isolated")
    tokenizer.save(str(directory / TOKENIZER_FILE))
    _write_graph(directory / GRAPH_FILE, len(vocabulary), dim)
    files = (GRAPH_FILE, TOKENIZER_FILE)
    model = ModelDescription(
        name=name,
        licence="Apache-2.0",
        files=tuple(ModelFile(name=file, sha256=sha256_of(directory / file)) for file in files),
        sources=(),
        pooling=Pooling.MEAN,
        dim=dim,
        max_tokens=128,
        query_prefix="",
        scripts=frozenset({"han", "latin"}),
        calibration=Calibration(unrelated_latin=0.0, unrelated_han=0.0, near_twin_bar=0.9),
    )
    write_description(model, directory)
    return model


def _write_graph(path: Path, vocabulary_size: int, dim: int) -> None:
    import onnx

    table = np.random.default_rng(_SEED).standard_normal((vocabulary_size, dim)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "stub",
        [onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["batch", "tokens"])],
        [onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, ["batch", "tokens", dim])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    onnx.save_model(model, str(path))
