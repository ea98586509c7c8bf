"""Token counters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from hummock.text import tokens
from hummock.text.tokens import CountedOnce, EstimatedTokens, TokenCounter, TokenizerTokens, counter_of
from tests.render.counters import ranks, tiktoken_file


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 0),
        ("hello", 2),  # 1.05
        ("hello world", 3),  # 2.10
        ("configuration", 3),  # 1.05 + 7 · 0.20
        ("还款方式", 4),  # 4 · 0.758
        ("还款。", 4),  # 2 · 0.758 + 1.698
        ("1234567", 6),  # 3 · 1.83
        ("a\n\n    b", 4),  # 2 · 1.05 + 0.66 + 0.86
        ("x == y", 3),  # 2 · 1.05 + 2 · 0.40
        ("Привет", 5),
        ("😀", 2),
    ],
)
def test_the_estimate_weighs_characters_by_their_class(text: str, tokens: int) -> None:
    """S2-21."""
    assert EstimatedTokens().count(text) == tokens


@given(st.text(), st.text())
def test_more_text_is_never_estimated_at_less(one: str, other: str) -> None:
    counter: TokenCounter = EstimatedTokens()
    assert counter.count(one) <= counter.count(f"{one}。{other}")


def test_chinese_is_not_counted_as_english_is() -> None:
    """A quarter token a character is 70 % too low for Chinese."""
    assert EstimatedTokens().count("增加先本后息的还款方式" * 100) > 800


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of one token a word that cuts at three and fills to eight, as files of embedding models do."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))  # noqa: S106 - a word, no secret
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=8)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("a b a b a", 5)])
def test_an_exact_count_neither_cuts_nor_fills(tokenizer_file: Path, text: str, tokens: int) -> None:
    """S2-21."""
    assert TokenizerTokens.from_file(tokenizer_file).count(text) == tokens


def test_counts_of_texts_that_come_again_are_kept() -> None:
    """S2-21, S2-03."""

    class Counting:
        name = "exact"
        is_stored = False

        def __init__(self) -> None:
            self.counted: list[str] = []

        def count(self, text: str) -> int:
            return self.counts([text])[0]

        def counts(self, texts: Sequence[str]) -> list[int]:
            self.counted += texts
            return [len(text) for text in texts]

    counting = Counting()
    counter = CountedOnce(counting)
    assert [counter.count(text) for text in ("还款", "a", "还款", "", "还款")] == [2, 1, 2, 0, 2]
    assert counter.counts(["还款", "ab", "ab", "a"]) == [2, 2, 2, 1]
    assert (counting.counted, counter.name, counter.is_stored) == (["还款", "a", "", "ab"], "exact", False)


@pytest.mark.parametrize("kept", [False, True])
def test_many_texts_are_counted_as_each_is(tokenizer_file: Path, kept: bool) -> None:
    """S2-21."""
    exact = TokenizerTokens.from_file(tokenizer_file)
    texts = ["", "a b", "a", "a b", "b a b", "a" * 5000]
    for counter in (CountedOnce(exact) if kept else exact, EstimatedTokens()):
        assert counter.counts(texts) == [counter.count(text) for text in texts]
        assert counter.counts([]) == []


def test_without_a_file_tokens_are_estimated_a_lone_surrogate_too(tmp_path: Path) -> None:
    """S2-21."""
    assert counter_of(None).name == "estimate"
    assert EstimatedTokens().count("\ud800") == 2
    with pytest.raises(FileNotFoundError):
        TokenizerTokens.from_file(tmp_path / "tokenizer.json")


def test_a_real_tokenizer_counts_chinese_by_the_character(chinese_tokenizer: Path) -> None:
    counter = TokenizerTokens.from_file(chinese_tokenizer)
    assert counter.count("还款方式" * 400) == 1600


# Vocabularies in `.tiktoken` files.


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


@pytest.mark.long
@settings(max_examples=30)
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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.json", '{"model": 1}', r"tokenizer\.json is not a tokenizer"),
        ("o200k_base.tiktoken", "not a rank\n", r"o200k_base\.tiktoken is not a tiktoken file"),
        # Its pieces are not known.
        ("mine.tiktoken", None, "named for its vocabulary: cl100k_base, o200k_base"),
    ],
)
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    path = tiktoken_file(tmp_path, name)
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=said):
        counter_of(path)
