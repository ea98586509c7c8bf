"""The conversations of MemoryBank as turns of their speakers, over months (sets `talk` and `when`).

Days lie twelve days apart, so that the ten of a user take sixteen weeks; then a decay with age counts. An exchange is
two turns: the user's and the model's. What is asked for a day by its date, or for lately, is left out. The questions of
`when` are ours (`data/when.tsv`), for turns that say when; their words are of the shared set's. In the set `later` the
user adds a sentence of ours to what was said before the model answers, and of an exchange only the answer is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.sets import Corpus, Question, Record, Slice, records, relevant_of
from bench.eval.ways import CHAT, PATHS_COMPARED
from hummock.text import question
from hummock.text.time_words import time_intervals
from hummock_client.v1 import memory_pb2 as pb

DATA = Path(__file__).parent / "data"

_DAYS_APART = 12
_NOON = timedelta(hours=12)
_MODEL = {"zh": "AI伴侣", "en": "AI companion"}
_ADDED = {
    "zh": (
        "不急，你慢慢想。",
        "这事我想了好几天了。",
        "反正就是随便问问。",
        "你知道我一向很犹豫的。",
        "对了，今天有点冷。",
    ),
    "en": (
        "No hurry, take your time.",
        "I have been wondering for days.",
        "Just curious, really.",
        "You know how I am with decisions.",
        "By the way, it is cold today.",
    ),
}
"""Sentences that the user adds before the model answers, in turns."""


def talk(datasets: Path, language: str) -> Corpus:
    """Conversations of one language ("zh", "en"), a project for each user, asked on the day after the last one."""
    told = _Told(datasets, f"talk-{language}", language)
    asked = told.asked(sides="ua")
    when = [
        told.question(f"when-{turn}", row[language], [turn], told.user_of[turn], "u")
        for row in _rows("when.tsv")
        if (turn := row["evidence"]) in told.user_of
    ]
    slices = [
        Slice(set=set_name, name=way.named(language), questions=tuple(questions), way=way)
        for set_name, questions in (("talk", asked), ("when", when))
        for way in (PATHS_COMPARED, CHAT)
    ]
    return told.corpus(slices)


def later(datasets: Path, language: str) -> Corpus:
    """Conversations like those of `talk`, asked for the model's answers, which come two turns later.

    The user adds a sentence before each answer.
    """
    told = _Told(datasets, f"later-{language}", language, adds=_ADDED[language])
    way = PATHS_COMPARED
    return told.corpus([Slice(set="later", name=way.named(language), questions=told.asked(sides="a"), way=way)])


class _Told:
    """The conversations of all users of one language, and what may be asked of them."""

    def __init__(self, datasets: Path, name: str, language: str, adds: Sequence[str] = ()) -> None:
        """`adds` are sentences of which the user says the next one before each answer."""
        self._folder, self._name, self._language = datasets / "memorybank-zh-en", name, language
        told = records(self._folder / f"corpus.{language}.jsonl")
        exchanges = sorted(told, key=lambda each: (each["day"], each["position"]))
        self._first = min(_day(each) for each in exchanges)
        self._projects: dict[str, list[pb.Memory]] = {}
        self._asked_at: dict[str, Timestamp] = {}
        self.user_of = {each["_id"]: each["user"] for each in exchanges}
        for place, record in enumerate(exchanges):
            time = self._first + _DAYS_APART * (_day(record) - self._first) + _NOON
            added = adds[place % len(adds)] if adds else ""
            self._projects.setdefault(self._project(record["user"]), []).extend(turns(record, language, time, added))
            self._asked_at[record["user"]] = _stamp(time + timedelta(days=1))

    def asked(self, sides: str) -> tuple[Question, ...]:
        """The set's questions, but for those that say when; of their exchanges these sides are right."""
        evidence = relevant_of(self._folder / f"qrels.{self._language}.tsv")
        return tuple(
            self.question(each["_id"], each["text"], evidence[each["_id"]], each["user"], sides)
            for each in records(self._folder / f"queries.{self._language}.jsonl")
            if not time_intervals(question.Question(each["text"]), self._first.timestamp())
        )

    def question(self, id_: str, text: str, evidence: Iterable[str], user: str, sides: str) -> Question:
        """A question whose answers are these sides of exchanges: the user's turn ("u"), the model's ("a") or both."""
        return Question(
            id=id_,
            project=self._project(user),
            text=text,
            relevant=frozenset(f"{each}{side}" for each in evidence for side in sides),
            as_of=self._asked_at[user],
        )

    def corpus(self, slices: Iterable[Slice]) -> Corpus:
        """The conversations with what is asked of them."""
        projects = {each: tuple(of) for each, of in self._projects.items()}
        return Corpus(name=self._name, projects=projects, slices=tuple(slices))

    def _project(self, user: str) -> str:
        return f"{self._name}-{user}"


def turns(record: Record, language: str, time: datetime, added: str = "") -> Iterator[pb.Memory]:
    """The user's turn, what the user adds to it, and the model's; exchanges of a day are a minute apart."""
    said = (
        ("u", record["query"], record["user"], pb.ORIGIN_USER_INPUT),
        ("+", added, record["user"], pb.ORIGIN_USER_INPUT),
        ("a", record["response"], _MODEL[language], pb.ORIGIN_AI_OUTPUT),
    )
    for place, (side, text, speaker, origin) in enumerate(said):
        if not text:
            continue
        stamp = _stamp(time + timedelta(minutes=record["position"], seconds=15 * place))
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


def _rows(file: str) -> list[dict[str, str]]:
    header, *lines = (DATA / file).read_text(encoding="utf-8").splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def _day(record: Record) -> datetime:
    return datetime.fromisoformat(record["day"]).replace(tzinfo=UTC)


def _stamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
