"""Multilingual models are run by the same code: XLM-R's tokens, a prefix on either side, and both poolings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper

from bench.toy_models import build_tiny_reranker, tiny_cross_encoder, write_description
from hummock.core.embedding import Across, Calibration
from hummock.models import REGISTRY, ModelDescription, OnnxEmbedder, load
from hummock.models.basis import TOKEN_MARK
from hummock.models.bert_graph import build_graph
from hummock.models.convert import write_int8
from hummock.models.description import (
    DESCRIPTION_FILE,
    GRAPH_FILE,
    TOKENIZER_FILE,
    ModelFile,
    Pooling,
    read_description,
)
from hummock.models.encoder import Encoder, declared_inputs, open_session, tokenizer_of
from hummock.models.files import sha256_of
from tests.models.embedding import embedded

TEXT = "先本后息 repay"
WINDOW = 48


BERT_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
"""Inputs that e5's graph declares; those of XLM-R have no token types."""


def toy(directory: Path, pooling: Pooling) -> ModelDescription:
    """A model of XLM-R's shape with random weights; with CLS its graph has no token types."""
    write_int8(build_graph(tiny_cross_encoder(), pooling), directory / GRAPH_FILE)
    if pooling is Pooling.CLS:
        _drop_token_types(directory / GRAPH_FILE)
    files = tuple(ModelFile(name=name, sha256=sha256_of(directory / name)) for name in (GRAPH_FILE, TOKENIZER_FILE))
    return ModelDescription(
        name="toy", licence="Apache-2.0", files=files, sources=(), pooling=pooling, dim=64, max_tokens=WINDOW,
        query_prefix="query: ", document_prefix="passage: ", scripts=frozenset({"han", "latin"}),
        calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.1, near_twin_bar=0.9),
    )  # fmt: skip


def _drop_token_types(path: Path) -> None:
    graph = onnx.load(path)
    (declared,) = (node for node in graph.graph.input if node.name == "token_type_ids")
    graph.graph.input.remove(declared)
    graph.graph.node.insert(0, helper.make_node("Sub", ["input_ids", "input_ids"], ["token_type_ids"]))
    onnx.save(graph, path)


@pytest.fixture(scope="module", params=[Pooling.MEAN, Pooling.CLS], ids=lambda pooling: pooling.value)
def model(
    request: pytest.FixtureRequest, models_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ModelDescription, Path]:
    directory = tmp_path_factory.mktemp("toy") / "toy"
    directory.mkdir()
    tokenizer = models_directory / build_tiny_reranker(models_directory).name / TOKENIZER_FILE
    (directory / TOKENIZER_FILE).write_bytes(tokenizer.read_bytes())
    return toy(directory, request.param), directory


@pytest.fixture(scope="module")
def multilingual(model: tuple[ModelDescription, Path]) -> Iterator[OnnxEmbedder]:
    embedder = load(*model, slots=1)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def encoder(model: tuple[ModelDescription, Path]) -> Encoder:
    return Encoder(*model)


def unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return (values / np.linalg.norm(values)).astype(np.float32)


def test_each_side_has_its_prefix_which_has_no_token_vectors(multilingual: OnnxEmbedder, encoder: Encoder) -> None:
    query, (document,) = multilingual.embed_query(TEXT), embedded(multilingual, [TEXT])
    np.testing.assert_allclose(query.vector, unit(encoder.encode(f"query: {TEXT}").pooled), atol=1e-6)
    np.testing.assert_allclose(document.vector, unit(encoder.encode(f"passage: {TEXT}").pooled), atol=1e-6)
    assert not np.allclose(query.vector, document.vector, atol=1e-3)
    own = len(encoder.places(TEXT)[0])
    assert len(embedded(multilingual, [TEXT])[0].tokens) in (own, own - 1)
    assert len(multilingual.embed_query(TEXT).tokens) in (own, own - 1)
    assert len(embedded(multilingual, [""])[0].tokens) == 0


def test_pooling_is_that_of_the_description(model: tuple[ModelDescription, Path], encoder: Encoder) -> None:
    description, directory = model
    session = open_session(directory / GRAPH_FILE)
    ids = tokenizer_of(description, directory).encode(TEXT).ids[np.newaxis]
    fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    wanted = {name: value for name, value in fed.items() if name in declared_inputs(session)}
    (hidden,) = session.run([description.hidden_output], wanted)
    state = np.asarray(hidden)[0]
    pooled = state[0] if description.pooling is Pooling.CLS else state.mean(axis=0)
    np.testing.assert_allclose(encoder.encode(TEXT).pooled, pooled, atol=1e-5)


def test_a_session_is_fed_what_it_declares(model: tuple[ModelDescription, Path]) -> None:
    description, directory = model
    declared = declared_inputs(open_session(directory / GRAPH_FILE))
    assert declared == (BERT_INPUTS - {"token_type_ids"} if description.pooling is Pooling.CLS else BERT_INPUTS)
    embedder = load(description, directory, slots=1)
    assert np.isfinite(embedder.embed_query(TEXT).vector).all()
    embedder.close()


@given(st.text(st.sampled_from("先本后息 repay,"), max_size=300))
def test_chunks_leave_room_for_the_prefix(multilingual: OnnxEmbedder, encoder: Encoder, body: str) -> None:
    """No part of a stored text is cut off."""
    for chunk in multilingual.split("还款 repay", body):
        assert len(encoder.places(f"passage: {chunk}")[0]) + encoder.special_tokens <= WINDOW


def test_a_prefix_makes_another_space_and_none_leaves_ids_as_they_were(model: tuple[ModelDescription, Path]) -> None:
    """S4-44: stores of before models had one still open."""
    description, directory = model
    without = load(replace(description, document_prefix=""), directory, slots=1)
    other = load(description, directory, slots=1)
    assert without.space.id != other.space.id
    for embedder in (without, other):
        embedder.close()


@pytest.fixture(scope="module")
def across(model: tuple[ModelDescription, Path]) -> Iterator[OnnxEmbedder]:
    description, directory = model
    embedder = load(replace(description, across=Across(unrelated=0.1)), directory, slots=1)
    yield embedder
    embedder.close()


@pytest.mark.parametrize(
    ("text", "mark"), [("先本后息", TOKEN_MARK), ("repay the loan", -TOKEN_MARK), ("先 repay the loan", -TOKEN_MARK)]
)
def test_token_vectors_tell_chinese_texts_from_others(
    across: OnnxEmbedder, multilingual: OnnxEmbedder, text: str, mark: int
) -> None:
    query, (document,) = across.embed_query(text), embedded(across, [text])
    for found in (query, document):
        assert set(found.tokens[:, -1].tolist()) == {mark}
    np.testing.assert_array_equal(query.vector, multilingual.embed_query(text).vector)


def test_a_query_asks_for_the_other_language_with_the_same_vectors(across: OnnxEmbedder) -> None:
    """Late interaction compares a text with the question's token vectors of its own mark."""
    query, (english,) = across.embed_query("先本后息", gloss="principal first"), embedded(across, ["repay"])
    assert query.bridge is not None
    np.testing.assert_array_equal(query.bridge.vector, query.vector)
    np.testing.assert_array_equal(query.bridge.tokens[:, :-1], query.tokens[:, :-1])
    asked = query.tokens.astype(np.int32), query.bridge.tokens.astype(np.int32)
    own, other = (each @ english.tokens.astype(np.int32).T for each in asked)
    assert (own < 0).all()
    assert (other > 0).all()
    assert across.embed_query("").bridge is not None


def test_a_model_that_reads_across_has_a_space_of_its_own(across: OnnxEmbedder, multilingual: OnnxEmbedder) -> None:
    assert (multilingual.space.across, multilingual.space.token_mark) == (None, 0)
    assert multilingual.embed_query(TEXT).bridge is None
    assert across.space.across == Across(unrelated=0.1)
    assert across.space.token_mark == pytest.approx(TOKEN_MARK / 127)
    assert across.space.id != multilingual.space.id


def test_a_description_keeps_prefixes_and_an_old_one_has_none(
    model: tuple[ModelDescription, Path], tmp_path: Path
) -> None:
    description, _ = model
    (tmp_path / "toy").mkdir()
    write_description(description, tmp_path / "toy")
    assert read_description(tmp_path, "toy") == description
    path = tmp_path / "toy" / DESCRIPTION_FILE
    before = json.loads(path.read_text())
    del before["document_prefix"]
    path.write_text(json.dumps(before))
    assert read_description(tmp_path, "toy") == replace(description, document_prefix="")


def test_the_registry_says_how_multilingual_models_are_asked() -> None:
    """S1-16."""
    said = {
        name: (model.pooling, model.query_prefix, model.document_prefix, model.dim, model.max_tokens)
        for name, model in REGISTRY.items()
        if name in ("bge-m3", "multilingual-e5-small", "granite-embedding-97m-multilingual-r2", "gte-multilingual-base")
    }
    assert said == {
        "bge-m3": (Pooling.GRAPH, "", "", 1024, 512),
        "multilingual-e5-small": (Pooling.MEAN, "query: ", "passage: ", 384, 512),
        "granite-embedding-97m-multilingual-r2": (Pooling.CLS, "", "", 384, 512),
        "gte-multilingual-base": (Pooling.CLS, "", "", 768, 512),
    }
