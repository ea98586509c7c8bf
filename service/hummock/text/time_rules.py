"""Spans of time around a moment, and patterns for the words that name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple

from hummock.text.question import lowered

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

NOT_INSIDE_A_NAME: Final = r"(?<![A-Za-z0-9_$@#/\\.:-])"
NOT_BEFORE_A_NAME: Final = r"(?![A-Za-z0-9_(]|[./:\\-][A-Za-z0-9_])"
"""What stands around words of ASCII that are no piece of a name, a path, a call or a number."""

_SHORTEST: Final = timedelta(seconds=1)
"""A span below it is none. Unix seconds are told in floats, whose steps grow to 30 µs at the end of the calendar."""

_SATURDAY = 5
_LEAP_CYCLE_YEARS = 8
"""Years between two leap days at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From `start` to `end`, exclusive; vague when the words leave open how long ago."""

    start: datetime
    end: datetime
    is_vague: bool = False


class Unit(IntEnum):
    """Unit of time."""

    HOUR = 1
    DAY = 2
    WEEK = 3
    MONTH = 4
    YEAR = 5


FIXED: Final = {Unit.HOUR: HOUR, Unit.DAY: DAY, Unit.WEEK: 7 * DAY}
"""Units that are always as long."""

_FEW_FROM = 2
FEW_UP_TO = {Unit.HOUR: 6, Unit.DAY: 7, Unit.WEEK: 5, Unit.MONTH: 6, Unit.YEAR: 6}
"""Least and greatest number of units in "a few"."""


def unit_span(now: datetime, unit: Unit, offset: int) -> Span:
    """The calendar's day, week, month or year that lies `offset` after `now`'s; an hour lies around its middle."""
    if unit is Unit.HOUR:
        middle = now + offset * HOUR
        return Span(start=middle - HOUR / 2, end=middle + HOUR / 2)
    return Span(start=_first(now, unit, offset), end=_first(now, unit, offset + 1))


def few_ago(now: datetime, unit: Unit) -> Span:
    """The units that lie a few before `now`'s."""
    return some_ago(now, unit, _FEW_FROM, FEW_UP_TO[unit])


def some_ago(now: datetime, unit: Unit, fewest: int, most: int) -> Span:
    """The units that lie so many before `now`'s, from the first to the last of them."""
    start = unit_span(now, unit, -most).start
    return Span(start=start, end=unit_span(now, unit, -fewest).end, is_vague=True)


def rolling(now: datetime, unit: Unit, count: int, *, is_vague: bool = False) -> Span:
    """So many units up to `now`."""
    if unit in FIXED:
        start = (now if unit is Unit.HOUR else midnight(now)) - count * FIXED[unit]
    else:
        start = _month(now, -count * (12 if unit is Unit.YEAR else 1)) + (now.day - 1) * DAY
    return Span(start=start, end=now, is_vague=is_vague)


def weekday_span(now: datetime, weekday: int, week_offset: int) -> Span:
    """A weekday (0 is Monday) of the week that lies `week_offset` after the one of `now`."""
    return _day(_first(now, Unit.WEEK, week_offset) + weekday * DAY)


def last_weekday(now: datetime, weekday: int, *, or_today: bool) -> Span:
    """The last such weekday before today, or today itself."""
    days_ago = (now.weekday() - weekday) % 7
    return _day(midnight(now) - (days_ago if days_ago or or_today else 7) * DAY)


def next_weekday(now: datetime, weekday: int) -> Span:
    """The first such weekday after today."""
    return _day(midnight(now) + ((weekday - now.weekday() - 1) % 7 + 1) * DAY)


def weekend(now: datetime, week_offset: int) -> Span:
    """Saturday and Sunday of the week that lies `week_offset` after the one of `now`."""
    monday = _first(now, Unit.WEEK, week_offset)
    return Span(start=monday + _SATURDAY * DAY, end=monday + 7 * DAY)


def last_weekend(now: datetime) -> Span:
    """The last weekend that has begun."""
    return weekend(now, 0 if now.weekday() >= _SATURDAY else -1)


def year_span(now: datetime, year: int) -> Span:
    """A year."""
    return unit_span(now.replace(year=year, month=1, day=1), Unit.YEAR, 0)


def month_span(now: datetime, month: int, year: int | None) -> Span:
    """A month of a year; without one, the last such month that has begun."""
    if year is None:
        year = now.year if month <= now.month else now.year - 1
    return unit_span(now.replace(year=year, month=month, day=1), Unit.MONTH, 0)


def day_span(now: datetime, month: int, day: int, year: int | None) -> Span | None:
    """A day of a month; without a year, the last such day that has begun. None when the calendar has no such day."""
    years = range(now.year, now.year - _LEAP_CYCLE_YEARS - 1, -1) if year is None else (year,)
    for candidate in years:
        try:
            start = midnight(now).replace(year=candidate, month=month, day=day)
        except ValueError:
            continue
        if year is not None or start <= now:
            return _day(start)
    return None


def hours_of(day: Span, first_hour: int, end_hour: int, now: datetime) -> Span:
    """Some hours of a day; those above 24 are of the next one. A day that is over has none that are to come."""
    end = day.start + end_hour * HOUR
    return Span(start=day.start + first_hour * HOUR, end=min(end, now) if day.end <= now else end)


def midnight(now: datetime) -> datetime:
    """The beginning of the day."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(start: datetime) -> Span:
    return Span(start=start, end=start + DAY)


def _first(now: datetime, unit: Unit, offset: int) -> datetime:
    match unit:
        case Unit.DAY:
            return midnight(now) + offset * DAY
        case Unit.WEEK:
            return midnight(now) + (7 * offset - now.weekday()) * DAY
        case Unit.MONTH:
            return _month(now, offset)
        case _:
            return midnight(now).replace(year=now.year + offset, month=1, day=1)


def _month(now: datetime, offset: int) -> datetime:
    months = 12 * now.year + now.month - 1 + offset
    return midnight(now).replace(year=months // 12, month=months % 12 + 1, day=1)


Resolve = Callable[[re.Match[str], datetime], Span | None]


class TimeMatch(NamedTuple):
    """Words that mean a span: where they stand in a text, from `start` to `end`."""

    start: int
    end: int
    span: Span


Lean = Callable[[str, TimeMatch], TimeMatch]
"""What stands beside the words for a time and counts from it ("two weeks before", 前两天): all of it together."""


class Rule(NamedTuple):
    """One form of words.

    Attributes:
        pattern: Groups that are read by `resolve` have names.
        resolve: The span that a match means at a moment; None when it means none (a 30th of February). LookupError,
            OverflowError and ValueError say the same.
    """

    pattern: str
    resolve: Resolve


class Rules:
    """A table of rules; of those that match at one place the first counts.

    Attributes:
        hints: No rule matches a text with none of them among its `question.hints_of`.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        words: Iterable[str] = (),
        hint: str,
        hint_parts: Iterable[str],
        before: str = "",
        after: str = "",
        lean: Lean | None = None,
    ) -> None:
        """Opens a table.

        Args:
            rules: Forms of words.
            words: English words in small letters; no rule matches a text without one of them and without the hint.
            hint: A pattern for small letters, where a word says too little.
            hint_parts: Characters or words, as `hints_of` gives them, of which each match of the hint has one.
            before: What must stand before each match (an assertion of width 0).
            after: What must stand behind it.
            lean: Looks for what counts from a match.
        """
        self.hints = frozenset((*words, *hint_parts))
        self._rules = rules
        self._words = frozenset(words)
        self._hint = re.compile(hint)
        self._before = before
        self._after = after
        self._lean = lean

    @cached_property
    def compiled(self) -> tuple[re.Pattern[str], list[re.Pattern[str]]]:
        """The patterns of all rules together, and of each.

        Made when a text first needs them: that takes longer than a hundred recalls.
        """

        def surrounded(pattern: str) -> re.Pattern[str]:
            return re.compile(f"{self._before}(?:{pattern}){self._after}", re.IGNORECASE)

        # Names may occur once in a pattern, so the joint one has a name a rule and no others.
        bare = [re.sub(r"\(\?P<\w+>", "(?:", rule.pattern) for rule in self._rules]
        joint = "|".join(f"(?P<rule{number}>{pattern})" for number, pattern in enumerate(bare))
        return surrounded(joint), [surrounded(rule.pattern) for rule in self._rules]

    def may_match(self, text: str, hints: frozenset[str]) -> bool:
        """Whether a rule may match a text whose `hints_of` have one of `self.hints`; far sooner than `find`."""
        return not self._words.isdisjoint(hints) or self._hint.search(lowered(text)) is not None

    def find(self, text: str, now: datetime) -> Iterator[TimeMatch]:
        """Words that mean a span, in the order of the text, without overlaps."""
        joint, each = self.compiled
        read = 0
        for found in joint.finditer(text):
            number = int((found.lastgroup or "").removeprefix("rule"))
            match = each[number].match(text, found.start())
            span = None if match is None else _resolved(self._rules[number].resolve, match, now)
            if match is None or span is None or match.start() < read:
                continue
            said = TimeMatch(match.start(), match.end(), span)
            said = said if self._lean is None else self._lean(text, said)
            read = said.end
            yield said


def _resolved(resolve: Resolve, match: re.Match[str], now: datetime) -> Span | None:
    try:
        span = resolve(match, now)
    except (LookupError, OverflowError, ValueError):
        # No such word (to a pattern ı and İ are an i, to a table they are not), no such number, or no such year.
        return None
    return None if span is None or span.end - span.start < _SHORTEST else span


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of these words, the longest that fits."""
    return "|".join(sorted(words, key=len, reverse=True))


def recently(_: re.Match[str], now: datetime) -> Span:
    """The span of "recently": the last two weeks or so."""
    return rolling(now, Unit.WEEK, 2, is_vague=True)


def few_days_ago(_: re.Match[str], now: datetime) -> Span:
    """The span of "the other day"."""
    return few_ago(now, Unit.DAY)


def just_now(_: re.Match[str], now: datetime) -> Span:
    """The span of "just now": the last hour."""
    return rolling(now, Unit.HOUR, 1)
