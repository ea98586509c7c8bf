"""The made chats of `bench.eval.small_talk`."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.eval.small_talk import DAYS, TURNS_A_DAY, turns_of
from bench.eval.small_talk_lines import LINES
from hummock.text.small_talk import tells_nothing


@pytest.mark.parametrize("language", LINES)
def test_the_chats_tell_each_fact_once_and_are_mostly_small_talk(language: str) -> None:
    lines = LINES[language]
    turns = list(turns_of(lines))
    assert turns == list(turns_of(lines))
    assert len(turns) == DAYS * TURNS_A_DAY
    said = Counter(user for user, _ in turns)
    assert [said[fact.told] for fact in lines.facts] == [1] * 20
    assert 0.7 < sum(said[line] for line in lines.small_talk) / len(turns) < 0.85


@pytest.mark.parametrize("language", LINES)
def test_nothing_that_tells_something_is_taken_for_small_talk(language: str) -> None:
    """The other side, what is missed, is measured: `python -m bench.eval.small_talk`."""
    lines = LINES[language]
    events = [event.format(thing) for event in lines.events for thing in lines.things]
    told = (*(fact.told for fact in lines.facts), *(fact.asked for fact in lines.facts), *events, *lines.said)
    assert not [text for text in (*told, *lines.answers) if tells_nothing(text)]
