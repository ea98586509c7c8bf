"""English words for times. A row of the table is a form of words; longer forms stand before those they begin with."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from hummock.text import time_parts, time_rules
from hummock.text.time_holidays import ENGLISH_HOLIDAYS, holiday_span
from hummock.text.time_parts import Part, Season
from hummock.text.time_rules import NOT_BEFORE_A_NAME, NOT_INSIDE_A_NAME, Rule, Rules, Span, TimeMatch, Unit, any_of

_HOLIDAY_NAMES: Final = [name.replace("'", "['’]").replace(".", r"\.") for name in ENGLISH_HOLIDAYS]
_UNITS: Final = {"hour": Unit.HOUR, "day": Unit.DAY, "week": Unit.WEEK, "month": Unit.MONTH, "year": Unit.YEAR}
_COUNTED: Final = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS: Final = {"a": 1, "an": 1, "couple": 2} | {word: number for number, word in enumerate(_COUNTED, 1)}
_MONTH_NAMES: Final = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|october oct|"
    "november nov|december dec"
)
_MONTHS: Final = {name: number for number, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()}
_WEEKDAY_NAMES: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_WEEKDAYS: Final = {name: number for number, name in enumerate(_WEEKDAY_NAMES)}
_OFFSETS: Final = {"last": -1, "previous": -1, "this": 0, "next": 1}
_HOURS: Final = {"morning": (4, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
_PARTS: Final = {
    "early": Part.EARLY,
    "beginning of": Part.EARLY,
    "start of": Part.EARLY,
    "mid": Part.MIDDLE,
    "middle of": Part.MIDDLE,
    "late": Part.LATE,
    "end of": Part.END,
    "first half of": Part.FIRST_HALF,
    "second half of": Part.SECOND_HALF,
}
_SEASONS: Final = {
    "spring": Season.SPRING,
    "summer": Season.SUMMER,
    "autumn": Season.AUTUMN,
    "fall": Season.AUTUMN,
    "winter": Season.WINTER,
}
_WEEKS: Final = {
    **{word: number for number, words in enumerate(("first 1st", "second 2nd", "third 3rd")) for word in words.split()},
    **dict.fromkeys(("fourth", "4th"), 3),
    **dict.fromkeys(("last", "final"), -1),
}
"""Weeks of a month, from 0; -1 is the last one."""
_DAYS: Final = {"day before yesterday": -2, "yesterday": -1, "today": 0, "day after tomorrow": 2, "tomorrow": 1}


def _unit(match: re.Match[str]) -> Unit:
    return _UNITS[match["unit"].lower()]


def _night(now: datetime, offset: int) -> Span:
    return time_rules.hours_of(time_rules.unit_span(now, Unit.DAY, offset), *_HOURS["night"], now)


def _named_day(match: re.Match[str], now: datetime) -> Span:
    return _part_of(time_rules.unit_span(now, Unit.DAY, _DAYS[match["name"].lower()]), match, now)


def _ago(match: re.Match[str], now: datetime) -> Span:
    unit = _unit(match)
    return time_rules.few_ago(now, unit) if match["few"] else time_rules.unit_span(now, unit, -numeral(match["count"]))


def _up_to_now(match: re.Match[str], now: datetime) -> Span:
    unit = _unit(match)
    if match["few"]:
        return time_rules.rolling(now, unit, time_rules.FEW_UP_TO[unit], is_vague=True)
    return time_rules.rolling(now, unit, numeral(match["count"] or "a"))


def _weekend(match: re.Match[str], now: datetime) -> Span:
    which = match["which"].lower()
    return time_rules.weekend(now, _OFFSETS[which]) if which in _OFFSETS else time_rules.last_weekend(now)


def _weekday(match: re.Match[str], now: datetime) -> Span:
    weekday = _WEEKDAYS[match["weekday"].lower()]
    which = (match["which"] or "").lower()
    if which == "next":
        day = time_rules.next_weekday(now, weekday)
    elif which == "this":
        day = time_rules.weekday_span(now, weekday, 0)
    else:
        day = time_rules.last_weekday(now, weekday, or_today=which != "last")
    return _part_of(day, match, now)


def _date(match: re.Match[str], now: datetime) -> Span | None:
    day = time_rules.day_span(now, _MONTHS[match["month"].lower()], int(match["day"]), _year(match, now))
    return None if day is None else _part_of(day, match, now)


def _month(match: re.Match[str], now: datetime) -> Span:
    return time_rules.month_span(now, _MONTHS[match["month"].lower()], _year(match, now))


def _last_month(match: re.Match[str], now: datetime) -> Span:
    """The month before this one that has the name: said in May, "last May" is a year ago."""
    month = _MONTHS[match["month"].lower()]
    return time_rules.month_span(now, month, now.year - (month >= now.month))


def _of_year(match: re.Match[str], now: datetime) -> Span:
    return time_rules.year_span(now, int(match["year"]))


def _week_of_a_month(match: re.Match[str], now: datetime) -> Span:
    return time_parts.week_of_month(_month(match, now), _WEEKS[match["number"].lower()])


def _week_of_this_month(match: re.Match[str], now: datetime) -> Span:
    month = time_rules.unit_span(now, Unit.MONTH, _OFFSETS[match["which"].lower()])
    return time_parts.week_of_month(month, _WEEKS[match["number"].lower()])


def _part_of_a_month(match: re.Match[str], now: datetime) -> Span:
    return time_parts.part_of_month(_month(match, now), _PARTS[match["which_part"].lower()])


def _part_of_a_unit(match: re.Match[str], now: datetime) -> Span:
    unit, part = _unit(match), _PARTS[match["which_part"].lower()]
    whole = time_rules.unit_span(now, unit, _OFFSETS[(match["which"] or "this").lower()])
    return time_parts.part_of_month(whole, part) if unit is Unit.MONTH else time_parts.part_of_year(whole, part)


def _part_of_a_year(match: re.Match[str], now: datetime) -> Span:
    return time_parts.part_of_year(_of_year(match, now), _PARTS[match["which_part"].lower()])


def _season(match: re.Match[str], now: datetime) -> Span:
    season = _SEASONS[match["season"].lower()]
    which = (match["which"] or "").lower()
    if which == "last":
        # TimeMatch in summer, "last summer" is a year ago.
        last = time_parts.season_span(now, season, None)
        return last if last.end <= now else time_parts.season_span(now, season, last.start.year - 1)
    year = now.year + _OFFSETS[which] if which else _year(match, now)
    return time_parts.season_span(now, season, year)


def _holiday(match: re.Match[str], now: datetime) -> Span:
    holiday = ENGLISH_HOLIDAYS[match["holiday"].lower().replace("’", "'")]
    which = (match["which"] or "").lower()
    if which in ("this", "next"):
        coming = holiday(now.year)
        return holiday(now.year + 1) if which == "next" and coming.end <= now else coming
    return holiday_span(holiday, now, _year(match, now))


def _leaning(text: str, said: TimeMatch) -> TimeMatch:
    """With "two weeks before", "the week of" and the like, where it stands before the words."""
    own = _PREPOSITION.match(text, said.start, said.end)
    before = text[max(0, said.start - _LONGEST_LEAN) : own.end() if own else said.start]
    beside = _BESIDE.search(before)
    found = beside or _WEEK_OF.search(before)
    if found is None:
        return said
    try:
        span = counted_from(found)(said.span) if beside else _week_of(said.span, found["begins"])
    except (OverflowError, ValueError):
        return said
    return TimeMatch(max(0, said.start - _LONGEST_LEAN) + found.start(), said.end, span)


def _week_of(day: Span, begins: str | None) -> Span:
    """The week of a day, or seven days from it on. Raises: ValueError for what is longer than a week."""
    week = time_parts.week_of(day)
    return Span(start=day.start, end=day.start + (week.end - week.start)) if begins else week


def counted_from(found: re.Match[str]) -> Callable[[Span], Span]:
    """What lies so many units beside a span, or that far away; reads `unit`, `side`, `count` and `within`."""
    lies = time_parts.away if found["count"] and not found["within"] else time_parts.beside
    is_before = found["side"].lower() not in ("after", "following")
    return partial(lies, unit=_unit(found), count=numeral(found["count"] or "a"), is_before=is_before)


def _part_of(day: Span, match: re.Match[str], now: datetime) -> Span:
    part = match["part"]
    return time_rules.hours_of(day, *_HOURS[part.lower()], now) if part else day


def numeral(word: str) -> int:
    """A number in words or digits. Raises: ValueError when it is none."""
    return NUMBERS.get(word.lower()) or int(word)


def _year(match: re.Match[str], now: datetime) -> int | None:
    if match["year"]:
        return int(match["year"])
    return now.year + _OFFSETS[match["of_year"].lower()] if match["of_year"] else None


_A_COUNT = rf"(?P<few>(?:an? )?(?:few|several))|(?:a )?(?P<count>{any_of(NUMBERS)}|[1-9]\d{{0,2}})(?: of)?"
_UNIT = rf"(?P<unit>{any_of(_UNITS)})"
_PART = rf"(?P<part>{any_of(_HOURS)})"
_MAYBE_PART = rf"(?: {_PART})?"
_A_WEEKDAY = rf"(?P<weekday>{any_of(_WEEKDAYS)}){_MAYBE_PART}"
_A_MONTH = rf"(?P<month>{any_of(_MONTHS)})\b\.?"
_A_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_YEAR_BEHIND = rf",? (?:of )?(?:{_YEAR}|(?P<of_year>last|this|next) year)"
_ORDINAL = r"(?:st|nd|rd|th)"
_CAPITAL = r"(?-i:(?=[A-Z]))"
# In small letters these are verbs, or words of their own.
_IS_MONTH = rf"(?:{_CAPITAL}|(?!(?:may|march|mar|jan|sep|dec)\b))"
_HAS_ORDINAL = rf"(?=[a-z]+\.? \d\d?{_ORDINAL})"
_MAYBE_YEAR = rf"(?:{_YEAR_BEHIND})?"
_REST = rf"{_ORDINAL}?{_MAYBE_YEAR}{_MAYBE_PART}"
_A_SEASON = rf"(?P<season>{any_of(_SEASONS)})(?:time)?"
_A_WEEK_OF = rf"(?:the )?(?P<number>{any_of(_WEEKS)}) week (?:of|in)"
_UNIT_OR_NAME = rf"(?:{any_of(_UNITS)}|[A-Za-z])"
_WHICH_PART = rf"(?:the )?(?P<which_part>{any_of(_PARTS)})[ -](?:the )?"
_A_HOLIDAY = rf"(?P<holiday>{any_of(_HOLIDAY_NAMES)})(?! (?:eggs?|trees?|cards?|movies?|songs?|resolutions?)\b)"
_MAYBE_WHICH = r"(?:(?P<which>last|this|next) )?"
_LONGEST_LEAN = 48
_PREPOSITION: Final = re.compile(r"(?:before|after) ", re.IGNORECASE)
_BESIDE: Final = re.compile(
    rf"\b(?:(?P<within>(?:in|during|over|within) the )?(?:a )?(?P<count>{any_of(NUMBERS)}|[1-9]\d?)(?: of)?|the) "
    rf"(?P<unit>{any_of(_UNITS)})s? (?P<side>before|after|prior to|following) (?:the )?(?:on )?\Z",
    re.IGNORECASE,
)
_WEEK_OF: Final = re.compile(
    r"\bthe week (?:of|(?P<begins>starting|beginning|from)(?: on)?) (?:the )?(?:on )?\Z", re.IGNORECASE
)
_UP_TO_NOW = r"(?:the|these|over|in|within|during)(?: the)?"
_IN = r"(?:in|since|during|until|before|after|from|by|around)"

# The verb "may" stands in most texts: it counts only with what makes it a month. The hint begins with the word and
# looks behind from there, so that the search skips ahead.
_BEFORE_MAY = (
    r"\d \d(?:st|nd|rd|th) in since during until before after from by around this last on of the early mid late"
)
_MAY_AS_A_MONTH = (
    rf"may\b(?:{'|'.join(f'(?<={word}[ -]may)' for word in _BEFORE_MAY.split())}"
    r"|(?<![a-z0-9]may)\.?,? (?:of |the )?(?:\d|last|this|next))"
)

ENGLISH: Final = Rules(
    [
        Rule(rf"(?P<name>{any_of(_DAYS)}){_MAYBE_PART}", _named_day),
        Rule(r"last night", lambda _, now: _night(now, -1)),
        Rule(r"tonight", lambda _, now: _night(now, 0)),
        Rule(rf"this {_PART}", lambda match, now: _part_of(time_rules.unit_span(now, Unit.DAY, 0), match, now)),
        Rule(r"a fortnight (?:ago|back)", lambda _, now: time_parts.half_ago(now, Unit.MONTH)),
        Rule(rf"{_A_WEEK_OF} {_A_MONTH}{_MAYBE_YEAR}", _week_of_a_month),
        Rule(rf"{_A_WEEK_OF} (?P<which>last|previous|this|next) month", _week_of_this_month),
        Rule(rf"half an? {_UNIT} (?:ago|back)", lambda match, now: time_parts.half_ago(now, _unit(match))),
        Rule(
            rf"(?:more than|over) (?P<count>{any_of(NUMBERS)}|[1-9]\d?) {_UNIT}s? (?:ago|back)",
            lambda match, now: time_parts.more_than_ago(now, _unit(match), numeral(match["count"])),
        ),
        Rule(
            rf"(?:the )?{_UNIT} before last(?! {_UNIT_OR_NAME})",
            lambda match, now: time_rules.unit_span(now, _unit(match), -2),
        ),
        Rule(rf"(?:{_A_COUNT}) {_UNIT}s? (?:ago|back)", _ago),
        Rule(rf"{_UP_TO_NOW} last (?:{_A_COUNT}) {_UNIT}s?", _up_to_now),
        Rule(rf"{_UP_TO_NOW} past (?:(?:{_A_COUNT}) )?{_UNIT}s?", _up_to_now),
        Rule(rf"{_WHICH_PART}{_MAYBE_WHICH}(?P<unit>month|year)", _part_of_a_unit),
        Rule(rf"{_WHICH_PART}{_A_MONTH}{_MAYBE_YEAR}", _part_of_a_month),
        Rule(rf"{_WHICH_PART}{_YEAR}", _part_of_a_year),
        Rule(rf"(?:the )?{_MAYBE_WHICH}{_A_HOLIDAY}{_MAYBE_YEAR}", _holiday),
        Rule(rf"(?P<which>last|this|next) {_A_SEASON}", _season),
        Rule(rf"(?:the )?(?P<which>){_A_SEASON}{_YEAR_BEHIND}", _season),
        Rule(r"(?P<which>last|this|next|the) weekend", _weekend),
        Rule(
            rf"(?P<which>last|previous|this|next) {_UNIT}",
            lambda match, now: time_rules.unit_span(now, _unit(match), _OFFSETS[match["which"].lower()]),
        ),
        Rule(rf"(?:(?P<which>last|this|next)|on|since|until|by) {_A_WEEKDAY}", _weekday),
        Rule(rf"{_CAPITAL}(?P<which>){_A_WEEKDAY}", _weekday),
        Rule(rf"(?:on |{_IS_MONTH}|{_HAS_ORDINAL}){_A_MONTH} (?:the )?{_A_DAY}{_REST}", _date),
        Rule(rf"{_A_DAY}{_ORDINAL}?(?: of)? {_IS_MONTH}{_A_MONTH}{_MAYBE_YEAR}{_MAYBE_PART}", _date),
        Rule(rf"last {_IS_MONTH}{_A_MONTH}", _last_month),
        Rule(rf"(?:{_IN}|this) {_A_MONTH}(?! (?:the )?\d\d?(?!\d)){_MAYBE_YEAR}", _month),
        Rule(rf"{_A_MONTH}{_YEAR_BEHIND}", _month),
        Rule(rf"(?:{_IN}|the year|year) {_YEAR}", _of_year),
        Rule(r"recently|lately", time_rules.recently),
        Rule(r"the other day", time_rules.few_days_ago),
        Rule(r"just now|earlier today", time_rules.just_now),
    ],
    words=(
        *(each for word in (*_UNITS, *_SEASONS) for each in (word, f"{word}s", f"{word}time")),
        *(*_HOURS, *(name for name in _MONTHS if name != "may"), *_WEEKDAYS, "recently", "lately"),
        *("yesterday", "today", "tomorrow", "tonight", "weekend", "fortnight"),
        *(max(re.findall("[a-z]+", name), key=len) for name in ENGLISH_HOLIDAYS),
    ),
    hint=rf"(?:19|20)\d\d(?<=[a-z][ -]\d\d\d\d)|just now|{_MAY_AS_A_MONTH}",
    hint_parts=("1", "2", "now", "may"),
    before=NOT_INSIDE_A_NAME,
    after=NOT_BEFORE_A_NAME,
    lean=_leaning,
)
