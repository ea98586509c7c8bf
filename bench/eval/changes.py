"""Facts that a later sentence replaces without naming them (set `changes`).

The old fact is worded as one asks for it, the new one tells the change. What is asked is how things are now, and of
some how they were. The pairs are ours (`data/changes.tsv`); the facts of `data/facts.tsv` lie between them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.noise import rows
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT
from hummock_client.v1 import memory_pb2 as pb

_PROJECT = "changes"
_FIRST = datetime(2026, 6, 1, 9, tzinfo=UTC)
_BETWEEN = timedelta(hours=7)
_BETWEEN_OLD_AND_NEW = timedelta(days=57)


def changes(_: Path) -> Corpus:
    """Old facts and what became of them in one project, asked three days after the last of them."""
    pairs = rows("changes.tsv")
    last = _FIRST + len(pairs) * _BETWEEN + _BETWEEN_OLD_AND_NEW
    asked = _timestamp(last + timedelta(days=3))
    memories: list[pb.Memory] = []
    questions: dict[str, list[Question]] = {}
    for place, (name, old, new, now, before) in enumerate(pairs):
        memories += [told_at(f"{name}-old", old, place), told_at(f"{name}-new", new, place, _BETWEEN_OLD_AND_NEW)]
        for kind, text, right in ((name[:2], now, "new"), (f"{name[:2]}-before", before, "old")):
            if text:
                relevant = frozenset({f"{name}-{right}"})
                asks = Question(id=f"{name}-{right}", project=_PROJECT, text=text, relevant=relevant, as_of=asked)
                questions.setdefault(kind, []).append(asks)
    memories += [told_at(name, text, place) for place, (name, text, _) in enumerate(rows("facts.tsv"))]
    return Corpus(
        name="changes",
        projects={_PROJECT: tuple(sorted(memories, key=lambda each: each.create_time.ToNanoseconds()))},
        slices=tuple(
            Slice(set="changes", name=way.named(kind), questions=tuple(of_kind), way=way)
            for kind, of_kind in questions.items()
            for way in (AGENT, CHAT)
        ),
    )


def told_at(name: str, text: str, place: int, later: timedelta = timedelta(0)) -> pb.Memory:
    """A note that a user told at this place of a series, or so much later."""
    time = _timestamp(_FIRST + place * _BETWEEN + later)
    return pb.Memory(id=name, kind=pb.MEMORY_KIND_NOTE, origin=pb.ORIGIN_USER_INPUT, content=text, create_time=time)


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
