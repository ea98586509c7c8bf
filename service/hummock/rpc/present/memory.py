"""Replies that hold memories, and replies to writes."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.learn import Deleted, Learned, Updated
from hummock.core.memory import (
    CodeFragment,
    DomainKnowledge,
    LearningRecord,
    Memory,
    MemoryKind,
    Origin,
    Payload,
)
from hummock.core.memory_events import MemoryEvent
from hummock.rpc.present import values
from hummock.v1 import context_service_pb2, memory_pb2, memory_service_pb2


def memory(stored: Memory) -> memory_pb2.Memory:
    """A memory; its payload is unset in the index view."""
    message = memory_pb2.Memory()
    fill_memory(message, stored)
    return message


def fill_memory(message: memory_pb2.Memory, stored: Memory) -> None:
    """Writes a memory into an empty message: copying messages into one another is half of the work of a reply.

    What is empty by default is not set: nothing of it goes over the wire.
    """
    message.id = stored.id
    message.kind = _KINDS[stored.kind]
    message.origin = _ORIGINS[stored.origin]
    if stored.session_id:
        message.session_id = stored.session_id
    if stored.speaker:
        message.speaker = stored.speaker
    if stored.emotion_label:
        message.emotion_label = stored.emotion_label
    message.trust = stored.trust
    message.content_hash = stored.content_hash.hex()
    message.token_count = stored.token_count
    if stored.source_hash:
        message.source_hash = stored.source_hash
    message.chunk_count = stored.chunk_count
    if stored.supersedes:
        message.supersedes.extend(stored.supersedes)
    index = message.index
    # An index of empty fields is there all the same.
    index.SetInParent()
    index.title = stored.index.title
    index.summary = stored.index.summary
    if stored.index.tags:
        index.tags.extend(stored.index.tags)
    values.set_timestamp(message.create_time, stored.create_time)
    values.set_timestamp(message.update_time, stored.update_time)
    if stored.event_time is not None:
        values.set_timestamp(message.event_time, stored.event_time)
    if stored.payload is not None:
        fill_payload(message.payload, stored.payload)


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


def memory_event(event: MemoryEvent) -> memory_service_pb2.MemoryEvent:
    """What became of one memory."""
    message = memory_service_pb2.MemoryEvent(
        type=memory_service_pb2.MemoryEventType.ValueType(event.type), id=event.memory_id, seq=event.seq
    )
    if event.memory is not None:
        fill_memory(message.memory, event.memory)
    return message


def fill_payload(message: memory_pb2.MemoryPayload, payload: Payload) -> None:
    """Writes a payload into an empty message."""
    message.SetInParent()
    message.content = payload.content
    if payload.raw:
        message.raw = payload.raw
    match payload.detail:
        case LearningRecord() as stored:
            record = message.learning_record
            record.question = stored.question
            record.answer = stored.answer
            record.source_files.extend(stored.source_files)
        case DomainKnowledge() as stored:
            known = message.domain_knowledge
            known.domain = stored.domain
            known.aliases.extend(stored.aliases)
            known.summary = stored.summary
            known.key_files.extend(stored.key_files)
        case CodeFragment() as stored:
            code = message.code_fragment
            code.path = stored.path
            code.start_line = stored.start_line
            code.end_line = stored.end_line
            code.language = stored.language
            code.symbol = stored.symbol


# A look-up is a tenth of a call of the wrapper of a generated enum.
_KINDS = {kind: memory_pb2.MemoryKind.ValueType(kind) for kind in MemoryKind}
_ORIGINS = {origin: memory_pb2.Origin.ValueType(origin) for origin in Origin}
