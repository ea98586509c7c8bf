"""The sets: what is learnt, what is asked, what is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.made import drawn, function_names, is_chinese_of_two, mixed_sentence, two_character_words
from bench.eval.ways import CHAT, PATHS_COMPARED, Way
from hummock_client.v1 import memory_pb2 as pb

Record = Mapping[str, Any]
"""A line of a data file; which fields it has depends on the file."""

_LANGUAGES = ("zh", "en")
_FIRST_EXCHANGE = timedelta(hours=12)


def note(record: Record) -> pb.Memory:
    """A paragraph; the titles that some sets have are not used."""
    return pb.Memory(id=record["_id"], kind=pb.MEMORY_KIND_NOTE, content=record["text"])


def code(record: Record) -> pb.Memory:
    """A function in a file of its own; its name is left where it stands, in the code."""
    fragment = pb.CodeFragment(path=f"{record['_id']}.py", language="python")
    return pb.Memory(
        id=record["_id"], kind=pb.MEMORY_KIND_CODE_FRAGMENT, content=record["text"], code_fragment=fragment
    )


def exchange(record: Record) -> pb.Memory:
    """A user's sentence and its answer, a line each, as one memory. The day is its session.

    Exchanges of a day are a minute apart, from noon UTC on; only their order is known. They are learnt then.
    """
    time = _timestamp(_noon(record["day"]) + timedelta(minutes=record["position"]))
    return pb.Memory(
        id=record["_id"],
        kind=pb.MEMORY_KIND_NOTE,
        origin=pb.ORIGIN_USER_INPUT,
        content=f"{record['query']}\n{record['response']}",
        session_id=record["day"],
        speaker=record["user"],
        event_time=time,
        create_time=time,
    )


def day_after(record: Record) -> Timestamp:
    """Noon UTC of the day after an exchange."""
    return _timestamp(_noon(record["day"]) + timedelta(days=1))


def _noon(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC) + _FIRST_EXCHANGE


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


_MOST_MADE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to a project, perhaps in a session, with the ids of the memories that answer it.

    `as_of` of None is the clock's time.

    Where no memory answers it, `relevant` is empty.
    """

    id: str
    project: str
    text: str
    relevant: frozenset[str]
    as_of: Timestamp | None = None
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Questions whose figures are reported together.

    Attributes:
        way: How they are asked.
    """

    set: str
    name: str
    questions: tuple[Question, ...]
    way: Way = PATHS_COMPARED

    @property
    def key(self) -> str:
        """Name of the slice on the command line."""
        return f"{self.set}-{self.name}"

    def limited(self, most: int | None) -> Slice:
        """At most so many questions, always the same ones."""
        taken = drawn((each.id for each in self.questions), most)
        return replace(self, questions=tuple(each for each in self.questions if each.id in taken))


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Memories by project, and the slices that ask for them."""

    name: str
    projects: Mapping[str, tuple[pb.Memory, ...]]
    slices: tuple[Slice, ...]

    @property
    def memory_count(self) -> int:
        """Memories of all projects."""
        return sum(map(len, self.projects.values()))

    @property
    def fingerprint(self) -> str:
        """Changes with every memory and every project, 16 hexadecimal digits."""
        digest = blake2b(digest_size=8)
        for project, memories in self.projects.items():
            for sent in (project.encode(), *(memory.SerializeToString(deterministic=True) for memory in memories)):
                digest.update(len(sent).to_bytes(8, "little") + sent)
        return digest.hexdigest()


def xquad(datasets: Path, language: str) -> Corpus:
    """Encyclopaedic paragraphs of one language ("zh", "en"); the Chinese ones with words of two characters."""
    folder = datasets / "xquad-en-zh"
    corpus, relevant = records(folder / f"corpus.{language}.jsonl"), relevant_of(folder / "qrels.tsv")
    project = f"xquad-{language}"
    asked = {each: records(folder / f"queries.{each}.jsonl") for each in ("zh", "en")}
    slices = [_slice("xquad", language, project, asked[language], relevant)]
    if language == "en":
        slices.append(_slice("xquad", "zh-en", project, asked["zh"], relevant))
    else:
        slices.append(_words("xquad", project, corpus, asked["zh"]))
        slices.append(_slice("xquad", "en-zh", project, asked["en"], relevant))
    return Corpus(name=project, projects={project: tuple(map(note, corpus))}, slices=tuple(slices))


def xquad_mixed(datasets: Path) -> Corpus:
    """Every other paragraph Chinese, the others English; asked in both, in either, and with sentences of half of each.

    A slice such as "both-zh-en" has the Chinese questions of which the answer is stored in English.
    """
    folder = datasets / "xquad-en-zh"
    corpora = {each: records(folder / f"corpus.{each}.jsonl") for each in _LANGUAGES}
    pairs = zip(corpora["zh"], corpora["en"], strict=True)
    stored = [chinese if is_chinese_of_two(chinese["_id"]) else english for chinese, english in pairs]
    asked = {each: records(folder / f"queries.{each}.jsonl") for each in _LANGUAGES}
    english_text = {each["_id"]: each["text"] for each in asked["en"]}
    mixed = [{**each, "text": mixed_sentence(each["text"], english_text[each["_id"]])} for each in asked["zh"]]
    relevant, project = relevant_of(folder / "qrels.tsv"), "xquad-mixed"

    def answered_in(language: str, question: Record) -> bool:
        return any(is_chinese_of_two(answer) is (language == "zh") for answer in relevant[question["_id"]])

    slices = [_slice("xquad", "mixed", project, mixed, relevant)]
    for asking, language in product(_LANGUAGES, _LANGUAGES):
        answered = [each for each in asked[asking] if answered_in(language, each)]
        slices.append(_slice("xquad", f"both-{asking}-{language}", project, answered, relevant))
    return Corpus(name=project, projects={project: tuple(map(note, stored))}, slices=tuple(slices))


def cmrc(datasets: Path) -> Corpus:
    """Chinese encyclopaedic paragraphs."""
    folder, project = datasets / "cmrc2018-dev-zh", "cmrc-zh"
    corpus, asked = records(folder / "corpus.jsonl"), records(folder / "queries.jsonl")
    slices = (
        _slice("cmrc", "zh", project, asked, relevant_of(folder / "qrels.tsv")),
        _words("cmrc", project, corpus, asked),
    )
    return Corpus(name=project, projects={project: tuple(map(note, corpus))}, slices=slices)


def cosqa(datasets: Path) -> Corpus:
    """Python functions, asked for in the words of a web search, and by their own names."""
    folder, project = datasets / "cosqa-code", "cosqa"
    corpus = records(folder / "corpus.jsonl")
    names = function_names({each["_id"]: each["text"] for each in corpus}, _MOST_MADE)
    slices = (
        _slice("cosqa", "code", project, records(folder / "queries.jsonl"), relevant_of(folder / "qrels.tsv")),
        _made("cosqa", "identifiers", project, names),
    )
    return Corpus(name=project, projects={project: tuple(map(code, corpus))}, slices=slices)


def memorybank(datasets: Path, language: str) -> Corpus:
    """Conversations of one language ("zh", "en"): a project for each user, a session for each day.

    Questions are asked on the day after the user's last exchange, so that "May 2nd" is of that year.
    """
    folder = datasets / "memorybank-zh-en"
    name = f"memorybank-{language}"
    by_project: dict[str, list[pb.Memory]] = {}
    asked_at: dict[str, Timestamp] = {}
    for record in sorted(records(folder / f"corpus.{language}.jsonl"), key=lambda each: str(each["day"])):
        by_project.setdefault(f"{name}-{record['user']}", []).append(exchange(record))
        asked_at[record["user"]] = day_after(record)
    relevant = relevant_of(folder / f"qrels.{language}.tsv")
    questions = tuple(
        Question(
            id=each["_id"],
            project=f"{name}-{each['user']}",
            text=each["text"],
            relevant=relevant[each["_id"]],
            as_of=asked_at[each["user"]],
        )
        for each in records(folder / f"queries.{language}.jsonl")
    )
    slices = tuple(
        Slice(set="memorybank", name=way.named(language), questions=questions, way=way)
        for way in (PATHS_COMPARED, CHAT)
    )
    return Corpus(name=name, projects={each: tuple(of) for each, of in by_project.items()}, slices=slices)


CORPORA: Mapping[str, Callable[[Path], Corpus]] = {
    "xquad-zh": lambda datasets: xquad(datasets, "zh"),
    "xquad-en": lambda datasets: xquad(datasets, "en"),
    "xquad-mixed": xquad_mixed,
    "cmrc-zh": cmrc,
    "memorybank-zh": lambda datasets: memorybank(datasets, "zh"),
    "memorybank-en": lambda datasets: memorybank(datasets, "en"),
    "cosqa": cosqa,
}
"""Small ones first."""


def _slice(
    set_name: str, name: str, project: str, asked: Iterable[Record], relevant: Mapping[str, frozenset[str]]
) -> Slice:
    questions = (
        Question(id=each["_id"], project=project, text=each["text"], relevant=relevant[each["_id"]]) for each in asked
    )
    return Slice(set=set_name, name=name, questions=tuple(questions))


def _words(set_name: str, project: str, corpus: Iterable[Record], asked: Iterable[Record]) -> Slice:
    texts = {each["_id"]: each["text"] for each in corpus}
    words = two_character_words(texts, (each["answer"] for each in asked), _MOST_MADE)
    return _made(set_name, "words", project, words)


def _made(set_name: str, name: str, project: str, holders: Mapping[str, frozenset[str]]) -> Slice:
    questions = (
        Question(id=f"{name}:{text}", project=project, text=text, relevant=ids) for text, ids in holders.items()
    )
    return Slice(set=set_name, name=name, questions=tuple(questions))


def records(path: Path) -> list[Record]:
    """The lines of a data file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def relevant_of(path: Path) -> dict[str, frozenset[str]]:
    """Ids of the relevant memories by question."""
    found: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        question, memory, score = line.split("\t")
        if int(score) > 0:
            found.setdefault(question, set()).add(memory)
    return {question: frozenset(memories) for question, memories in found.items()}
