"""granite-embedding-97m-multilingual-r2 as its card has it, on toy weights: two inputs, bytes as pieces, CLS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE

from hummock.models import REGISTRY, ModelDescription, OnnxEmbedder, load
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, ModelFile
from hummock.models.encoder import Encoder
from hummock.models.errors import ModelFileAltered
from hummock.models.files import sha256_of
from tests.models.embedding import embedded, same_bytes

GRANITE = REGISTRY["granite-embedding-97m-multilingual-r2"]
DIM = 384
SPECIAL = ["[CLS]", "[SEP]", "[UNK]", "[PAD]"]
TEXT = "先本后息 repay"
PIECES = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), "re", "pa", "pay"]


def write_tokenizer(path: Path) -> None:
    """Pieces of bytes with two merges, between [CLS] and [SEP]; a Chinese character is three of them."""
    merges = [("r", "e"), ("p", "a"), ("pa", "y")]
    tokenizer = Tokenizer(BPE({piece: at for at, piece in enumerate(PIECES)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.save(str(path))


def table() -> NDArray[np.float32]:
    """A vector for each piece, (pieces, DIM)."""
    return np.random.default_rng(97).standard_normal((len(PIECES), DIM)).astype(np.float32)


def write_graph(path: Path) -> None:
    """Each token's state is its piece's vector and twice the mean of all; two inputs, as there are no token types."""
    tensors = [
        numpy_helper.from_array(table(), "table"),
        numpy_helper.from_array(np.asarray([1], np.int64), "tokens"),
        numpy_helper.from_array(np.asarray([2], np.int64), "inner"),
        numpy_helper.from_array(np.asarray(2, np.float32), "two"),
    ]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["pieces"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "inner"], ["column"]),
        helper.make_node("Mul", ["pieces", "column"], ["seen"]),
        helper.make_node("ReduceMean", ["seen", "tokens"], ["mean"], keepdims=1),
        helper.make_node("Mul", ["mean", "two"], ["context"]),
        helper.make_node("Add", ["seen", "context"], ["last_hidden_state"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", DIM])]
    graph = helper.make_graph(nodes, "toy", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelDescription, Path]:
    """The registry's description over the toy's files."""
    directory = tmp_path_factory.mktemp("granite")
    write_tokenizer(directory / TOKENIZER_FILE)
    write_graph(directory / GRAPH_FILE)
    files = tuple(ModelFile(name=file.name, sha256=sha256_of(directory / file.name)) for file in GRANITE.files)
    return replace(GRANITE, files=files), directory


@pytest.fixture(scope="module")
def embedder(model: tuple[ModelDescription, Path]) -> Iterator[OnnxEmbedder]:
    embedder = load(*model, slots=1)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def encoder(model: tuple[ModelDescription, Path]) -> Encoder:
    return Encoder(*model)


def test_a_vector_is_the_first_tokens_state_of_length_1(embedder: OnnxEmbedder, encoder: Encoder) -> None:
    """The mean of all tokens would be another vector."""
    ids = encoder._tokenizer.encode(TEXT).ids
    assert ids[0] == PIECES.index("[CLS]")
    assert ids[-1] == PIECES.index("[SEP]")
    pieces = table()[ids]
    first = pieces[0] + 2 * pieces.mean(axis=0)
    found = embedder.embed_query(TEXT).vector
    assert found.shape == (DIM,)
    np.testing.assert_allclose(found, first / np.linalg.norm(first), atol=1e-5)


def test_questions_and_texts_are_read_alike(embedder: OnnxEmbedder) -> None:
    """The model has no prefixes."""
    assert same_bytes(embedder.embed_query(TEXT), embedded(embedder, [TEXT])[0])


def test_a_character_of_several_pieces_has_a_token_vector_for_each(embedder: OnnxEmbedder, encoder: Encoder) -> None:
    assert len(encoder.places("先本")[0]) == 6
    assert len(embedded(embedder, ["先本"])[0].tokens) == 6
    assert len(embedded(embedder, ["repay"])[0].tokens) == 2


@example("先本后息 repay," * 90)
@given(st.text(st.sampled_from("先本后息 repay,"), max_size=300))
def test_chunks_fit_the_window_and_cut_no_character(embedder: OnnxEmbedder, encoder: Encoder, body: str) -> None:
    chunks = embedder.split("", body)
    for chunk in chunks:
        assert len(encoder.places(chunk)[0]) + encoder.special_tokens <= GRANITE.max_tokens
        assert chunk in body
    assert body.endswith(chunks[-1])
    assert body.startswith(chunks[0])


def test_another_toy_is_not_taken_for_the_published_model(model: tuple[ModelDescription, Path]) -> None:
    """The registry pins the hub's files, and none is opened before it is verified."""
    with pytest.raises(ModelFileAltered):
        load(GRANITE, model[1], slots=1)
