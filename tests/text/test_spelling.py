"""Words one slip of the pen away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from hummock.text.spelling import (
    LEAST_FOR_ALL,
    SHARED_PREFIX,
    characters_by_syllable,
    exchanged,
    may_be_misspelt,
    one_slip_away,
    readings_of,
    respelt,
    syllables_of,
)

WORDS = st.text("abcXYZ019_", min_size=1, max_size=12)


@given(WORDS)
def test_what_is_made_of_a_word_is_one_slip_away_and_keeps_its_digits(word: str) -> None:
    for other in (*exchanged(word), *respelt(word)):
        assert OSA.distance(word.lower(), other.lower()) <= 1
        assert [each for each in word if each.isdigit()] == [each for each in other if each.isdigit()]


@given(WORDS.filter(lambda word: sum(map(str.isalpha, word)) >= LEAST_FOR_ALL), WORDS)
def test_either_it_is_made_or_it_shares_its_first_letters_and_is_compared(word: str, other: str) -> None:
    word, other = word.lower(), other.lower()
    made = {each.lower() for each in (*exchanged(word), *respelt(word))}
    first = slice(SHARED_PREFIX)
    if one_slip_away(word, [other]):
        around = other[: SHARED_PREFIX + 1] + word[: SHARED_PREFIX + 1]
        assert other in made or other[first] == word[first] or "_" in around or other[first].isdigit()


@pytest.mark.parametrize(
    ("word", "other", "is_near"),
    [
        ("retyr", "retry", True), ("retry", "retry", False), ("retries", "retry", False), ("sha256", "sha257", False),
        ("port1", "port", False), ("daet", "data", False),
    ],
)  # fmt: skip
def test_one_slip_and_no_digit_another(word: str, other: str, is_near: bool) -> None:
    assert one_slip_away(word, [other, word]) == [other] * is_near


def test_letters_exchange_their_places_and_not_their_case() -> None:
    assert "parseDate" in set(exchanged("parseDaet"))
    assert "HTTPError" in set(exchanged("HTPTError"))


@pytest.mark.parametrize("word", ["ab1", "abc", "don't", "12345", "naïve", "还款", "x" * 60])
def test_what_is_short_long_or_no_word_of_ascii_is_not_looked_at(word: str) -> None:
    assert not may_be_misspelt(word)


# Pinyin and the characters that are read so.


@pytest.mark.parametrize(
    ("word", "cuts"),
    [
        ("huankuan", {("huan", "kuan"), ("huan", "ku", "an"), ("hu", "an", "kuan"), ("hu", "an", "ku", "an")}),
        ("xian", {("xian",), ("xi", "an")}),
        ("parse", set()),
        ("", {()}),
        ("zhongguorenmin" * 3, set()),
    ],
)
def test_a_word_is_cut_in_every_way_into_at_most_four_syllables(word: str, cuts: set[tuple[str, ...]]) -> None:
    assert set(syllables_of(word)) == cuts


def test_the_longest_first_syllables_come_first() -> None:
    assert next(syllables_of("huankuan")) == ("huan", "kuan")


def test_a_character_has_all_of_its_readings_and_no_tones() -> None:
    by_syllable = characters_by_syllable()
    assert "还" in by_syllable["huan"]
    assert "还" in by_syllable["hai"]
    assert "绿" in by_syllable["lv"]
    assert all(syllable.isascii() and syllable.islower() for syllable in by_syllable)


def test_a_word_is_read_in_every_way_of_its_characters() -> None:
    assert {"huankuan", "haikuan"} <= set(readings_of("还款"))
    assert readings_of("款ab") == ()
    assert readings_of("还款日期到了吗") == ()
