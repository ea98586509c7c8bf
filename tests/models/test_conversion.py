from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from hummock.models.bert_graph import build_graph
from hummock.models.convert import BertCheckpoint, BertShape, Float32Array, read_checkpoint, write_int8
from hummock.models.description import Pooling
from hummock.models.errors import CheckpointUnsupported
from tests.models.numpy_bert import last_hidden_state, mean_pooled

VOCABULARY = 97


@pytest.fixture(scope="module")
def checkpoint(bert_files: Path) -> BertCheckpoint:
    return read_checkpoint(bert_files / "config.json", bert_files / "model.safetensors")


def texts() -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    random = np.random.default_rng(12)
    return [random.integers(0, VOCABULARY, size=length) for length in (1, 2, 3, 7, 20, 40)]


def run(graph: Path, ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[Float32Array, Float32Array]:
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    row = ids[np.newaxis]
    feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
    hidden, sentence = session.run(["last_hidden_state", "sentence_embedding"], feed)
    return hidden[0], sentence[0]


def write_float32(checkpoint: BertCheckpoint, target: Path, pooling: Pooling) -> None:
    onnx.save_model(build_graph(checkpoint, pooling), str(target))


def test_the_float_graph_equals_its_numpy_twin(checkpoint: BertCheckpoint, tmp_path: Path) -> None:
    write_float32(checkpoint, tmp_path / "model.onnx", Pooling.MEAN)
    for ids in texts():
        hidden, sentence = run(tmp_path / "model.onnx", ids)
        twin = last_hidden_state(checkpoint, ids)
        np.testing.assert_allclose(hidden, twin, rtol=0, atol=1e-5)
        np.testing.assert_allclose(sentence, mean_pooled(twin), rtol=0, atol=1e-5)


def test_cls_pooling_gives_the_first_token(checkpoint: BertCheckpoint, tmp_path: Path) -> None:
    write_float32(checkpoint, tmp_path / "model.onnx", Pooling.CLS)
    for ids in texts():
        hidden, sentence = run(tmp_path / "model.onnx", ids)
        np.testing.assert_allclose(sentence, hidden[0] / np.linalg.norm(hidden[0]), rtol=0, atol=1e-6)


@pytest.mark.long
def test_quantised_vectors_stay_within_a_hundredth_of_cosine(checkpoint: BertCheckpoint, tmp_path: Path) -> None:
    write_int8(build_graph(checkpoint, Pooling.MEAN), tmp_path / "model.onnx")
    twins = [mean_pooled(last_hidden_state(checkpoint, ids)) for ids in texts()]
    cosines = [run(tmp_path / "model.onnx", ids)[1] @ twin for ids, twin in zip(texts(), twins, strict=True)]
    assert np.mean(cosines) >= 0.99


def test_padding_does_not_reach_the_float_vector(checkpoint: BertCheckpoint, tmp_path: Path) -> None:
    write_float32(checkpoint, tmp_path / "model.onnx", Pooling.MEAN)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    ids = np.array([[5, 6, 7, 0, 0]])
    feed = {"input_ids": ids, "attention_mask": np.array([[1, 1, 1, 0, 0]]), "token_type_ids": np.zeros_like(ids)}
    padded = session.run(["sentence_embedding"], feed)[0][0]
    np.testing.assert_allclose(padded, run(tmp_path / "model.onnx", ids[0, :3])[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("model_type", "roberta", "model_type 'roberta'"),
        ("hidden_act", "gelu_new", "hidden_act 'gelu_new'"),
        ("num_hidden_layers", None, "num_hidden_layers"),
        ("num_attention_heads", 5, "heads divide dims"),
        ("num_hidden_layers", 4, "holds no weight encoder.layer.3"),
    ],
)
def test_another_architecture_is_named(
    bert_files: Path, tmp_path: Path, key: str, value: object, complaint: str
) -> None:
    config = json.loads((bert_files / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(CheckpointUnsupported, match=complaint):
        read_checkpoint(tmp_path / "config.json", bert_files / "model.safetensors")


def test_a_shape_without_layers_is_refused() -> None:
    with pytest.raises(CheckpointUnsupported):
        BertShape(layers=0, heads=1, hidden=8, layer_norm_epsilon=1e-12)
