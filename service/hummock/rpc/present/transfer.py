"""Records of a project that are given out, and what became of those that were taken in."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Memory, Origin
from hummock.core.project import ProjectInfo
from hummock.core.session import Session
from hummock.core.settings import ProjectSettings
from hummock.core.transfer import GivenMessage, Imported, KeptMemory
from hummock.rpc.present import settings as present_settings
from hummock.rpc.present import values
from hummock.rpc.present.memory import fill_payload
from hummock.rpc.status import violations_of
from hummock.v1 import context_service_pb2, memory_pb2, transfer_pb2
from hummock.v1 import project_service_pb2 as pb

VERSION = 1


def header(info: ProjectInfo, settings: ProjectSettings) -> transfer_pb2.TransferRecord:
    """The first record."""
    made = transfer_pb2.TransferHeader(
        version=VERSION,
        tech_stack=info.tech_stack,
        path=info.path,
        tech_stack_origin=_origin(info.tech_stack_origin),
        path_origin=_origin(info.path_origin),
        settings=present_settings.project_settings(settings),
    )
    return transfer_pb2.TransferRecord(header=made)


def memory(kept: KeptMemory, emb_space: str) -> transfer_pb2.TransferRecord:
    """A memory with all that was asked for."""
    record = transfer_pb2.TransferRecord()
    message = record.memory
    _fill_input(message.memory, kept.memory)
    values.set_timestamp(message.update_time, kept.memory.update_time)
    if kept.session_position >= 0:
        message.session_position = kept.session_position
    if kept.embeddings:
        message.emb_space = emb_space
    for embedding in kept.embeddings:
        message.chunks.add(values=embedding.vector.astype("<f4").tobytes(), tokens=embedding.tokens.tobytes())
    return record


def conversation(part: Session | GivenMessage) -> transfer_pb2.TransferRecord:
    """A session, or a message of one."""
    record = transfer_pb2.TransferRecord()
    if isinstance(part, Session):
        session = record.session
        session.id, session.title, session.archived = part.id, part.title, part.is_archived
        values.set_timestamp(session.create_time, part.create_time)
        return record
    message, sent = record.message, part.message
    message.session_id, message.id, message.memory_id = part.session_id, sent.id, sent.memory_id
    message.role = context_service_pb2.PromptRole.ValueType(sent.role)
    message.content, message.raw = sent.content, sent.raw
    values.set_timestamp(message.send_time, sent.send_time)
    return record


def import_response(numbers: Sequence[int], imported: Imported) -> pb.ProjectServiceImportResponse:
    """What became of the lines of these numbers."""
    return pb.ProjectServiceImportResponse(
        seq=imported.seq,
        created_count=imported.created,
        updated_count=imported.updated,
        unchanged_count=imported.unchanged,
        removed_count=imported.removed,
        embedded_count=imported.embedded,
        session_count=imported.sessions,
        message_count=imported.messages,
        failures=[import_failure(numbers[place], error) for place, error in imported.failures],
    )


def import_failure(number: int, error: InvalidRequest) -> pb.ImportFailure:
    """Why a line was not taken in."""
    first = violations_of(error)[0]
    return pb.ImportFailure(number=number, field=first.field, message=first.rule)


def _origin(origin: Origin | None) -> memory_pb2.Origin.ValueType:
    return memory_pb2.ORIGIN_UNSPECIFIED if origin is None else memory_pb2.Origin.ValueType(origin)


def _fill_input(message: memory_pb2.MemoryInput, stored: Memory) -> None:
    """Writes what a memory was made from into an empty message."""
    message.id = stored.id
    message.kind = memory_pb2.MemoryKind.ValueType(stored.kind)
    message.origin = memory_pb2.Origin.ValueType(stored.origin)
    message.index.title = stored.index.title
    message.index.summary = stored.index.summary
    message.index.tags.extend(stored.index.tags)
    message.session_id = stored.session_id
    message.speaker = stored.speaker
    message.emotion_label = stored.emotion_label
    message.trust = stored.trust
    message.supersedes.extend(stored.supersedes)
    message.source_hash = stored.source_hash
    values.set_timestamp(message.create_time, stored.create_time)
    if stored.event_time is not None:
        values.set_timestamp(message.event_time, stored.event_time)
    if stored.payload is not None:
        fill_payload(message.payload, stored.payload)
