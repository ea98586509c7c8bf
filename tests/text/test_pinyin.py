"""Pinyin and the characters that are read so."""

from __future__ import annotations

import pytest

from hummock.text.spelling import characters_by_syllable, readings_of, syllables_of


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
