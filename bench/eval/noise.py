"""Questions that nothing stored answers, and paraphrases of what is stored (sets `noise` and `facts`).

Whoever asks something else wants no memory at all; whoever asks in other words wants the one. Facts, questions and
paraphrases are ours (`data/facts.tsv`, `data/noise.tsv`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT, CODE, Way
from hummock_client.v1 import memory_pb2 as pb

DATA = Path(__file__).parent / "data"

_PROJECT = "facts"
_FIRST = datetime(2026, 9, 1, 8, tzinfo=UTC)
_BETWEEN = timedelta(hours=20)
"""A fact is told about every day; together they take seven weeks."""


def facts(_: Path) -> Corpus:
    """Sixty facts about two people, one Chinese, one English; paraphrases, and what nothing answers."""
    told = rows("facts.tsv")
    memories = tuple(_fact(place, id_, text) for place, (id_, text, _) in enumerate(told))
    asked = _timestamp(_FIRST + len(told) * _BETWEEN)
    paraphrases = tuple(
        Question(id=id_, project=_PROJECT, text=text, relevant=frozenset({id_}), as_of=asked) for id_, _, text in told
    )
    slices = [Slice(set="facts", name=way.named("paraphrase"), questions=paraphrases, way=way) for way in _ways()]
    return Corpus(
        name="facts", projects={_PROJECT: memories}, slices=(*slices, *noise_slices("facts", _PROJECT, asked))
    )


def noise_slices(store: str, project: str, as_of: Timestamp | None = None) -> Iterator[Slice]:
    """Questions that a project of that content does not answer, asked as a user asks; for code there is no chat."""
    questions = tuple(
        Question(id=id_, project=project, text=text, relevant=frozenset(), as_of=as_of)
        for id_, of_store, text in rows("noise.tsv")
        if of_store == store
    )
    for way in _ways():
        if store != "code" or way.preset != "CHAT":
            # The number of hits that the preset gives.
            as_given = Way(preset=way.preset, paths=way.paths, is_shipped=True, top_k=None)
            yield Slice(set="noise", name=way.named(store), questions=questions, way=as_given)


def rows(name: str) -> list[tuple[str, ...]]:
    """The rows of one of the data files, without its head."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()[1:]
    return [tuple(line.split("\t")) for line in lines]


def _ways() -> tuple[Way, ...]:
    return AGENT, CHAT, CODE


def _fact(place: int, id_: str, text: str) -> pb.Memory:
    return pb.Memory(
        id=id_,
        kind=pb.MEMORY_KIND_NOTE,
        origin=pb.ORIGIN_USER_INPUT,
        content=text,
        create_time=_timestamp(_FIRST + place * _BETWEEN),
    )


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
