"""Decisions of some months, and questions what was decided on a subject in a week or month (set `weeks`).

In each project ten subjects have six decisions each and are asked about twice. One decision lies in the week or month
that is asked about; the others lie elsewhere, one of them in the weeks beside it, and many have more of the question's
words. Between them lies a diary. All words are ours (`data/weeks.json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from bench.eval.diary import Diarist, Entry, entries, entry_memory, timestamp
from bench.eval.diary_times import Span
from bench.eval.made import Draws
from bench.eval.noise import DATA
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT

_TEAM = Diarist(name="team", first=date(2025, 11, 1), asked=date(2026, 6, 17))
_ASKED = datetime(_TEAM.asked.year, _TEAM.asked.month, _TEAM.asked.day, 9, tzinfo=UTC)
_BESIDE = range(4, 10)
"""Days after or before a span on which a decision beside it may fall."""

_APART = timedelta(days=10)
"""Least distance of the others."""

_SHIFTS = (0, 3, 7)
"""Shifts of the spans against the subjects: each makes a project with other days and other right decisions."""

_WITH_EVENT_TIME = 0.7
_PLACE = 9
"""Position of a decision among the entries of its day, behind those of the diary."""


def weeks(_: Path) -> Corpus:
    """Three projects for each language, asked about each week and month under AGENT and CHAT."""
    words = json.loads((DATA / "weeks.json").read_text(encoding="utf-8"))
    fillers = json.loads((DATA / "diary.json").read_text(encoding="utf-8"))
    projects = {}
    asked: dict[str, list[Question]] = {}
    for (language, said), shift in product(words.items(), _SHIFTS):
        project = f"weeks-{language}-{shift}"
        told = entries(_TEAM, language, fillers[language])
        for subject, decided, spans in _subjects(said, shift):
            told += _decisions(f"{project}-{subject}", decided, spans)
            questions = (_question(project, subject, span, said["frames"]) for span in spans)
            asked.setdefault(language, []).extend(questions)
        projects[project] = tuple(map(entry_memory, told))
    return Corpus(
        name="weeks",
        projects=projects,
        slices=tuple(
            Slice(set="weeks", name=way.named(language), questions=tuple(questions), way=way)
            for way in (AGENT, CHAT)
            for language, questions in asked.items()
        ),
    )


def _subjects(said: Mapping[str, Any], shift: int) -> Iterator[tuple[str, Sequence[str], list[Span]]]:
    """Each subject with its decisions and the two spans that it is asked about."""
    spans = [
        Span(phrase=phrase, first=date.fromisoformat(first), last=date.fromisoformat(last))
        for phrase, first, last in said["spans"]
    ]
    count = len(said["subjects"])
    for number, (subject, decided) in enumerate(said["subjects"].items()):
        yield subject, decided, spans[(number + shift) % count :: count]


def _decisions(name: str, decided: Sequence[str], spans: Sequence[Span]) -> Iterator[Entry]:
    """The decisions on a subject, the first ones in the spans."""
    draws = Draws(name=name)
    texts = list(decided)
    for number, day in enumerate(_days(draws, spans)):
        text = draws.one(texts)
        texts.remove(text)
        id_ = f"{name}-{spans[number].phrase}" if number < len(spans) else f"{name}-{number}"
        yield Entry(id=id_, day=day, place=_PLACE, text=text, has_event_time=draws.happens(_WITH_EVENT_TIME))


def _days(draws: Draws, spans: Sequence[Span]) -> Iterator[date]:
    """A day in each span, one beside each, and as many apart from all."""
    for span in spans:
        yield draws.one(list(_between(span.first, span.last)))
    beside = [
        span.last + timedelta(days=draws.one(_BESIDE)) if late else span.first - timedelta(days=draws.one(_BESIDE))
        for late, span in zip((True, False), spans, strict=True)
    ]
    free = [day for day in _TEAM.days() if not any(_is_in(day, span, _APART) for span in spans)]
    for day in beside:
        is_free = day < _TEAM.asked and not any(_is_in(day, span, timedelta(0)) for span in spans)
        yield day if is_free else draws.one(free)
    for _ in spans:
        yield draws.one(free)


def _question(project: str, subject: str, span: Span, frames: Sequence[str]) -> Question:
    id_ = f"{project}-{subject}-{span.phrase}"
    return Question(
        id=id_,
        project=project,
        text=Draws(name=f"frame {id_}").one(frames).format(s=subject, t=span.phrase),
        relevant=frozenset({id_}),
        as_of=timestamp(_ASKED),
    )


def _between(first: date, last: date) -> Iterator[date]:
    for ahead in range((last - first).days + 1):
        yield first + timedelta(days=ahead)


def _is_in(day: date, span: Span, margin: timedelta) -> bool:
    return span.first - margin <= day <= span.last + margin
