"""The demo's sample as memories on the wire."""

from __future__ import annotations

from hummock.demo import SampleMemory
from hummock.v1 import memory_pb2 as pb

__all__ = ["sample_input"]


def sample_input(memory: SampleMemory) -> pb.MemoryInput:
    """The memory to learn; its id makes a second run change nothing."""
    payload = pb.MemoryPayload(content=memory.content)
    if memory.kind == "LEARNING_RECORD":
        payload.learning_record.CopyFrom(
            pb.LearningRecord(question=memory.question, answer=memory.answer, source_files=memory.source_files)
        )
    elif memory.kind == "DOMAIN_KNOWLEDGE":
        payload.domain_knowledge.CopyFrom(
            pb.DomainKnowledge(
                domain=memory.domain, aliases=memory.aliases, summary=memory.summary, key_files=memory.key_files
            )
        )
    return pb.MemoryInput(
        id=memory.id,
        kind=pb.MemoryKind.Value(f"MEMORY_KIND_{memory.kind}"),
        origin=pb.Origin.Value(f"ORIGIN_{memory.origin}"),
        index=pb.MemoryIndex(
            title=memory.title,
            # A domain's summary is its body; saying it twice would only cost tokens.
            summary="" if memory.kind == "DOMAIN_KNOWLEDGE" else memory.summary,
            tags=memory.tags,
        ),
        payload=payload,
    )
