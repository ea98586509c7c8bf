"""Questions that a project answers, and such that it nearly answers (set `nothing`).

A project about an apiary, a pottery, an observatory, a narrowboat, a printing press and others: notes, learning records
and code in Chinese, English and four programming languages. Beside what each memory answers it has questions that no
memory answers: an attribute of a thing that is told of (`attr`), a thing like it (`near`), and its words in another
sense (`sense`). All is ours (`data/nothing.json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.noise import DATA
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import RecallPath, Way
from hummock.text.normalise import is_han
from hummock_client.v1 import memory_pb2 as pb

PRESETS = ("AGENT", "CHAT", "CODE")
UNANSWERED = ("attr", "near", "sense")
ANSWERED = "a"

_ALL = "nothing"
_OF_LANGUAGE = {"zh": "nothing-zh", "en": "nothing-en", "code": "nothing-en"}
"""Projects of one language, by the kind of their memories; a question in the other language is not asked there."""
_FIRST = datetime(2026, 7, 1, 8, tzinfo=UTC)
_BETWEEN = timedelta(hours=9)


def nothing(_: Path) -> Corpus:
    """All memories in one project, and again in one for each language; each question under three presets.

    Slices of the latter end in `-alone`.
    """
    told: list[Mapping[str, Any]] = json.loads((DATA / "nothing.json").read_text(encoding="utf-8"))
    asked = _timestamp(_FIRST + len(told) * _BETWEEN)
    questions: dict[str, list[Question]] = {}
    for memory in told:
        for name, question in _questions(memory, asked):
            questions.setdefault(name, []).append(question)
            kind = _kind(memory["id"])
            if "across" not in name and is_han(question.text) == (kind == "zh"):
                alone = replace(question, project=_OF_LANGUAGE[kind])
                questions.setdefault(f"{name}-alone", []).append(alone)
    memories = tuple(_memory(place, memory) for place, memory in enumerate(told))
    ways = [Way(preset=preset, paths=(RecallPath.RERANKED,), is_shipped=True, top_k=None) for preset in PRESETS]
    return Corpus(
        name="nothing",
        projects={
            _ALL: memories,
            **{
                project: tuple(each for each in memories if _OF_LANGUAGE[_kind(each.id)] == project)
                for project in dict.fromkeys(_OF_LANGUAGE.values())
            },
        },
        slices=tuple(
            Slice(set="nothing", name=way.named(name), questions=tuple(questions[name]), way=way)
            for name in sorted(questions)
            for way in ways
        ),
    )


def _questions(memory: Mapping[str, Any], asked: Timestamp) -> Iterator[tuple[str, Question]]:
    """The questions of a memory, each with its slice: the kind of memory, and whether something answers it."""
    language = _kind(memory["id"])
    for kind in (ANSWERED, *UNANSWERED):
        for number, text in enumerate(memory.get(kind, ())):
            is_across = language != "code" and is_han(text) != (language == "zh")
            is_answered = kind == ANSWERED
            yield (
                f"{'known' if is_answered else 'unknown'}-{'across' if is_across else language}",
                Question(
                    id=f"{memory['id']}-{kind}-{number}",
                    project=_ALL,
                    text=text,
                    relevant=frozenset({memory["id"]} if is_answered else ()),
                    as_of=asked,
                ),
            )


def _kind(memory_id: str) -> str:
    return memory_id[:2] if memory_id[:2] in ("zh", "en") else "code"


def _memory(place: int, told: Mapping[str, Any]) -> pb.Memory:
    memory = pb.Memory(
        id=told["id"],
        kind=pb.MEMORY_KIND_NOTE,
        origin=pb.ORIGIN_MANUAL,
        create_time=_timestamp(_FIRST + place * _BETWEEN),
    )
    if "r" in told:
        question, answer = told["r"]
        memory.kind, memory.origin = pb.MEMORY_KIND_LEARNING_RECORD, pb.ORIGIN_SUMMARY
        memory.learning_record.CopyFrom(pb.LearningRecord(question=question, answer=answer))
        return memory
    memory.content = told["m"]
    if "lang" in told:
        memory.kind, memory.origin = pb.MEMORY_KIND_CODE_FRAGMENT, pb.ORIGIN_INDEXER
        fragment = pb.CodeFragment(path=told["path"], symbol=told["symbol"], language=told["lang"])
        memory.code_fragment.CopyFrom(fragment)
    return memory


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
