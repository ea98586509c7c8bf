from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.models import ModelDescription, OnnxEmbedder
from hummock.models.encoder import Encoder, piece_spans
from tests.models.embedding import embedded


@pytest.fixture(scope="module")
def encoder(tiny: ModelDescription, tiny_files: Path) -> Encoder:
    return Encoder(tiny, tiny_files)


Tokens = tuple[list[tuple[int, int]], list[int | None], int]


@st.composite
def tokens(draw: st.DrawFn) -> Tokens:
    """Tokens with spaces between them, several to a word, several to a character."""
    offsets: list[tuple[int, int]] = []
    words: list[int | None] = []
    position = draw(st.integers(0, 2))
    for word in range(draw(st.integers(0, 40))):
        for _ in range(draw(st.integers(1, 4))):
            end = position + draw(st.integers(1, 5))
            for _ in range(draw(st.sampled_from((1, 1, 1, 3)))):
                offsets.append((position, end))
                words.append(word)
            position = end
        position += draw(st.integers(0, 2))
    return offsets, words, position


@pytest.mark.long
@given(tokens(), st.integers(2, 30))
def test_pieces_cover_the_text_without_a_gap_and_fit_the_window(drawn: Tokens, window: int) -> None:
    offsets, words, length = drawn
    spans = piece_spans(offsets, words, length, window)
    assert (spans[0][0], spans[-1][1]) == (0, length)
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end <= next_end
    if window >= 6:
        for start, end in spans:
            assert sum(start <= first and last <= end for first, last in offsets) <= window


@given(st.integers(2, 30))
def test_an_empty_text_is_one_empty_piece(window: int) -> None:
    assert piece_spans([], [], 0, window) == [(0, 0)]


def test_neighbouring_pieces_share_about_a_tenth() -> None:
    offsets = [(2 * index, 2 * index + 1) for index in range(1000)]
    spans = piece_spans(offsets, list(range(1000)), 2000, 100)
    shared_tokens = [(end - start) // 2 for (_, end), (start, _) in pairwise(spans)]
    assert set(shared_tokens) == {10}


def test_a_cut_falls_between_words() -> None:
    offsets = [(index, index + 1) for index in range(30)]
    words: list[int | None] = [index // 3 for index in range(30)]
    spans = piece_spans(offsets, words, 30, 10)
    assert all(start % 3 == 0 for start, _ in spans)


@given(st.text(st.sampled_from("头部标题 header/path.py\n"), max_size=80), st.integers(0, 400))
def test_chunks_lose_no_word_and_keep_their_order(embedder: OnnxEmbedder, header: str, count: int) -> None:
    numbered = [f"词{index}word" for index in range(count)]
    chunks = embedder.split(header, " ".join(numbered))
    found = [int(word) for chunk in chunks for word in re.findall(r"词(\d+)word", chunk)]
    assert list(dict.fromkeys(found)) == list(range(count))


@pytest.mark.parametrize(
    ("header", "body", "chunk"),
    [
        ("RepaymentTypeEnum", "先本后息", "RepaymentTypeEnum\n先本后息"),
        ("", "先本后息 first", "先本后息 first"),
        ("", "", ""),
    ],
)
def test_a_short_memory_is_one_chunk_with_header(embedder: OnnxEmbedder, header: str, body: str, chunk: str) -> None:
    assert embedder.split(header, body) == [chunk]


def test_every_chunk_begins_with_the_header(embedder: OnnxEmbedder) -> None:
    chunks = embedder.split("src/repay.py repay", "还款方式 principal first\n" * 200)
    assert len(chunks) > 5
    assert all(chunk.startswith("src/repay.py repay\n") for chunk in chunks)


def test_chunks_fit_the_models_window(embedder: OnnxEmbedder, tiny: ModelDescription, encoder: Encoder) -> None:
    header, body = "a header of some length " * 3, "The repaymentMethod 先本后息, is_default=True; " * 100
    longest = max(len(encoder.places(chunk)[0]) for chunk in embedder.split(header, body))
    assert tiny.max_tokens * 0.8 < longest + encoder.special_tokens <= tiny.max_tokens


def test_a_long_header_is_cut_to_a_quarter_of_the_window(embedder: OnnxEmbedder, encoder: Encoder) -> None:
    header = "头" * 1000
    chunks = embedder.split(header, "身" * 200)
    window = 128 - encoder.special_tokens
    assert {chunk.partition("\n")[0] for chunk in chunks} == {"头" * (window // 4)}


def test_a_long_text_without_a_space_is_split_and_embedded(embedder: OnnxEmbedder) -> None:
    blob = "x" * 250_000
    assert "".join(embedder.split("", blob)) == blob
    assert embedded(embedder, [blob])[0].vector.shape == (64,)


def test_a_lone_surrogate_is_refused_not_mangled(embedder: OnnxEmbedder) -> None:
    with pytest.raises(TypeError):
        embedder.split("", "broken \ud800 text")
    with pytest.raises(TypeError):
        embedder.embed_query("broken \ud800 text")
    assert embedder.embed_query("whole text").vector.shape == (64,)
