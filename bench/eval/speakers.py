"""What several people say of one subject, and questions what one of them said (set `speakers`).

Each of ten subjects is a session in which four people say something, some of them of each other. Two are asked about in
words of their own, and the other two in common ones (`-framed`). The slices `-full` ask the same where speakers are
stored by another, longer name than people ask with. All words are ours (`data/speakers.json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.eval.diary import timestamp
from bench.eval.made import Draws
from bench.eval.noise import DATA, rows
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT
from hummock_client.v1 import memory_pb2 as pb

_FIRST = datetime(2026, 3, 2, 9, tzinfo=UTC)
_BETWEEN = timedelta(days=3)
_ASKED = _FIRST + timedelta(days=60)


def speakers(_: Path) -> Corpus:
    """Two projects for each language: speakers by the names of the questions, and by longer ones."""
    words = json.loads((DATA / "speakers.json").read_text(encoding="utf-8"))
    projects = {}
    slices = []
    for language, said in words.items():
        for name, people in ((language, {each: each for each in said["people"]}), (f"{language}-full", said["people"])):
            project = f"speakers-{name}"
            projects[project] = (*_facts(), *_turns(said["subjects"], people))
            for kind, texts in (("", _worded(said)), ("-framed", _framed(said))):
                questions = tuple(_question(project, *asked) for asked in texts)
                slices += [
                    Slice(set="speakers", name=way.named(f"{name}{kind}"), questions=questions, way=way)
                    for way in (AGENT, CHAT)
                ]
    return Corpus(name="speakers", projects=projects, slices=tuple(slices))


def _facts() -> Iterator[pb.Memory]:
    for place, (id_, text, _) in enumerate(rows("facts.tsv")):
        yield _memory(id_, text, _FIRST + place * timedelta(hours=20))


def _turns(subjects: Mapping[str, Any], people: Mapping[str, str]) -> Iterator[pb.Memory]:
    for place, (subject, said) in enumerate(subjects.items()):
        for number, (asked_for, name) in enumerate(people.items()):
            turn = _memory(f"{subject}-{asked_for}", said[asked_for], _FIRST + place * _BETWEEN + _minutes(number))
            turn.session_id, turn.speaker = f"meeting-{place}", name
            yield turn


def _worded(said: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Subjects, people and what is asked about what they said."""
    for subject, of in said["subjects"].items():
        yield from ((subject, who, text) for who, text in of["asks"].items())


def _framed(said: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for subject, of in said["subjects"].items():
        for who in (each for each in said["people"] if each not in of["asks"]):
            yield subject, who, Draws(name=f"{subject} {who}").one(said["frames"]).format(who=who, s=subject)


def _question(project: str, subject: str, who: str, text: str) -> Question:
    id_ = f"{subject}-{who}"
    return Question(id=id_, project=project, text=text, relevant=frozenset({id_}), as_of=timestamp(_ASKED))


def _memory(id_: str, text: str, told: datetime) -> pb.Memory:
    return pb.Memory(
        id=id_, kind=pb.MEMORY_KIND_NOTE, origin=pb.ORIGIN_USER_INPUT, content=text, create_time=timestamp(told)
    )


def _minutes(number: int) -> timedelta:
    return timedelta(minutes=2 * number)
