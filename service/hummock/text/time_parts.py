"""Parts of months and years, seasons, halves of units, and spans that lie so long before or after another one."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto

from hummock.text.time_rules import DAY, FIXED, HOUR, Span, Unit, midnight, month_span, rolling, unit_span

_THIRD_DAYS = 10
_END_DAYS = 7
_MONTHS_OF_A_SEASON = 3
_HALF_DAYS = {Unit.MONTH: (12, 19), Unit.YEAR: (153, 213)}
"""What half of a unit may mean in days, from the fewest to the most."""


_REACH = {Unit.HOUR: HOUR, Unit.DAY: 0 * DAY, Unit.WEEK: 3 * DAY, Unit.MONTH: 10 * DAY, Unit.YEAR: 60 * DAY}
"""How far what lies so many of a unit away from a day may lie from there."""


class Part(Enum):
    """Part of a month or a year."""

    EARLY = auto()
    MIDDLE = auto()
    LATE = auto()
    END = auto()
    FIRST_HALF = auto()
    SECOND_HALF = auto()


class Season(Enum):
    """A season of the northern half of the earth, by its first month; a winter is of the year in which it begins."""

    SPRING = 3
    SUMMER = 6
    AUTUMN = 9
    WINTER = 12


def part_of_month(month: Span, part: Part) -> Span:
    """Ten days of a month, late what is left, at its end a week; or one half of it."""
    days = (month.end - month.start) // DAY
    first, end = {
        Part.EARLY: (0, _THIRD_DAYS),
        Part.MIDDLE: (_THIRD_DAYS, 2 * _THIRD_DAYS),
        Part.LATE: (2 * _THIRD_DAYS, days),
        Part.END: (max(0, days - _END_DAYS), days),
        Part.FIRST_HALF: (0, 15),
        Part.SECOND_HALF: (15, days),
    }[part]
    return Span(start=month.start + first * DAY, end=month.start + end * DAY)


def week_of_month(month: Span, number: int) -> Span:
    """Seven days of a month: of number 0 the first ones, of -1 the last ones."""
    start = month.end - 7 * DAY if number < 0 else month.start + number * 7 * DAY
    return Span(start=start, end=start + 7 * DAY)


def week_of(days: Span) -> Span:
    """The week in which a day or a feast begins. Raises: ValueError for what is longer than a week."""
    if days.end - days.start > FIXED[Unit.WEEK]:
        raise ValueError(f"{days.end - days.start} lie in no week")
    return unit_span(days.start, Unit.WEEK, 0)


def part_of_year(year: Span, part: Part) -> Span:
    """The first or the last two months, the four in the middle, or six of them."""
    first, end = {
        Part.EARLY: (0, 2),
        Part.MIDDLE: (4, 8),
        Part.LATE: (10, 12),
        Part.END: (10, 12),
        Part.FIRST_HALF: (0, 6),
        Part.SECOND_HALF: (6, 12),
    }[part]
    start = year.start
    return Span(start=unit_span(start, Unit.MONTH, first).start, end=unit_span(start, Unit.MONTH, end).start)


def season_span(now: datetime, season: Season, year: int | None) -> Span:
    """Three months of a year; without one, of the last that have begun."""
    if year is None:
        year = now.year if season.value <= now.month else now.year - 1
    first = month_span(now, season.value, year).start
    return Span(start=first, end=unit_span(first, Unit.MONTH, _MONTHS_OF_A_SEASON).start)


def half_ago(now: datetime, unit: Unit) -> Span:
    """Half of a unit before now. Raises: LookupError for a week, of which nobody speaks so."""
    if unit is Unit.HOUR:
        return Span(start=now - HOUR, end=now)
    if unit is Unit.DAY:
        return rolling(now, Unit.HOUR, 24)
    fewest, most = _HALF_DAYS[unit]
    return Span(start=unit_span(now, Unit.DAY, -most).start, end=unit_span(now, Unit.DAY, -fewest).end, is_vague=True)


def more_than_ago(now: datetime, unit: Unit, count: int) -> Span:
    """Between so many units before now and one more."""
    if unit is Unit.HOUR:
        return Span(start=now - (count + 1) * HOUR, end=now - count * HOUR, is_vague=True)
    start, end = (rolling(now, unit, number).start for number in (count + 1, count))
    return Span(start=start, end=end, is_vague=True)


def beside(span: Span, unit: Unit, count: int, *, is_before: bool) -> Span:
    """So many units that end where a span begins, or begin where it ends. Raises: ValueError for none."""
    if count < 1:
        raise ValueError(f"{count} units are no time")
    if is_before:
        return Span(start=_moved(span.start, unit, -count), end=span.start)
    return Span(start=span.end, end=_moved(span.end, unit, count))


def away(span: Span, unit: Unit, count: int, *, is_before: bool) -> Span:
    """What lies so many units before a span or behind it: a day for days, for longer units half of one either way."""
    sign = -1 if is_before else 1
    moment = _moved(span.start if is_before else span.end - DAY, unit, sign * count)
    return Span(start=moment - _REACH[unit], end=moment + DAY + _REACH[unit])


def _moved(moment: datetime, unit: Unit, count: int) -> datetime:
    if unit in FIXED:
        return moment + count * FIXED[unit]
    months = unit_span(moment, Unit.MONTH, count * (12 if unit is Unit.YEAR else 1)).start
    return months + (moment.day - 1) * DAY + (moment - midnight(moment))
