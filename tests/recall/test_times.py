"""Match of memories' times with the times that a query names."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.recall import Intent, RecallQuery, TimeInterval
from hummock.recall.fuse import SHORTEST_HALVING_S, VAGUE_MATCH, time_match, told_time
from hummock.recall.plan import times_of
from hummock.text.question import question_of
from hummock.text.questions import Trait
from tests.recall.candidates import DAY, NOW, Row, candidates

DAY_S = 86_400.0
AS_OF = 1_684_319_400.0  # Wednesday, 2023-05-17 10:30 UTC
YESTERDAY = TimeInterval(start=AS_OF // DAY_S * DAY_S - DAY_S, end=AS_OF // DAY_S * DAY_S, phrase="yesterday")


def match(*times: float, interval: TimeInterval = YESTERDAY) -> list[float]:
    return [float(one) for one in time_match([interval], np.array(times, np.float64))]


def query(text: str = "what did I eat yesterday", **options: object) -> RecallQuery:
    return RecallQuery(project="p", text=text, **options)  # type: ignore[arg-type] # options are its own fields


def times(asked: RecallQuery, *, joins_paths: bool) -> tuple[TimeInterval, ...]:
    return times_of(asked, question_of(asked.text), AS_OF, joins_paths=joins_paths)


def test_inside_matches_fully_and_farther_away_matches_less() -> None:
    start, end = YESTERDAY.start, YESTERDAY.end
    inside, near, far, ages_ago = match(start, end + SHORTEST_HALVING_S, end + 3 * SHORTEST_HALVING_S, 0.0)
    assert inside == 1
    assert near == pytest.approx(0.5)
    assert far == pytest.approx(0.125)
    assert ages_ago == 0


def test_an_unknown_time_matches_nothing() -> None:
    assert match(math.nan) == [0]
    assert match() == []


def test_a_vague_time_matches_less() -> None:
    vague = TimeInterval(start=0, end=10, is_vague=True)
    assert match(5, interval=vague) == [VAGUE_MATCH]


def test_of_several_times_the_nearest_counts() -> None:
    times = [TimeInterval(start=0, end=10), YESTERDAY]
    assert time_match(times, np.array([5, YESTERDAY.start])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("start_days", "end_days", "expected"),
    [(200, 0, [math.nan, 9.0, 300.0, 10.0]), (40, 0, [10.0, 10.0, 300.0, 10.0]), (200, 100, [10.0, 10.0, 300.0, 10.0])],
)
def test_a_day_that_a_text_names_tells_nothing_in_a_year_in_which_it_was_told(
    start_days: int, end_days: int, expected: list[float]
) -> None:
    """Its time is then that of a note without one: none, and a turn's own; a given event time always counts."""
    read = int(Trait.DATED)
    rows = [
        Row(id="read", age_days=9, event_time=NOW - 10 * DAY, traits=read),
        Row(id="turn", age_days=9, event_time=NOW - 10 * DAY, traits=read, session=1),
        Row(id="told before", age_days=250, event_time=NOW - 300 * DAY, traits=read),
        Row(id="given", age_days=9, event_time=NOW - 10 * DAY),
    ]
    asked = TimeInterval(start=NOW - start_days * DAY, end=NOW - end_days * DAY)
    ages = (NOW - told_time(candidates(rows), (asked,))) / DAY
    assert ages.tolist() == pytest.approx(expected, nan_ok=True)


def test_an_open_interval_has_no_end() -> None:
    since = TimeInterval(start=100, end=math.inf)
    assert match(1e12, 100, interval=since) == [1, 1]
    assert match(100 - SHORTEST_HALVING_S, interval=since) == [pytest.approx(0.5)]


@given(st.lists(st.floats(-1e11, 1e11), max_size=20), st.floats(-1e10, 1e10), st.floats(1, 1e9), st.booleans())
def test_matches_are_shares_that_fall_with_distance(
    times: list[float], start: float, length_s: float, is_vague: bool
) -> None:
    interval = TimeInterval(start=start, end=start + length_s, is_vague=is_vague)
    found = np.array(match(*times, interval=interval))
    assert ((found >= 0) & (found <= 1)).all()
    after = sorted(time for time in times if time >= interval.end)
    assert match(*after, interval=interval) == sorted(match(*after, interval=interval), reverse=True)


def test_an_interval_ends_after_it_begins() -> None:
    with pytest.raises(InvalidRequest):
        TimeInterval(start=5, end=5)
    with pytest.raises(InvalidRequest):
        TimeInterval(start=math.nan, end=5)


def test_times_are_those_of_the_words() -> None:
    (found,) = times(query(), joins_paths=True)
    assert found == YESTERDAY


def test_times_of_the_caller_come_before_those_of_the_words() -> None:
    given_times = (TimeInterval(start=0, end=1),)
    asked = query(intent=Intent(times=given_times), time_words=False)
    assert times(asked, joins_paths=False) == given_times


def test_time_words_can_be_switched_off_and_on() -> None:
    assert times(query(time_words=False), joins_paths=True) == ()
    assert times(query(), joins_paths=False) == ()
    assert times(query(time_words=True), joins_paths=False) == (YESTERDAY,)
