"""Phrases of a sentence made of distinctive terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text.analyzer import query_terms
from hummock.text.keywords import phrases


def all_of(text: str) -> list[str]:
    return list(phrases(text, lambda term: True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("潮汐木芯是怎么来的？", ["潮汐木芯"]),
        ("我们应该如何使用那块硬木头", ["硬木头"]),
        ("那种芦苇编的材料堆在哪里了", ["芦苇编", "材料堆"]),
        ("请问目的地", []),
        ("where do we keep the tidewood core?", ["tidewood", "core"]),
        ("call parse_date in utils.py 2024 times", ["parse_date", "utils.py"]),
        ("用 tidewood 做的潮汐木芯", ["tidewood", "潮汐木芯"]),
        ("", []),
        ("？！ … 1 2 3", []),
        ("什么 是 的 the a", []),
    ],
)
def test_a_phrase_is_what_is_left_between_the_words_of_any_sentence(text: str, expected: list[str]) -> None:
    """S3-01."""
    assert all_of(text) == expected


def test_a_term_that_is_not_distinctive_ends_a_phrase() -> None:
    """S3-01."""
    assert list(phrases("蓝焰潮汐木芯", lambda term: term != "焰潮")) == ["蓝焰", "潮汐木芯"]
    assert list(phrases("utils.py parse_date tidewood", lambda term: term not in {"py", "parse_date"})) == ["tidewood"]


@given(st.text(alphabet=st.sampled_from("潮汐木芯的是什么abc_1 ，\ud800")) | st.text())
def test_every_term_of_a_phrase_is_distinctive(text: str) -> None:
    """S3-01."""
    told = set(query_terms(text)[::2])
    for phrase in phrases(text, told.__contains__):
        # Of a name of code its parts need not be.
        assert query_terms(phrase)[0] in told


@pytest.mark.parametrize("text", ["潮" * 200_000, "潮的" * 100_000, "a." * 100_000, "潮a" * 100_000])
def test_a_text_made_to_be_slow_is_looked_through_once(text: str) -> None:
    """S3-01."""
    asked: list[str] = []

    def is_distinctive(term: str) -> bool:
        asked.append(term)
        return True

    for _ in phrases(text, is_distinctive):
        pass
    assert len(asked) <= 2 * len(text)


@given(st.text())
def test_any_text_has_phrases_or_none(text: str) -> None:
    """S3-01."""
    assert all(phrase and phrase == phrase.strip() for phrase in all_of(text))
