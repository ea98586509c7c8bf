"""Parses times relative to an event: 马拉松前两周, "the day after the move".

The words give the event to search for and the offset from its day; only a search can find the day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import lru_cache, partial
from typing import Final, NamedTuple

from hummock.core.recall import TimeInterval
from hummock.core.time_zone import unix_seconds, wall_clock
from hummock.text import time_parts, time_rules, time_words_en, time_words_zh
from hummock.text.question import MAX_OPENING, Question
from hummock.text.questions import names_nothing
from hummock.text.time_rules import Span, Unit, any_of

_ZH_UNITS: Final = {word: unit for word, unit in time_words_zh.UNITS.items() if unit is not Unit.HOUR}
_EN_UNITS: Final = {"day": Unit.DAY, "week": Unit.WEEK, "month": Unit.MONTH, "year": Unit.YEAR}


class EventReference(NamedTuple):
    """A time relative to an event.

    Attributes:
        event: The words for the event, possibly with some of little content.
        phrase: All words of the time, as written.
        lies: Computes the time from the day of the event.
    """

    event: str
    phrase: str
    lies: Callable[[Span], Span]

    def interval(self, happened_s: float, zone: tzinfo = UTC) -> TimeInterval | None:
        """The time, where the event happened at these Unix seconds; None beyond the calendar."""
        try:
            day = time_rules.unit_span(wall_clock(happened_s, zone), Unit.DAY, 0)
            span = self.lies(day)
        except (OverflowError, ValueError):
            return None
        start, end = (unix_seconds(each, zone) for each in (span.start, span.end))
        return TimeInterval(start=start, end=end, phrase=self.phrase, is_counted=True)


@lru_cache(32)
def parse_event_reference(question: Question) -> EventReference | None:
    """Parse the first time relative to an event in the opening of a question; None if there is none.

    Other times in the text are not considered (`time_words`).
    """
    if _HINTS.isdisjoint(question.hints) or not _HINT.search(question.text, 0, MAX_OPENING):
        return None
    looked_at = question.simple_opening
    for start, end, event, lies in (*_in_chinese(looked_at), *_in_english(looked_at)):
        if not names_nothing(event):
            return EventReference(event, question.opening[start:end].strip(), lies)
    return None


_Lies = Callable[[Span], Span]
_Told = tuple[int, int, str, _Lies]


def _in_chinese(text: str) -> Iterator[_Told]:
    """Yield events that precede the words for the offset, in the same clause."""
    for found in _BEHIND_AN_EVENT.finditer(text):
        clause = _CLAUSE.search(text, 0, found.start())
        event = clause[0] if clause else ""
        with suppress(ValueError):  # 前两三天 leaves open how long before
            yield found.start() - len(event), found.end(), event, _lies_in_chinese(found)


def _in_english(text: str) -> Iterator[_Told]:
    for found in _BEFORE_AN_EVENT.finditer(text):
        yield found.start(), found.end(), found["event"].strip(), _lies_in_english(found)


def _itself(day: Span) -> Span:
    return day


def _around(unit: Unit) -> Callable[[Span], Span]:
    return lambda day: time_rules.unit_span(day.start, unit, 0)


def _days_around(day: Span) -> Span:
    return Span(start=day.start - _DAYS_AROUND, end=day.end + _DAYS_AROUND)


def _lies_in_chinese(found: re.Match[str]) -> Callable[[Span], Span]:
    if found["side"]:
        unit, count = _ZH_UNITS[found["unit"]], time_words_zh.numeral(found["count"])
        return partial(time_parts.beside, unit=unit, count=count, is_before=found["side"] == "前")
    if found["unit_away"]:
        unit, count = _ZH_UNITS[found["unit_away"]], time_words_zh.numeral(found["count_away"])
        return partial(time_parts.away, unit=unit, count=count, is_before=False)
    if found["next"]:
        return partial(time_parts.beside, unit=Unit.DAY, count=1, is_before=False)
    if found["around"]:
        return _days_around
    return _around(_ZH_UNITS[found["unit_of"]]) if found["unit_of"] else _itself


def _lies_in_english(found: re.Match[str]) -> Callable[[Span], Span]:
    if found["of"]:
        return _around(_EN_UNITS[found["of"].lower()])
    return time_words_en.counted_from(found)


_HINT: Final = re.compile(
    r"[前后後次翌隔那当當]|第二天|(?:day|week|month|year)s? (?:before|after|prior|following|of) ", re.IGNORECASE
)
_HINTS: Final = frozenset((*"前后次翌隔那当第", *(f"{unit}{end}" for unit in _EN_UNITS for end in ("", "s"))))
"""The hint has one of them among its `hints_of`."""

_DAYS_AROUND: Final = 3 * time_rules.DAY
_COUNT = time_words_zh.A_FEW_CHARACTERS
_ZH_UNIT = any_of(_ZH_UNITS)
_CLAUSE: Final = re.compile(r"[^\s，。？！、,.?!;:；：]{1,40}\Z")
_BEHIND_AN_EVENT: Final = re.compile(
    r"的?(?:"
    rf"[之以]?(?P<side>[前后])的?(?P<count>{_COUNT})个?(?P<unit>{_ZH_UNIT})(?!前|后)"
    rf"|(?P<count_away>{_COUNT})个?(?P<unit_away>{_ZH_UNIT})[之以]?后"
    r"|(?P<next>第二天|次日|翌日|隔天)|那一?个?(?P<unit_of>周|星期|礼拜|月|年)|那一?天|当[天日]|(?P<around>前后)"
    r")[里内]?"
)
_EN_UNIT = any_of(_EN_UNITS)
_A_COUNT = rf"(?:a )?(?P<count>{any_of(time_words_en.NUMBERS)}|[1-9]\d?)(?: of)?"
_BEFORE_AN_EVENT: Final = re.compile(
    rf"\b(?:(?:(?P<within>(?:in|during|over|within) the )?{_A_COUNT}"
    rf"|(?:(?:on|in|during) )?the) (?P<unit>{_EN_UNIT})s? (?P<side>before|after|prior to|following)"
    rf"|(?:(?:on|in|during) )?the (?P<of>{_EN_UNIT}) of)"
    rf" (?!(?:the |that |this )?(?:{_EN_UNIT})\b)(?P<event>[^,.?!;:]{{2,80}})",
    re.IGNORECASE,
)
