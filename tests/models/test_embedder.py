from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from hummock.models import REGISTRY, ModelDescription, OnnxEmbedder, load
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, ModelFile, Pooling
from hummock.models.encoder import Encoder, kept_tokens, open_tokenizer, tokenizer_of
from hummock.models.errors import EmbeddingNotFinite, ModelGraphUnsupported
from hummock.models.files import sha256_of
from hummock.ports.models import Embedder
from tests.models.embedding import embedded, same_bytes

pytestmark = pytest.mark.timed

TEXTS = ["先本后息", "The repayment method", "def parse_date(text): ...", "", "先本后息 repay_by_id", "a" * 500]
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@given(st.permutations(TEXTS))
def test_order_does_not_change_a_texts_bytes(embedder: OnnxEmbedder, texts: list[str]) -> None:
    alone = {text: embedded(embedder, [text])[0] for text in TEXTS}
    assert all(same_bytes(alone[text], got) for text, got in zip(texts, embedded(embedder, texts), strict=True))


@pytest.mark.long
def test_concurrent_callers_get_equal_bytes(tiny: ModelDescription, tiny_files: Path, embedder: OnnxEmbedder) -> None:
    alone = embedded(embedder, TEXTS)
    crowded = load(tiny, tiny_files, slots=4)
    with ThreadPoolExecutor(8) as callers:
        for got in callers.map(embedded, [crowded] * 24, [TEXTS] * 24):
            assert all(same_bytes(left, right) for left, right in zip(alone, got, strict=True))
    crowded.close()


def test_documents_and_queries_are_equal_and_special_tokens_plain_text(embedder: OnnxEmbedder) -> None:
    assert same_bytes(embedder.embed_query("先本后息"), embedded(embedder, ["先本后息"])[0])
    assert len(embedded(embedder, ["先本后息"])[0].tokens) == 4
    assert len(embedded(embedder, ["[SEP]"])[0].tokens) == len(embedded(embedder, ["<sep>"])[0].tokens)
    query = embedder.embed_query("增加先本后息的还款方式").vector
    near, far = embedded(embedder, ["还款方式枚举里有先本后息", "the weather is nice today"])
    assert query @ near.vector > 0.5 > 0.3 > query @ far.vector


def test_the_query_prefix_changes_the_vector_and_has_no_token_vectors(tiny: ModelDescription, tiny_files: Path) -> None:
    embedder = load(replace(tiny, query_prefix="检索相关文章："), tiny_files, slots=1)
    query, document = embedder.embed_query("先本后息"), embedded(embedder, ["先本后息"])[0]
    prefixed = embedded(embedder, ["检索相关文章：先本后息"])[0]
    embedder.close()
    assert query.vector.tobytes() == prefixed.vector.tobytes() != document.vector.tobytes()
    assert (len(query.tokens), len(document.tokens), len(prefixed.tokens)) == (4, 4, 11)


@given(ANY_TEXT)
def test_any_text_has_a_unit_vector_and_int8_token_vectors(embedder: OnnxEmbedder, text: str) -> None:
    found = embedded(embedder, [text])[0]
    assert (str(found.vector.dtype), found.vector.shape) == ("float32", (64,))
    assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-5)
    assert (str(found.tokens.dtype), found.tokens.shape[1]) == ("int8", 64)
    lengths = np.linalg.norm(found.tokens.astype(np.float32), axis=1)
    assert np.all((np.abs(lengths - 127) < 4) | (lengths == 0))


def test_an_empty_text_has_a_vector_and_equal_queries_are_answered_from_memory(embedder: OnnxEmbedder) -> None:
    found = embedder.embed_query("")
    assert found.tokens.shape == (0, 64)
    assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-5)
    assert embedder.embed_documents([]) == []
    assert embedder.embed_query("一次") is embedder.embed_query("一次")
    with pytest.raises(ValueError, match="read-only"):
        embedder.embed_query("一次").vector[0] = 0
    port: Embedder = embedder
    assert port.space.dim == 64


def test_a_long_text_keeps_its_beginning(embedder: OnnxEmbedder, tiny: ModelDescription) -> None:
    room = tiny.max_tokens - 2
    left, right = embedded(embedder, ["先" * 400, "先" * room])
    assert same_bytes(left, right)
    assert len(left.tokens) == room


def test_a_closed_embedder_refuses(tiny: ModelDescription, tiny_files: Path) -> None:
    embedder = load(tiny, tiny_files, slots=1)
    embedder.close()
    with pytest.raises(RuntimeError):
        embedder.embed_documents([["late"]])


def test_capitals_are_known_to_the_chinese_model(
    tiny: ModelDescription, tiny_files: Path, chinese_tokenizer: Path, tmp_path: Path
) -> None:
    (tmp_path / GRAPH_FILE).write_bytes((tiny_files / GRAPH_FILE).read_bytes())
    (tmp_path / TOKENIZER_FILE).write_bytes(chinese_tokenizer.read_bytes())
    text = "RepaymentController 先本后息"
    unknown = open_tokenizer("tiny", tmp_path / TOKENIZER_FILE).token_to_id("[UNK]")
    assert unknown in tokenizer_of(tiny, tmp_path).encode(text).ids
    folded = tokenizer_of(replace(tiny, lowercase=REGISTRY["bge-small-zh-v1.5"].lowercase), tmp_path)
    assert unknown not in folded.encode(text).ids
    assert folded.places(text)[0][-1] == (len(text) - 1, len(text))


@pytest.mark.parametrize(
    ("special", "window", "kept"),
    [
        ([1, 0, 0, 1], 4, [0, 1, 2, 3]),
        ([1, 0, 0, 0, 0, 1], 4, [0, 1, 2, 5]),
        ([0, 0, 0, 0, 0], 3, [0, 1, 2]),
        ([1, 0, 0, 0, 1, 1], 4, [0, 1, 4, 5]),
    ],
)
def test_truncation_keeps_the_closing_special_tokens(special: list[int], window: int, kept: list[int]) -> None:
    assert kept_tokens(np.array(special, dtype=np.bool_), window).tolist() == kept


def graph_model(
    tiny: ModelDescription,
    tiny_files: Path,
    directory: Path,
    inputs: tuple[str, ...] = ("input_ids",),
    value: float = 1.0,
) -> ModelDescription:
    """A graph that answers every token with the same vector."""
    table = np.full((1, 64), value, dtype=np.float32)
    nodes = [
        helper.make_node("Sub", ["input_ids", "input_ids"], ["zeros"]),
        helper.make_node("Gather", ["table", "zeros"], ["last_hidden_state"]),
    ]
    declared = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in inputs]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 64])
    graph = helper.make_graph(nodes, "flat", declared, [output], [numpy_helper.from_array(table, "table")])
    opsets = [helper.make_opsetid("", 18)]
    onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=9), str(directory / GRAPH_FILE))
    (directory / TOKENIZER_FILE).write_bytes((tiny_files / TOKENIZER_FILE).read_bytes())
    file = ModelFile(name=GRAPH_FILE, sha256=sha256_of(directory / GRAPH_FILE))
    return replace(tiny, files=(file, tiny.file(TOKENIZER_FILE)))


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask"), ("input_ids", "token_type_ids")])
def test_declared_inputs_are_fed(
    tiny: ModelDescription, tiny_files: Path, tmp_path: Path, inputs: tuple[str, ...]
) -> None:
    model = graph_model(tiny, tiny_files, tmp_path, inputs=inputs)
    assert Encoder(model, tmp_path).encode("先本后息").hidden.shape == (4, 64)


@pytest.mark.parametrize(
    ("inputs", "changes", "complaint"),
    [
        (("input_ids", "pixel_values"), {}, "pixel_values"),
        (("input_ids",), {"pooling": Pooling.GRAPH}, "sentence_embedding"),
        (("input_ids",), {"dim": 65}, "64"),
    ],
    ids=["an undescribed input", "a missing output", "a wrong dim"],
)
def test_a_graph_that_is_not_as_described_is_refused(
    tiny: ModelDescription, tiny_files: Path, tmp_path: Path, inputs: tuple[str, ...], changes: Any, complaint: str
) -> None:
    model = graph_model(tiny, tiny_files, tmp_path, inputs=inputs)
    with pytest.raises(ModelGraphUnsupported, match=complaint):
        load(replace(model, **changes), tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_a_vector_of_no_direction_fails(tiny: ModelDescription, tiny_files: Path, tmp_path: Path, value: float) -> None:
    model = graph_model(tiny, tiny_files, tmp_path, value=value)
    embedder = load(model, tmp_path, slots=1)
    for _ in range(2):
        with pytest.raises(EmbeddingNotFinite, match="hummock models verify tiny"):
            embedder.embed_query("先本后息")
    embedder.close()


def test_rubbish_under_a_right_hash_is_refused(tiny: ModelDescription, tiny_files: Path, tmp_path: Path) -> None:
    graph_model(tiny, tiny_files, tmp_path)
    (tmp_path / GRAPH_FILE).write_bytes(b"not a graph")
    file = ModelFile(name=GRAPH_FILE, sha256=sha256_of(tmp_path / GRAPH_FILE))
    with pytest.raises(ModelGraphUnsupported, match="cannot be opened"):
        load(replace(tiny, files=(file, tiny.file(TOKENIZER_FILE))), tmp_path)
