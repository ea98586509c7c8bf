"""Vocabularies in `.tiktoken` files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from hummock.text import tokens
from hummock.text.tokens import TokenCounter, TokenizerTokens, counter_of
from tests.render.counters import ranks, tiktoken_file


@pytest.fixture(scope="module", params=tokens.VOCABULARIES)
def counter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenCounter:
    return TokenizerTokens.from_file(tiktoken_file(tmp_path_factory.mktemp("ranks"), f"{request.param}.tiktoken"))


def merged(piece: bytes, known: dict[bytes, int]) -> list[bytes]:
    """Merges of lowest rank first, the leftmost of equal ones: what the ranks of such a file mean."""
    parts = [bytes([byte]) for byte in piece]
    while True:
        pairs = [
            (known[left + right], place) for place, (left, right) in enumerate(pairwise(parts)) if left + right in known
        ]
        if not pairs:
            return parts
        _, place = min(pairs)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


@given(text=st.text(st.sampled_from("还款方式 rounding's\nIF 12345\t。/x\u3000é😀"), max_size=80))
def test_the_count_is_that_of_merging_by_rank(counter: TokenCounter, text: str) -> None:
    """S2-21."""
    vocabulary = counter.name.removesuffix(".tiktoken")
    cut = pre_tokenizers.Split(Regex(tokens._PIECES[vocabulary]), "isolated")
    known = ranks()
    expected = sum(len(merged(piece.encode(), known)) for piece, _ in cut.pre_tokenize_str(text))
    assert counter.count(text) == expected


def test_pieces_of_the_newer_vocabulary_keep_a_contraction_and_end_a_line_with_slashes() -> None:
    def cut(name: str, text: str) -> list[str]:
        split = pre_tokenizers.Split(Regex(tokens._PIECES[name]), "isolated")
        return [piece for piece, _ in split.pre_tokenize_str(text)]

    assert cut("o200k_base", "It's 12345 还款!\n/x") == ["It's", " ", "123", "45", " 还款", "!\n/", "x"]
    assert cut("cl100k_base", "It's 12345 还款!\n/x") == ["It", "'s", " ", "123", "45", " 还款", "!\n", "/x"]


def test_a_file_under_another_name_is_refused_because_its_pieces_are_not_known(tmp_path: Path) -> None:
    path = tiktoken_file(tmp_path, "mine.tiktoken")
    with pytest.raises(ValueError, match="named for its vocabulary: cl100k_base, o200k_base"):
        counter_of(path)


def test_a_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "o200k_base.tiktoken"
    path.write_text("not a rank\n")
    with pytest.raises(ValueError, match=r"o200k_base\.tiktoken is not a tiktoken file"):
        counter_of(path)
