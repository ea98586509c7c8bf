"""The Universal Sentence Encoder's conversion, from a checkpoint of its form with few pieces and random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

from hummock.core.embedding import Calibration
from hummock.models import ModelDescription, OnnxEmbedder, load
from hummock.models.convert import convert
from hummock.models.description import DATA_FILE, GRAPH_FILE, PIECES_FILE, Conversion, Form, ModelFile, Pooling
from hummock.models.encoder import open_session, tokenizer_of
from hummock.models.errors import ModelGraphUnsupported
from hummock.models.files import sha256_of, write_record
from hummock.models.use_graph import convert_use
from tests.models.embedding import embedded, same_bytes

pytestmark = pytest.mark.long

PARTS, DIM, BRANCH = 17, 512, 256
PIECES = ["<unk>", "<s>", "</s>", "▁", "▁the", "▁ship", "s", "▁deep", "港", "口", "▁sink"]
SCORES = [0.0, 0.0, 0.0, -3.0, -2.0, -4.0, -2.5, -5.0, -6.0, -6.0, -7.0]
WINDOWS = {2: (0, 1), 3: (1, 1), 5: (2, 2)}
"""Pieces before and after the own one in each branch's window."""


def _pieces() -> bytes:
    """A SentencePiece model of those pieces, whose normalizer changes no character."""
    unknown, control = 2, 3
    kinds = [unknown, control, control, *[1] * (len(PIECES) - 3)]
    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined] # made at run time
    for text, score, kind in zip(PIECES, SCORES, kinds, strict=True):
        model.pieces.add(piece=text, score=score, type=kind)
    model.normalizer_spec.name = "identity"
    return bytes(model.SerializeToString())


def _weights() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(5)

    def drawn(*shape: int) -> NDArray[np.float32]:
        return (0.05 * random.standard_normal(shape)).astype(np.float32)

    found: dict[str, NDArray[Any]] = {
        f"q{part + 1}": random.integers(0, 256, (128, DIM), np.uint8) for part in range(PARTS)
    }
    found |= {"scale": np.abs(drawn(PARTS)), "lo": drawn(PARTS), "eps": np.array(1e-5, np.float32)}
    for size in WINDOWS:
        found |= {f"proj{size}": drawn(DIM, BRANCH), f"proj_b{size}": drawn(BRANCH)}
        found |= {f"ln_g{size}": 1 + drawn(BRANCH), f"ln_b{size}": drawn(BRANCH)}
        for layer in (1, 2):
            found |= {f"w{layer}_{size}": drawn(size * BRANCH, BRANCH), f"b{layer}_{size}": drawn(BRANCH)}
    joined = DIM + len(WINDOWS) * BRANCH
    found |= {"ln_g": 1 + drawn(joined), "ln_b": drawn(joined), "cnn_W": drawn(joined, DIM), "cnn_b": drawn(DIM)}
    return found | {name: drawn(DIM, DIM) for name in ("d0", "d1", "d2", "d3", "p1", "p3")}


def _normed(rows: NDArray[np.float32], gain: NDArray[Any], shift: NDArray[Any], epsilon: float) -> NDArray[np.float32]:
    mean, variance = rows.mean(axis=-1, keepdims=True), rows.var(axis=-1, keepdims=True)
    normed: NDArray[np.float32] = (rows - mean) / np.sqrt(variance + epsilon) * gain + shift
    return normed


def reference(weights: dict[str, NDArray[Any]], ids: list[int]) -> NDArray[np.float32]:
    """The encoder in NumPy, piece by piece."""
    epsilon = float(weights["eps"])
    state = np.stack(
        [
            weights[f"q{at % PARTS + 1}"][at // PARTS] * weights["scale"][at % PARTS] + weights["lo"][at % PARTS]
            for at in ids
        ]
    ).astype(np.float32)
    projected = np.concatenate([state @ weights[f"proj{size}"] + weights[f"proj_b{size}"] for size in WINDOWS], axis=1)
    gain, shift = (np.concatenate([weights[f"ln_{kind}{size}"] for size in WINDOWS]) for kind in "gb")
    inner = np.split(_normed(projected, gain, shift, epsilon), len(WINDOWS), axis=1)
    branches = [state]
    for own, (size, (before, after)) in zip(inner, WINDOWS.items(), strict=True):
        for layer in (1, 2):
            padded = np.pad(own, ((before, after), (0, 0)))
            windows = np.stack([padded[at : at + size].ravel() for at in range(len(ids))])
            own = own + np.maximum(windows @ weights[f"w{layer}_{size}"] + weights[f"b{layer}_{size}"], 0)
        branches.append(own)
    joined = _normed(np.concatenate(branches, axis=1), weights["ln_g"], weights["ln_b"], epsilon)
    mean = (joined.sum(axis=0) @ weights["cnn_W"] + len(ids) * weights["cnn_b"]) / np.sqrt(len(ids))
    first = np.maximum(mean @ weights["d0"], 0)
    second = np.maximum(mean @ weights["p1"] + first @ weights["d1"], 0)
    last = np.tanh(second @ weights["p3"] + np.maximum(second @ weights["d2"], 0) @ weights["d3"])
    vector: NDArray[np.float32] = last / np.linalg.norm(last)
    return vector


@pytest.fixture(scope="module")
def weights() -> dict[str, NDArray[Any]]:
    return _weights()


@pytest.fixture(scope="module")
def described(
    tmp_path_factory: pytest.TempPathFactory, weights: dict[str, NDArray[Any]]
) -> tuple[ModelDescription, Path]:
    directory = tmp_path_factory.mktemp("use")
    (directory / PIECES_FILE).write_bytes(_pieces())
    np.savez(directory / "weights.npz", **weights)  # type: ignore[arg-type]
    read = {name: ModelFile(name=name, sha256=sha256_of(directory / name)) for name in (PIECES_FILE, "weights.npz")}
    model = ModelDescription(
        name=directory.name,
        licence="none",
        files=(ModelFile(name=GRAPH_FILE), ModelFile(name=DATA_FILE), read[PIECES_FILE]),
        sources=(),
        max_tokens=64,
        pooling=Pooling.GRAPH,
        dim=DIM,
        query_prefix="",
        scripts=frozenset({"han", "latin"}),
        calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.1, near_twin_bar=0.9),
        hidden_output="",
        conversion=Conversion(weights=read["weights.npz"], form=Form.USE),
    )
    assert model.conversion
    convert(model, model.conversion, directory)
    write_record(model, directory)
    return model, directory


@pytest.fixture(scope="module")
def embedder(described: tuple[ModelDescription, Path]) -> OnnxEmbedder:
    return load(*described, slots=1)


@pytest.mark.parametrize("ids", [[1, 2], [1, 4, 5, 6, 2], [1, 3, 8, 9, 0, 0, 7, 10, 2]])
def test_the_graph_computes_what_the_encoder_does(
    weights: dict[str, NDArray[Any]], tmp_path: Path, ids: list[int]
) -> None:
    import onnx

    np.savez(tmp_path / "weights.npz", **weights)  # type: ignore[arg-type]
    onnx.save_model(convert_use(tmp_path / "weights.npz"), str(tmp_path / GRAPH_FILE))
    (found,) = open_session(tmp_path / GRAPH_FILE).run(None, {"input_ids": np.array([ids], np.int64)})
    np.testing.assert_allclose(found[0], reference(weights, ids), rtol=0, atol=1e-5)


def test_texts_are_cut_into_the_pieces_of_the_model(embedder: OnnxEmbedder, weights: dict[str, NDArray[Any]]) -> None:
    """In int8 the vector is near that of the right pieces, and of no others."""
    texts = {"the ships sink": [1, 4, 5, 6, 10, 2], "  the   deep": [1, 4, 7, 2], "港口": [1, 3, 8, 9, 2]}
    expected = np.stack([reference(weights, ids) for ids in texts.values()])
    found = np.stack([embedder.embed_query(text).vector for text in texts])
    assert (np.diagonal(found @ expected.T) > 0.99).all()


def test_it_has_no_token_vectors_and_gives_the_same_bytes_twice(embedder: OnnxEmbedder) -> None:
    asked, stored = embedder.embed_query("the ships"), embedded(embedder, ["the ships"])[0]
    assert asked.tokens.shape == stored.tokens.shape == (0, 64)
    assert same_bytes(asked, stored)


def test_a_text_beyond_the_window_is_cut_there(embedder: OnnxEmbedder) -> None:
    long, longer = (embedder.embed_query("the " * count).vector for count in (62, 90))
    np.testing.assert_array_equal(long, longer)


def test_places_are_those_of_the_text_and_words_begin_at_spaces(described: tuple[ModelDescription, Path]) -> None:
    """A mark of the vocabulary in a text is data; a lone surrogate is refused, as by other tokenizers."""
    pieces = tokenizer_of(*described)
    assert pieces.places("  the ships") == ([(2, 5), (5, 10), (10, 11)], [0, 1, 1])
    assert pieces.places("") == ([], [])
    assert not {1, 2} & set(pieces.encode("<s> the </s>").ids[1:-1].tolist())
    for read in (pieces.encode, pieces.places):
        with pytest.raises(TypeError):
            read("the \ud800")


def test_another_file_is_refused(described: tuple[ModelDescription, Path], tmp_path: Path) -> None:
    (tmp_path / PIECES_FILE).write_bytes(b"no model")
    with pytest.raises(ModelGraphUnsupported, match="SentencePiece"):
        tokenizer_of(described[0], tmp_path)
