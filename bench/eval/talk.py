"""The conversations of MemoryBank as turns of their speakers, over months (sets `talk` and `when`).

Days lie twelve days apart, so that the ten of a user take sixteen weeks; then a decay with age counts. An exchange is
two turns: the user's and the model's. What is asked for a day by its date, or for lately, is left out. The questions of
`when` are ours (`data/when.tsv`), for turns that say when; their words are of the shared set's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.sets import Corpus, Question, Record, Slice, records, relevant_of
from bench.eval.ways import CHAT, PATHS_COMPARED
from hummock.text.time_words import time_intervals
from hummock.v1 import memory_pb2 as pb

DATA = Path(__file__).parent / "data"

_DAYS_APART = 12
_NOON = timedelta(hours=12)
_MODEL = {"zh": "AI伴侣", "en": "AI companion"}


def talk(datasets: Path, language: str) -> Corpus:
    """Conversations of one language ("zh", "en"), a project for each user, asked on the day after the last one."""
    folder, name = datasets / "memorybank-zh-en", f"talk-{language}"
    exchanges = sorted(records(folder / f"corpus.{language}.jsonl"), key=lambda each: (each["day"], each["position"]))
    first = min(_day(each) for each in exchanges)
    projects: dict[str, list[pb.Memory]] = {}
    asked_at: dict[str, Timestamp] = {}
    user_of = {each["_id"]: each["user"] for each in exchanges}
    for record in exchanges:
        time = first + _DAYS_APART * (_day(record) - first) + _NOON
        projects.setdefault(_project(name, record["user"]), []).extend(turns(record, language, time))
        asked_at[record["user"]] = _stamp(time + timedelta(days=1))
    evidence = relevant_of(folder / f"qrels.{language}.tsv")
    asked = [
        _question(name, each["_id"], each["text"], evidence[each["_id"]], each["user"], asked_at)
        for each in records(folder / f"queries.{language}.jsonl")
        if not time_intervals(each["text"], first.timestamp())
    ]
    when = [
        _question(name, f"when-{turn}", row[language], [turn], user_of[turn], asked_at, "u")
        for row in _rows("when.tsv")
        if (turn := row["evidence"]) in user_of
    ]
    slices = [
        Slice(set=set_name, name=way.named(language), questions=tuple(questions), way=way)
        for set_name, questions in (("talk", asked), ("when", when))
        for way in (PATHS_COMPARED, CHAT)
    ]
    return Corpus(name=name, projects={each: tuple(of) for each, of in projects.items()}, slices=tuple(slices))


def turns(record: Record, language: str, time: datetime) -> Iterator[pb.Memory]:
    """The user's turn and the model's, half a minute apart; exchanges of a day are a minute apart."""
    said = (
        ("u", record["query"], record["user"], pb.ORIGIN_USER_INPUT),
        ("a", record["response"], _MODEL[language], pb.ORIGIN_AI_OUTPUT),
    )
    for place, (side, text, speaker, origin) in enumerate(said):
        stamp = _stamp(time + timedelta(minutes=record["position"], seconds=30 * place))
        yield pb.Memory(
            id=f"{record['_id']}{side}",
            kind=pb.MEMORY_KIND_NOTE,
            origin=origin,
            content=text,
            session_id=record["day"],
            speaker=speaker,
            event_time=stamp,
            create_time=stamp,
        )


def _question(
    name: str,
    id_: str,
    text: str,
    evidence: Iterable[str],
    user: str,
    asked_at: Mapping[str, Timestamp],
    sides: str = "ua",
) -> Question:
    """Of the turns of an exchange, the user's ("u") and the model's ("a"), each of these sides answers."""
    return Question(
        id=id_,
        project=_project(name, user),
        text=text,
        relevant=frozenset(f"{each}{side}" for each in evidence for side in sides),
        as_of=asked_at[user],
    )


def _rows(file: str) -> list[dict[str, str]]:
    header, *lines = (DATA / file).read_text(encoding="utf-8").splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def _project(name: str, user: str) -> str:
    return f"{name}-{user}"


def _day(record: Record) -> datetime:
    return datetime.fromisoformat(record["day"]).replace(tzinfo=UTC)


def _stamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
