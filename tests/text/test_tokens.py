"""Token counters."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from hummock.text.tokens import CountedOnce, EstimatedTokens, TokenCounter, TokenizerTokens, counter_of


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


def test_without_a_file_tokens_are_estimated() -> None:
    """S2-21."""
    assert counter_of(None).name == "estimate"


def test_a_lone_surrogate_is_counted_too() -> None:
    assert EstimatedTokens().count("\ud800") == 2


def test_a_missing_tokenizer_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        TokenizerTokens.from_file(tmp_path / "tokenizer.json")


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": 1}))
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer"):
        TokenizerTokens.from_file(path)


def test_a_real_tokenizer_counts_chinese_by_the_character(chinese_tokenizer: Path) -> None:
    counter = TokenizerTokens.from_file(chinese_tokenizer)
    assert counter.count("还款方式" * 400) == 1600
