"""Parses times in a text: "last week", "in May 2023", 前天, 5月2日.

A small grammar over the words, for a ranking that they shift a little: words not understood change nothing. Days are
those of the user's time zone, and weeks begin on Monday. A date without a year is the most recent one; only words for
the future (tomorrow, 下周) lie after now.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Final

from hummock.core.recall import TimeInterval
from hummock.core.time_zone import unix_seconds, wall_clock
from hummock.text.normalise import nfkc, simplified
from hummock.text.question import MAX_OPENING, Question, hints_of
from hummock.text.time_rules import (
    NOT_BEFORE_A_NAME,
    NOT_INSIDE_A_NAME,
    Rule,
    Rules,
    Span,
    TimeMatch,
    day_span,
    month_span,
)
from hummock.text.time_words_en import ENGLISH
from hummock.text.time_words_zh import CHINESE

_ANY_DAY: Final = datetime(2024, 6, 15, 12, tzinfo=UTC)


def _written_day(match: re.Match[str], now: datetime) -> Span | None:
    return day_span(now, int(match["month"]), int(match["day"]), int(match["year"]))


def _written_month(match: re.Match[str], now: datetime) -> Span:
    return month_span(now, int(match["month"]), int(match["year"]))


_YEAR = r"(?P<year>(?:19|20)\d\d)"
_MONTH = r"(?P<month>1[0-2]|0?[1-9])"
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])"
DIGITS: Final = Rules(
    [
        *(Rule(rf"{_YEAR}{mark}{_MONTH}{mark}{_DAY}(?:T\d\d:[\d:.Z]+)?", _written_day) for mark in ("-", "/", r"\.")),
        Rule(rf"{_YEAR}-(?P<month>1[0-2]|0[1-9])", _written_month),
    ],
    hint=r"(?:19|20)\d\d[-/.]",
    hint_parts="12",
    before=NOT_INSIDE_A_NAME,
    after=NOT_BEFORE_A_NAME,
)
"""Times in digits, whatever the language."""


_TABLES: Final = (DIGITS, ENGLISH, CHINESE)
HINTS: Final = frozenset().union(*[table.hints for table in _TABLES])
"""No text without one of them among its `hints_of` names a time."""


def time_intervals(question: Question, as_of: float, zone: tzinfo = UTC) -> tuple[TimeInterval, ...]:
    """Return the times that a question in English, Chinese or both names in its opening, each once.

    Words such as "yesterday" are relative to `as_of`, in Unix seconds; days, weeks and months are those of the zone.
    """
    looked_at = question.simple_opening
    tables = _tables(looked_at, question.hints)
    if not tables:
        return ()
    try:
        now = wall_clock(as_of, zone)
    except OverflowError:
        return ()
    found = [_interval(question.opening, said, zone) for table in tables for said in table.find(looked_at, now)]
    return tuple({(interval.start, interval.end): interval for interval in reversed(found)}.values())


def times_in(text: str, hints: frozenset[str], now: datetime) -> list[TimeMatch]:
    """The words of a text, in simplified characters, that mean a time at a moment of the wall clock."""
    return [said for table in _tables(text, hints) for said in table.find(text, now)]


def speaks_of_a_time(text: str) -> bool:
    """Whether the opening of a text has any words for a time, whenever it was written."""
    looked_at = simplified(nfkc(text[:MAX_OPENING]))
    return any(True for table in _tables(looked_at, hints_of(looked_at)) for _ in table.find(looked_at, _ANY_DAY))


def _tables(text: str, hints: frozenset[str]) -> list[Rules]:
    """The tables that may have a rule for words of the text."""
    return [table for table in _TABLES if not table.hints.isdisjoint(hints) and table.may_match(text, hints)]


def _interval(text: str, said: TimeMatch, zone: tzinfo) -> TimeInterval:
    return TimeInterval(
        start=unix_seconds(said.span.start, zone),
        end=unix_seconds(said.span.end, zone),
        phrase=text[said.start : said.end].strip(),
        is_vague=said.span.is_vague,
    )
