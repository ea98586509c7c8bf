"""Reads from what a memory says when it happened: "yesterday we swam", 上周三我们搬了家.

Only words that leave one day open count, since a wrong day is worse than none: a weekday needs its week, a date its
year, unless it was lately, and two days in one text are none.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import Memory, MemoryKind, Origin
from hummock.core.time_zone import unix_seconds, wall_clock, zone_of
from hummock.text.normalise import nfkc, simplified
from hummock.text.question import hints_of
from hummock.text.questions import Trait, traits_of
from hummock.text.time_rules import DAY, TimeMatch, midnight
from hummock.text.time_words import times_in
from hummock.text.time_words_en import NUMBERS

MOST_CHARACTERS: Final = 280
"""A longer text tells of more than one day, or of none."""

LATELY: Final = timedelta(days=92)
"""Age up to which a date without a year is taken for the last such day. An older one may be meant to come."""

_NOON: Final = timedelta(hours=12)
_EN_COUNT: Final = rf"(?:{'|'.join(sorted(NUMBERS, key=len, reverse=True))}|\d+)"
_EN_WEEKDAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_PART: Final = r"(?: (?:morning|noon|lunchtime|afternoon|evening|night))?"
_ZH_DAY: Final = r"(?:昨|今|明|前|后|大前|大后)[天日]|[昨今明][早晚夜]"
_SAYS_ONE_DAY: Final = re.compile(
    rf"(?:yesterday|today|tomorrow|(?:the )?day (?:before yesterday|after tomorrow)){_PART}|last night|tonight"
    rf"|this (?:morning|afternoon|evening)|earlier today|{_EN_COUNT} days? (?:ago|back)"
    rf"|(?:last|this) {_EN_WEEKDAY}{_PART}"
    rf"|(?:{_ZH_DAY}).*|[\d一二三四五六七八九十两]+[天日][以之]?前|[上下这本]一?个?(?:周|星期|礼拜)[一二三四五六日天].*",
    re.IGNORECASE,
)
"""Words that count from the day on which they are said, and name one day."""

_DATE: Final = re.compile(r"月.*[日号]|\d[-/.]\d|[a-z].*\d|\d.*[a-z]", re.IGNORECASE)
_WITH_YEAR: Final = re.compile(r"(?:19|20)\d\d|年|\byear\b", re.IGNORECASE)


def told_time(memory: Memory) -> float | None:
    """The time of what a memory tells, in Unix seconds, which `Filter` compares; None if it is not known.

    It is the event time; without one the day that the text names; for a session's turn else its create time.
    """
    if memory.event_time is not None:
        return memory.event_time
    read = event_time_read(memory)
    return memory.create_time if read is None and memory.session_id else read


def event_time_read(memory: Memory) -> float | None:
    """The day that the text of a note without an event time names; None for what tells of no one day, or asks."""
    if memory.event_time is not None or memory.payload is None:
        return None
    if memory.kind is not MemoryKind.NOTE or memory.origin is Origin.INDEXER:
        return None
    return event_time_of(memory.payload.content, memory.create_time, zone_of(memory.time_zone))


def when_said(
    event_time: NDArray[np.float64], create_time: NDArray[np.float64], traits: NDArray[np.uint8]
) -> NDArray[np.float64]:
    """When notes were told, (n,) Unix seconds: their event times, unless these are unknown or were read from texts."""
    return np.where(np.isnan(event_time) | (traits & Trait.DATED != 0), create_time, event_time)


@lru_cache(64)
def event_time_of(text: str, told_s: float, zone: tzinfo = UTC) -> float | None:
    """The time of the one day that a text names, in Unix seconds; None if it names none or several, or asks.

    Where the words count days ("yesterday", 三天前), it is the clock's time at which they are said, on that day: so it
    lies on that day in most other time zones too. Else it is noon of that day.

    Args:
        text: As written.
        told_s: When it was said, in Unix seconds.
        zone: Time zone of the one who said it.
    """
    if len(text) > MOST_CHARACTERS:
        return None
    read = simplified(nfkc(text))
    try:
        now = wall_clock(told_s, zone)
        found = times_in(read, hints_of(read), now)
        if not found or traits_of(text) & (Trait.ASKS | Trait.ASKS_WITHIN):
            return None
        later = times_in(read, hints_of(read), now + DAY)
        moments = {_moment(read, said, shifted, now) for said, shifted in zip(found, later, strict=True)}
    except (OverflowError, ValueError):
        return None
    moment = moments.pop() if len(moments) == 1 else None
    return None if moment is None else unix_seconds(moment, zone)


def _moment(text: str, said: TimeMatch, a_day_later: TimeMatch, now: datetime) -> datetime | None:
    """When something happened, by words for a time and what they mean a day later; None if they leave it open."""
    span, words = said.span, text[said.start : said.end].strip()
    if span.is_vague or span.end - span.start > DAY:
        return None
    day = midnight(span.start)
    if _SAYS_ONE_DAY.fullmatch(words):
        counts_days = midnight(a_day_later.span.start) - day == DAY
        return now + (day - midnight(now)) if counts_days else day + _NOON
    if not _DATE.search(words):
        return None
    is_of_lately = timedelta(0) <= now - span.start <= LATELY
    return day + _NOON if is_of_lately or _WITH_YEAR.search(words) else None
