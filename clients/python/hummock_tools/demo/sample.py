"""The sample: memories to learn, a repository to index, questions to ask."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, TypeAlias

from hummock_client.v1 import memory_pb2

Kind: TypeAlias = Literal["LEARNING_RECORD", "DOMAIN_KNOWLEDGE", "CODE_FRAGMENT", "NOTE", "ENTRY"]
Origin: TypeAlias = Literal["MANUAL", "SUMMARY", "USER_INPUT", "AI_OUTPUT", "INDEXER"]


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
    data = json.loads(files("hummock_tools.demo").joinpath("records.json").read_text(encoding="utf-8"))
    for record in data["memories"]:
        record.update({name: tuple(value) for name, value in record.items() if isinstance(value, list)})
    return Sample(
        memories=tuple(SampleMemory(**record) for record in data["memories"]),
        questions=tuple(Question(**question) for question in data["questions"]),
    )


@contextmanager
def sample_repository() -> Iterator[Path]:
    """The folder of the small Java project `repayment`; it may be a temporary copy, gone at exit."""
    with as_file(files("hummock_tools.demo").joinpath("repayment")) as folder:
        yield folder


def sample_input(memory: SampleMemory) -> memory_pb2.Memory:
    """The memory to learn; its id makes a second run change nothing."""
    made = memory_pb2.Memory(
        id=memory.id,
        kind=memory_pb2.MemoryKind.Value(f"MEMORY_KIND_{memory.kind}"),
        origin=memory_pb2.Origin.Value(f"ORIGIN_{memory.origin}"),
        title=memory.title,
        # A domain's summary is its body; saying it twice would only cost tokens.
        summary="" if memory.kind == "DOMAIN_KNOWLEDGE" else memory.summary,
        tags=memory.tags,
        content=memory.content,
    )
    if memory.kind == "LEARNING_RECORD":
        made.learning_record.CopyFrom(
            memory_pb2.LearningRecord(question=memory.question, answer=memory.answer, source_files=memory.source_files)
        )
    elif memory.kind == "DOMAIN_KNOWLEDGE":
        made.domain_knowledge.CopyFrom(
            memory_pb2.DomainKnowledge(
                domain=memory.domain, aliases=memory.aliases, summary=memory.summary, key_files=memory.key_files
            )
        )
    return made
