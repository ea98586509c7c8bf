"""The sample as values: memories to learn, a repository to index, questions to ask."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["LEARNING_RECORD", "DOMAIN_KNOWLEDGE", "CODE_FRAGMENT", "NOTE", "ENTRY"]
Origin: TypeAlias = Literal["MANUAL", "SUMMARY", "USER_INPUT", "AI_OUTPUT", "INDEXER"]
_TUPLES = frozenset({"tags", "source_files", "aliases", "key_files"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMemory:
    """A memory of the sample; the fields that its kind does not use are empty."""

    kind: Kind
    origin: Origin
    id: str
    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    question: str = ""
    answer: str = ""
    source_files: tuple[str, ...] = ()
    domain: str = ""
    aliases: tuple[str, ...] = ()
    key_files: tuple[str, ...] = ()
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that the sample answers; `language` is `zh`, `en` or `code`."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Memories and questions, in the order in which they are to be learnt and asked."""

    memories: tuple[SampleMemory, ...]
    questions: tuple[Question, ...]


def load_sample() -> Sample:
    """The sample that ships with the package."""
    data = json.loads(files("hummock.demo").joinpath("records.json").read_text(encoding="utf-8"))
    return Sample(
        memories=tuple(_memory(record) for record in data["memories"]),
        questions=tuple(Question(**question) for question in data["questions"]),
    )


@contextmanager
def sample_repository() -> Iterator[Path]:
    """The folder of the small Java project `repayment`; it may be a temporary copy, gone at exit."""
    with as_file(files("hummock.demo").joinpath("repayment")) as folder:
        yield folder


def _memory(record: dict[str, object]) -> SampleMemory:
    fields = {
        name: tuple(value) if name in _TUPLES and isinstance(value, list) else value for name, value in record.items()
    }
    return SampleMemory(**fields)  # type: ignore[arg-type] # JSON has no types; an unknown field raises TypeError
