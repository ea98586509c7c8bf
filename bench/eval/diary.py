"""A year of days in a diary, generated, and questions that ask by time alone (set `diary`).

Two diarists write in each language, each for somewhat more than a year, and are asked on the day after their last.
What is right is told by the calendar: every entry of the day or span. The words are ours (`data/diary.json`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.diary_times import Span, days, events, spans
from bench.eval.made import Draws, drawn
from bench.eval.noise import DATA
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT
from hummock_client.v1 import memory_pb2 as pb

_WRITTEN = 0.8
"""Share of the days that have an entry at all."""
_ENTRIES = (1, 1, 1, 2, 2, 3)
_WITH_EVENT_TIME = 0.7
"""Share of the entries that say when it happened; others are known by when they were stored, in the day's session."""
_DATED_DAYS = 24
_DAYS_OF_A_YEAR = 365
_EVENING, _ASKED = 20, 9
"""Hours in UTC: when the first entry of a day is stored, and when questions are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diarist:
    """A writer of a diary, from the first day to the day before the questions."""

    name: str
    first: date
    asked: date

    def days(self) -> Iterator[date]:
        """All days of the diary."""
        for ahead in range((self.asked - self.first).days):
            yield self.first + timedelta(days=ahead)


DIARISTS = (
    Diarist(name="ada", first=date(2025, 1, 4), asked=date(2026, 1, 8)),
    Diarist(name="bo", first=date(2024, 6, 20), asked=date(2025, 7, 9)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A diary entry; `place` counts the day's entries from 0."""

    id: str
    day: date
    place: int
    text: str
    has_event_time: bool


def diary(_: Path) -> Corpus:
    """All diaries, a project each; questions by day, by span and by what happened, under AGENT and CHAT."""
    words = json.loads((DATA / "diary.json").read_text(encoding="utf-8"))
    written = {(who, language): entries(who, language, words[language]) for language in words for who in DIARISTS}
    asked: dict[str, list[Question]] = {}
    for (who, language), found in written.items():
        for kind, span in _spans(who, language, found, words[language]["events"]):
            question = _question(who, language, span, found, words[language]["frames"])
            if question.relevant:
                asked.setdefault(f"{language}-{kind}", []).append(question)
    return Corpus(
        name="diary",
        projects={
            _project(who, language): tuple(map(entry_memory, found)) for (who, language), found in written.items()
        },
        slices=tuple(
            Slice(set="diary", name=way.named(name), questions=tuple(questions), way=way)
            for way in (AGENT, CHAT)
            for name, questions in asked.items()
        ),
    )


def entries(who: Diarist, language: str, words: Mapping[str, Any]) -> list[Entry]:
    """The entries of a diary, in the order of time; no two have the same text, and every event has its day."""
    draws = Draws(name=f"diary {who.name} {language}")
    event_days = dict(zip(_event_days(who, len(words["events"])), words["events"].values(), strict=True))
    seen: set[str] = set()
    found: list[Entry] = []
    for day in who.days():
        count = draws.one(_ENTRIES) if draws.happens(_WRITTEN) else 0
        texts = [event_days[day]] if day in event_days else []
        texts += [_sentence(words, draws, seen) for _ in range(count)]
        for place, text in enumerate(texts):
            has_event_time = draws.happens(_WITH_EVENT_TIME)
            id_ = f"{language}-{who.name}-{day}-{place}"
            found.append(Entry(id=id_, day=day, place=place, text=text, has_event_time=has_event_time))
    return found


def _event_days(who: Diarist, count: int) -> list[date]:
    """Days spread over the diary, the last of them some weeks before it ends."""
    apart = (who.asked - who.first).days // (count + 1)
    return [who.first + timedelta(days=apart * number) for number in range(1, count + 1)]


def _sentence(words: Mapping[str, Any], draws: Draws, seen: set[str]) -> str:
    while True:
        template = draws.one(words["templates"])
        # Every slot is drawn, whether the sentence has it or not, so that templates may be mended one by one.
        filled = {name: draws.one(choices) for name, choices in words["slots"].items()}
        text = str(template.format(**filled))
        text = text[:1].upper() + text[1:]
        if text not in seen:
            seen.add(text)
            return text


def _spans(
    who: Diarist, language: str, found: Sequence[Entry], happened: Collection[str]
) -> Iterator[tuple[str, Span]]:
    """Spans to ask for, each with its slice."""
    # Of the last year alone: a day of a month without its year is the last such day.
    written = {each.day.isoformat() for each in found if (who.asked - each.day).days < _DAYS_OF_A_YEAR}
    draws = Draws(name=f"days {who.name} {language}")
    for written_day in sorted(drawn(written, _DATED_DAYS)):
        yield "day", days(language, date.fromisoformat(written_day), draws)
    for span in spans(language, who.asked):
        yield ("day" if span.is_a_day else "span"), span
    for name, day in zip(happened, _event_days(who, len(happened)), strict=True):
        for span in events(language, name, day):
            yield "event", span


def _question(who: Diarist, language: str, span: Span, found: Iterable[Entry], frames: Sequence[str]) -> Question:
    id_ = f"{language}-{who.name}-{span.phrase}"
    text = Draws(name=f"frame {id_}").one(frames).format(t=span.phrase)
    asked = datetime(who.asked.year, who.asked.month, who.asked.day, _ASKED, tzinfo=UTC)
    return Question(
        id=id_,
        project=_project(who, language),
        text=text,
        relevant=frozenset(each.id for each in found if span.first <= each.day <= span.last),
        as_of=timestamp(asked),
    )


def entry_memory(entry: Entry) -> pb.Memory:
    """The entry as it is learnt: with its event time, or as a turn of the day's session."""
    evening = datetime(entry.day.year, entry.day.month, entry.day.day, _EVENING, tzinfo=UTC)
    stored = evening + timedelta(minutes=7 * entry.place)
    return pb.Memory(
        id=entry.id,
        kind=pb.MEMORY_KIND_NOTE,
        origin=pb.ORIGIN_USER_INPUT,
        content=entry.text,
        session_id="" if entry.has_event_time else f"diary-{entry.day}",
        event_time=timestamp(stored - timedelta(hours=3)) if entry.has_event_time else None,
        create_time=timestamp(stored),
    )


def _project(who: Diarist, language: str) -> str:
    return f"diary-{language}-{who.name}"


def timestamp(time: datetime) -> Timestamp:
    """A time as the contract has it."""
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
