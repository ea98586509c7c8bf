"""Questions of a conversation that depend on what its user said before (set `follow-ups`).

Of each pair two subjects have a fact of the same kind, so that the question alone fits both. `alone` asks it without
its session, and `standing` asks paraphrases of `data/facts.tsv`, complete by themselves, in the sessions of others.
Facts and conversations are ours (`data/follow_ups.tsv`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path

from bench.eval.changes import told_at
from bench.eval.noise import rows
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT
from hummock_client.v1 import memory_pb2 as pb

_SET = "follow-ups"
_LATER = timedelta(days=30)
_LANGUAGES = ("zh", "en")


def follow_ups(_: Path) -> Corpus:
    """A project for each pair, in which the other facts lie between; a session for each conversation."""
    between = [told_at(name, text, place) for place, (name, text, _) in enumerate(rows("facts.tsv"))]
    projects: dict[str, list[pb.Memory]] = {}
    asked: dict[str, list[Question]] = {language: [] for language in _LANGUAGES}
    for place, (name, known, wanted, earlier, asks) in enumerate(rows("follow_ups.tsv")):
        project = f"{_SET}-{name[:-1]}"
        told = projects.setdefault(project, [*between])
        told += [told_at(f"{name}-known", known, place), told_at(f"{name}-wanted", wanted, place)]
        told += [_turn(name, place, number, text) for number, text in enumerate(earlier.split("|"))]
        asked[name[:2]].append(
            Question(
                id=name,
                project=project,
                text=asks,
                relevant=frozenset({f"{name}-wanted"}),
                as_of=told_at("", "", place, 2 * _LATER).create_time,
                session=name,
            )
        )
    return Corpus(
        name=_SET,
        projects={name: tuple(told) for name, told in projects.items()},
        slices=tuple(
            Slice(set=_SET, name=way.named(name), questions=questions, way=way)
            for name, questions in _slices(asked)
            for way in (AGENT, CHAT)
        ),
    )


def _turn(session: str, place: int, number: int, text: str) -> pb.Memory:
    turn = told_at(f"{session}-turn-{number}", text, place, _LATER + timedelta(minutes=number))
    turn.session_id = session
    return turn


def _slices(asked: dict[str, list[Question]]) -> Iterator[tuple[str, tuple[Question, ...]]]:
    for language, questions in asked.items():
        yield language, tuple(questions)
        yield f"{language}-alone", tuple(replace(each, session="") for each in questions)
    conversations = cycle([each for questions in asked.values() for each in questions])
    yield (
        "standing",
        tuple(
            replace(other, id=f"standing-{name}", text=text, relevant=frozenset({name}))
            for (name, _, text), other in zip(rows("facts.tsv"), conversations, strict=False)
        ),
    )
