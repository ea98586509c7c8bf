"""Memories as a client writes them."""

from __future__ import annotations

from typing import Any, TypeVar

from hummock_client.v1 import memory_pb2 as pb

Value = TypeVar("Value")


def each(value: Value, names: str) -> dict[str, Value]:
    """The rows of a table that have one value: names, with spaces between."""
    return dict.fromkeys(names.split(), value)


def note(text: str, *, origin: pb.Origin.ValueType = pb.ORIGIN_MANUAL, id: str = "", **more: Any) -> pb.Memory:
    return pb.Memory(id=id, kind=pb.MEMORY_KIND_NOTE, origin=origin, content=text, **more)


def entry(memory_id: str, title: str, content: str) -> pb.Memory:
    return pb.Memory(id=memory_id, kind=pb.MEMORY_KIND_ENTRY, title=title, content=content)


def record(question: str, answer: str, *files: str, id: str = "") -> pb.Memory:
    detail = pb.LearningRecord(question=question, answer=answer, source_files=files)
    return pb.Memory(id=id, kind=pb.MEMORY_KIND_LEARNING_RECORD, learning_record=detail)


def domain(name: str, summary: str, *, aliases: tuple[str, ...] = (), key_files: tuple[str, ...] = ()) -> pb.Memory:
    detail = pb.DomainKnowledge(domain=name, summary=summary, aliases=aliases, key_files=key_files)
    return pb.Memory(kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE, domain_knowledge=detail)


def fragment(
    path: str, symbol: str, content: str, *, language: str = "python", line: int = 0, **more: Any
) -> pb.Memory:
    detail = pb.CodeFragment(path=path, symbol=symbol, language=language, start_line=line)
    return pb.Memory(kind=pb.MEMORY_KIND_CODE_FRAGMENT, content=content, code_fragment=detail, **more)
