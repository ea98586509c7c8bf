"""The fused graph against the published one: its output, when it serves, and the fallback if it cannot be made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hummock.models import ModelDescription, load, open_embedder, pull, served
from hummock.models.description import GRAPH_FILE, Pooling
from hummock.models.encoder import Encoder, open_session
from hummock.models.files import RECORD_FILE, read_record, sha256_of
from hummock.models.fused_graph import GraphUnknown, fused
from hummock.models.fusion import AGREEMENT, FUSED_FILE
from tests.models.embedding import embedded

TEXTS = ["", "先本后息", "The repayment method", "def parse_date(text): ...", "harbour 港口 " * 30]
HEADS, HEAD, LENGTH = 2, 4, 6


@pytest.fixture
def models_dir(tiny: ModelDescription, tiny_files: Path, tmp_path: Path) -> Path:
    """The toy model as an earlier version left it."""
    directory = Path(shutil.copytree(tiny_files, tmp_path / tiny.name))
    (directory / FUSED_FILE).unlink()
    (directory / RECORD_FILE).unlink()
    return tmp_path


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def test_a_built_model_has_a_fused_graph_which_serves_and_agrees(tiny: ModelDescription, tiny_files: Path) -> None:
    found = served(tiny, tiny_files)
    assert (found.path, found.lack) == (tiny_files / FUSED_FILE, "")
    operators = [node.op_type for node in onnx.load(found.path).graph.node]
    assert operators.count("MultiHeadAttention") == 2
    assert not {"QAttention", "SkipLayerNormalization", "BiasGelu"} & set(operators)
    plain, other = Encoder(tiny, tiny_files), Encoder(tiny, tiny_files, tiny_files / FUSED_FILE)
    for text in TEXTS:
        assert cosine(plain.encode(text).pooled, other.encode(text).pooled) >= AGREEMENT


def test_a_fused_graph_takes_no_mask_so_that_nobody_can_feed_it_padded_texts(tiny_files: Path) -> None:
    graph = onnx.load(tiny_files / FUSED_FILE).graph
    assert [each.name for each in graph.input] == ["input_ids", "token_type_ids"]
    assert [each.name for each in graph.output] == ["last_hidden_state"]


@pytest.mark.long
def test_the_space_is_that_of_the_published_graph(tiny: ModelDescription, tiny_files: Path, models_dir: Path) -> None:
    """Stores of vectors that the published graph made are read and added to."""
    slow, fast = load(tiny, models_dir / tiny.name, slots=1), load(tiny, tiny_files, slots=1)
    assert slow.space == fast.space
    for left, right in zip(embedded(slow, TEXTS), embedded(fast, TEXTS), strict=True):
        assert left.vector @ right.vector >= AGREEMENT
    slow.close()
    fast.close()


def test_a_pull_adds_it_to_a_model_that_is_there_already_once(tiny: ModelDescription, models_dir: Path) -> None:
    directory, said = models_dir / tiny.name, list[str]()
    published = sha256_of(directory / GRAPH_FILE)
    assert served(tiny, directory).lack == (
        "tiny has no fused graph and runs slower than it could; `hummock models pull tiny` mends that"
    )
    for _ in range(2):
        pull(tiny, models_dir, said.append)
        assert served(tiny, directory).path == directory / FUSED_FILE
    times = (directory / FUSED_FILE).stat().st_mtime_ns
    pull(tiny, models_dir, said.append)
    assert (directory / FUSED_FILE).stat().st_mtime_ns == times
    assert sha256_of(directory / GRAPH_FILE) == published
    assert said == [f"tiny: already in {directory}"] * 3
    assert {path.name for path in models_dir.iterdir()} == {".lock", tiny.name}


def test_a_start_without_it_says_so_once_and_serves(tiny: ModelDescription, models_dir: Path) -> None:
    said: list[str] = []
    embedder = open_embedder(tiny, models_dir, slots=1, say=said.append)
    assert embedder.embed_query("先本后息").vector.shape == (64,)
    embedder.close()
    assert [line.partition(" has no fused graph")[0] for line in said] == ["tiny"]


@pytest.mark.long
@pytest.mark.parametrize(
    "spoil",
    [
        lambda directory: (directory / FUSED_FILE).write_bytes(b"other bytes"),
        lambda directory: (directory / FUSED_FILE).unlink(),
        lambda directory: (directory / RECORD_FILE).unlink(),
        lambda directory: (directory / RECORD_FILE).write_text("[]"),
        lambda directory: rewrite(directory, version=0),
        lambda directory: rewrite(directory, of_sha256="0" * 64),
    ],
    ids=["altered", "lost", "no record", "another record", "an earlier version", "another graph's"],
)
def test_what_no_record_vouches_for_is_not_opened(tiny: ModelDescription, models_dir: Path, spoil: object) -> None:
    directory = models_dir / tiny.name
    pull(tiny, models_dir)
    assert callable(spoil)
    spoil(directory)
    found = served(tiny, directory)
    assert found.path == directory / GRAPH_FILE
    assert "`hummock models pull tiny` mends that" in found.lack
    pull(tiny, models_dir)
    assert served(tiny, directory).lack == ""


def rewrite(directory: Path, **changes: object) -> None:
    record = read_record(directory)
    noted = record["fused"]
    assert isinstance(noted, dict)
    (directory / RECORD_FILE).write_text(json.dumps({**record, "fused": {**noted, **changes}}))


def test_a_graph_of_another_form_serves_as_it_is_and_is_tried_once(tiny: ModelDescription, models_dir: Path) -> None:
    said: list[str] = []
    own_pooling = replace(tiny, pooling=Pooling.GRAPH)
    for _ in range(2):
        pull(own_pooling, models_dir, said.append)
    assert sum("serves as it was published, for it needs the mask" in line for line in said) == 1
    found = served(own_pooling, models_dir / tiny.name)
    assert (found.path.name, found.lack) == (GRAPH_FILE, "")


def refused(path: Path, directory: Path) -> None:
    raise PermissionError(13, "Permission denied", str(directory))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("importlib.util.find_spec", lambda name: None, "pip install 'hummock[convert]'"),
        ("hummock.models.fused_graph.fused", lambda model, output: 1 / 0, "published, for division by zero"),
        ("hummock.models.fusion.put", refused, "Permission denied"),
        ("hummock.models.fusion.AGREEMENT", 1.1, "vectors have a cosine of"),
    ],
    ids=["no converter", "the rewrite breaks", "a directory that cannot be written", "no agreement"],
)
def test_a_rewrite_that_cannot_be_had_or_kept_leaves_the_published_graph_and_says_why(
    tiny: ModelDescription, models_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, expected: str
) -> None:
    said: list[str] = []
    monkeypatch.setattr(name, value)
    pull(tiny, models_dir, said.append)
    assert expected in said[-1]
    assert not (models_dir / tiny.name / FUSED_FILE).exists()
    assert served(tiny, models_dir / tiny.name).path.name == GRAPH_FILE


def exported(
    heads: int = HEADS,
    keys: Sequence[int] = (0, 2, 3, 1),
    divisor: Sequence[float] = (2.0,),
    mask: str = "attention_mask",
) -> onnx.ModelProto:
    """Attention as transformers export it, spelt out; the parameters are what another form has otherwise."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["state"]),
        helper.make_node("Cast", [mask], ["mask/float"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "mask/float"], ["mask/absent"]),
        helper.make_node("Mul", ["mask/absent", "lowest"], ["mask/rows"]),
        helper.make_node("Unsqueeze", ["mask/rows", "axes"], ["mask"]),
    ]
    for name, order in (("q", [0, 2, 1, 3]), ("k", keys), ("v", [0, 2, 1, 3])):
        nodes += [
            helper.make_node("MatMul", ["state", f"{name}/weight"], [name]),
            helper.make_node("Concat", ["batch", "length", f"{name}/heads", "head"], [f"{name}/sizes"], axis=0),
            helper.make_node("Reshape", [name, f"{name}/sizes"], [f"{name}/cut"]),
            helper.make_node("Transpose", [f"{name}/cut"], [f"{name}/turned"], perm=order),
        ]
    nodes += [
        helper.make_node("MatMul", ["q/turned", "k/turned"], ["products"]),
        helper.make_node("Div", ["products", "divisor"], ["scaled"]),
        helper.make_node("Add", ["scaled", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "v/turned"], ["weighted"]),
        helper.make_node("Transpose", ["weighted"], ["back"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["back", "whole"], ["last_hidden_state"]),
    ]
    random, width = np.random.default_rng(5), HEADS * HEAD
    tensors = {"table": random.standard_normal((9, width)).astype(np.float32), "divisor": np.array(divisor, np.float32)}
    tensors |= {f"{name}/weight": random.standard_normal((width, width)).astype(np.float32) for name in "qkv"}
    tensors |= {f"{name}/heads": np.array([HEADS]) for name in "qk"} | {"v/heads": np.array([heads])}
    tensors |= {"batch": np.array([1]), "length": np.array([-1]), "head": np.array([HEAD])}
    tensors |= {"whole": np.array([1, -1, width]), "axes": np.array([1, 2])}
    tensors |= {"one": np.array(1, np.float32), "lowest": np.array(-1e9, np.float32)}
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in names]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", width])
    graph = helper.make_graph(nodes, "exported", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_an_export_is_the_same_with_attention_as_one_operator(tmp_path: Path, tiny_files: Path) -> None:
    onnx.save_model(exported(), str(tmp_path / GRAPH_FILE))
    onnx.save_model(fused(exported(), "last_hidden_state"), str(tmp_path / FUSED_FILE))
    graph = onnx.load(tmp_path / FUSED_FILE).graph
    assert [each.name for each in graph.input] == ["input_ids"]
    assert "Softmax" not in {node.op_type for node in graph.node}
    plain, other = (open_session(tmp_path / name) for name in (GRAPH_FILE, FUSED_FILE))
    ids = np.random.default_rng(6).integers(0, 9, (1, LENGTH))
    mask = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    (left,), (right,) = plain.run(None, {"input_ids": ids, **mask}), other.run(None, {"input_ids": ids})
    np.testing.assert_allclose(left, right, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "different"),
    [
        (exported(heads=4), "2, 2 and 4 heads"),
        (exported(keys=(0, 2, 1, 3)), "turns its axes otherwise"),
        (exported(mask="token_type_ids"), "token_type_ids.*not on attention_mask alone"),
        (exported(divisor=(1.0, 2.0)), "no constant number"),
    ],
)
def test_another_attention_is_refused_by_what_is_different(model: onnx.ModelProto, different: str) -> None:
    with pytest.raises(GraphUnknown, match=different):
        fused(model, "last_hidden_state")


def test_a_graph_without_attention_is_refused() -> None:
    graph = exported().graph
    model = helper.make_model(onnx.GraphProto(node=graph.node[:1], initializer=graph.initializer[:1]))
    with pytest.raises(GraphUnknown, match="no attention of a known form"):
        fused(model, "state")
