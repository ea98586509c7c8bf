"""Replies that hold memories, and replies to writes."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.learn import Deleted, Learned, Updated
from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, Payload
from hummock.rpc import present_values as values
from hummock.v1 import context_service_pb2, memory_pb2, memory_service_pb2


def memory(stored: Memory) -> memory_pb2.Memory:
    """A memory; its payload is unset in the index view."""
    return memory_pb2.Memory(
        id=stored.id,
        kind=memory_pb2.MemoryKind.ValueType(stored.kind),
        origin=memory_pb2.Origin.ValueType(stored.origin),
        index=memory_pb2.MemoryIndex(title=stored.index.title, summary=stored.index.summary, tags=stored.index.tags),
        payload=None if stored.payload is None else _payload(stored.payload),
        session_id=stored.session_id,
        speaker=stored.speaker,
        event_time=None if stored.event_time is None else values.timestamp(stored.event_time),
        emotion_label=stored.emotion_label,
        trust=stored.trust,
        supersedes=stored.supersedes,
        create_time=values.timestamp(stored.create_time),
        update_time=values.timestamp(stored.update_time),
        content_hash=stored.content_hash.hex(),
        token_count=stored.token_count,
        source_hash=stored.source_hash,
        chunk_count=stored.chunk_count,
    )


def learn_response(learned: Learned) -> context_service_pb2.LearnResponse:
    """What was stored."""
    return context_service_pb2.LearnResponse(
        seq=learned.seq,
        results=[
            context_service_pb2.LearnResult(
                id=result.id,
                status=context_service_pb2.LearnStatus.ValueType(result.status),
                duplicate_of=result.duplicate_of,
            )
            for result in learned.results
        ],
    )


def batch_get_response(
    ids: Sequence[str], found: Sequence[Memory | None]
) -> memory_service_pb2.MemoryServiceBatchGetResponse:
    """The memories that exist, and the ids of those that do not, both in the request's order."""
    return memory_service_pb2.MemoryServiceBatchGetResponse(
        memories=[memory(one) for one in found if one is not None],
        missing_ids=[memory_id for memory_id, one in zip(ids, found, strict=True) if one is None],
    )


def update_response(updated: Updated) -> memory_service_pb2.MemoryServiceUpdateResponse:
    """The changed memory."""
    return memory_service_pb2.MemoryServiceUpdateResponse(memory=memory(updated.memory), seq=updated.seq)


def delete_response(deleted: Deleted) -> memory_service_pb2.MemoryServiceDeleteResponse:
    """What was removed."""
    return memory_service_pb2.MemoryServiceDeleteResponse(
        seq=deleted.seq, deleted_count=deleted.deleted_count, missing_ids=deleted.missing_ids
    )


def _payload(payload: Payload) -> memory_pb2.MemoryPayload:
    body = memory_pb2.MemoryPayload(content=payload.content, raw=payload.raw)
    match payload.detail:
        case LearningRecord() as record:
            body.learning_record.CopyFrom(
                memory_pb2.LearningRecord(
                    question=record.question, answer=record.answer, source_files=record.source_files
                )
            )
        case DomainKnowledge() as known:
            body.domain_knowledge.CopyFrom(
                memory_pb2.DomainKnowledge(
                    domain=known.domain, aliases=known.aliases, summary=known.summary, key_files=known.key_files
                )
            )
        case CodeFragment() as code:
            body.code_fragment.CopyFrom(
                memory_pb2.CodeFragment(
                    path=code.path,
                    start_line=code.start_line,
                    end_line=code.end_line,
                    language=code.language,
                    symbol=code.symbol,
                )
            )
        case None:
            pass
    return body
