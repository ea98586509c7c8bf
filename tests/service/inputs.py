"""Memories as a client writes them."""

from __future__ import annotations

from typing import Any

from hummock.v1 import memory_pb2 as pb


def note(text: str, *, origin: pb.Origin.ValueType = pb.ORIGIN_MANUAL, id: str = "", **more: Any) -> pb.MemoryInput:
    return pb.MemoryInput(
        id=id, kind=pb.MEMORY_KIND_NOTE, origin=origin, payload=pb.MemoryPayload(content=text), **more
    )


def record(question: str, answer: str, *files: str, id: str = "") -> pb.MemoryInput:
    detail = pb.LearningRecord(question=question, answer=answer, source_files=files)
    return pb.MemoryInput(id=id, kind=pb.MEMORY_KIND_LEARNING_RECORD, payload=pb.MemoryPayload(learning_record=detail))


def domain(
    name: str, summary: str, *, aliases: tuple[str, ...] = (), key_files: tuple[str, ...] = ()
) -> pb.MemoryInput:
    detail = pb.DomainKnowledge(domain=name, summary=summary, aliases=aliases, key_files=key_files)
    return pb.MemoryInput(kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE, payload=pb.MemoryPayload(domain_knowledge=detail))


def fragment(path: str, symbol: str, content: str, *, language: str = "python") -> pb.MemoryInput:
    detail = pb.CodeFragment(path=path, symbol=symbol, language=language)
    return pb.MemoryInput(
        kind=pb.MEMORY_KIND_CODE_FRAGMENT, payload=pb.MemoryPayload(content=content, code_fragment=detail)
    )
