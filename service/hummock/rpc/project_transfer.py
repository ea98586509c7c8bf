"""Export and Import: a project as records, given out and taken in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin
from hummock.core.project import ProjectInfo
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.core.time_zone import UTC_NAME
from hummock.core.transfer import (
    ExportedMemory,
    ExportPage,
    Given,
    GivenChunk,
    GivenMemory,
    GivenMessage,
    GivenProject,
    GivenRemoval,
    Imported,
)
from hummock.rpc import values
from hummock.rpc.call import CallContext
from hummock.rpc.conversion import message_of, value_of
from hummock.rpc.learning_transfer import event_record, given_event
from hummock.rpc.memory_messages import draft, memory
from hummock.rpc.settings_messages import own_settings, project_settings
from hummock.rpc.status import to_proto
from hummock.rpc.streams import Steps
from hummock.rpc.validation import check
from hummock_client.v1 import memory_pb2, transfer_pb2
from hummock_client.v1 import project_service_pb2 as pb

if TYPE_CHECKING:
    from hummock.rpc.methods import UseCases

VERSION = 2
"""Version of the exported records."""

_LONGEST_WRITER = 256
_FLOAT_BYTES = 4
_MOST_RECORDS = 512
_MOST_BYTES = 256 * 1024
"""Most bytes in one message, without its last record. A stalled export holds a few times that in memory."""

_LARGEST_RECORD_BYTES = 3 * 1024 * 1024
"""Largest record; a larger one is sent without vectors, which the importing service computes again."""

_OUTPUT_ONLY: Final = ("text", "update_time", "content_hash", "token_count", "chunk_count")
"""Fields of a memory that a caller does not set."""


def export_project(use_cases: UseCases, request: pb.ExportProjectRequest) -> Steps:
    """The messages of one export."""
    project = use_cases.projects.get(values.project_name("project", request.project))
    settings = use_cases.settings.get(project.name).own
    export = use_cases.export
    end = transfer_pb2.TransferEnd(held_count=export.held_count(project.name))
    pages = export(project, with_vectors=request.with_vectors)
    header = message_of(transfer_pb2.TransferHeader, project.info, version=VERSION, settings=own_settings(settings))
    parts = chain(
        [[transfer_pb2.TransferRecord(header=header)]],
        # Before the memories, which are stored together with what was learnt about them. Events keep their order.
        _chunks(map(event_record, export.events(project.name))),
        chain.from_iterable(_chunks(_records(page, project.emb_space)) for page in pages),
        _chunks(map(_conversation, export.conversations(project.name))),
    )
    for records in parts:
        end.record_count += len(records)
        end.memory_count += sum(record.HasField("memory") for record in records)
        yield pb.ExportProjectResponse(records=records, memory_count=project.memory_count)
    yield pb.ExportProjectResponse(records=[transfer_pb2.TransferRecord(end=end)], memory_count=project.memory_count)


def _records(page: ExportPage, emb_space: str) -> Iterator[transfer_pb2.TransferRecord]:
    for kept in page.memories:
        record = _memory_record(kept, emb_space)
        if record.ByteSize() > _LARGEST_RECORD_BYTES:
            record.memory.ClearField("chunks")
        yield record
    for memory_id in page.removed_ids:
        yield transfer_pb2.TransferRecord(removed_id=memory_id)


def _chunks(records: Iterable[transfer_pb2.TransferRecord]) -> Iterator[list[transfer_pb2.TransferRecord]]:
    chunk: list[transfer_pb2.TransferRecord] = []
    chunk_bytes = 0
    for record in records:
        chunk.append(record)
        chunk_bytes += record.ByteSize()
        if len(chunk) == _MOST_RECORDS or chunk_bytes >= _MOST_BYTES:
            yield chunk
            chunk, chunk_bytes = [], 0
    if chunk:
        yield chunk


class ImportStream:
    """One import, message by message; knows whether a whole export has arrived."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases
        self._records = 0
        self._memories = 0
        self._is_whole = False

    def __call__(self, request: pb.ImportProjectRequest, call: CallContext) -> pb.ImportProjectResponse:
        """Imports the valid lines and reports the invalid ones."""
        response = import_lines(self._use_cases, request)
        for line in request.lines:
            end, is_end = line.record.end, line.record.HasField("end")
            counts = end.record_count or self._records, end.memory_count
            self._is_whole = is_end and counts == (self._records, self._memories)
            self._records += 1
            self._memories += line.record.HasField("memory")
        response.whole = self._is_whole
        return response


def import_lines(use_cases: UseCases, request: pb.ImportProjectRequest) -> pb.ImportProjectResponse:
    """Import the valid lines and report the invalid ones."""
    project = values.project_name("project", request.project)
    numbers: list[int] = []
    parts: list[Given] = []
    failures: list[pb.ImportFailure] = []
    for line in request.lines:
        try:
            part = _given(line.record)
        except InvalidRequest as error:
            failures.append(pb.ImportFailure(number=line.number, status=to_proto(error)))
            continue
        if part is not None:
            numbers.append(line.number)
            parts.append(part)
    response = _import_response(numbers, use_cases.import_parts(project, parts))
    response.failures.extend(failures)
    response.failures.sort(key=lambda failure: failure.number)
    return response


def _given(record: transfer_pb2.TransferRecord) -> Given | None:
    """The part of a project that a record holds; None for the end of an export. Raises: InvalidRequest."""
    check(record)
    match record.WhichOneof("record"):
        case "header":
            return _given_project(record.header)
        case "memory":
            return _given_memory(record.memory)
        case "removed_id":
            return GivenRemoval(memory_id=values.identifier("removed_id", record.removed_id))
        case "session":
            return _given_session(record.session)
        case "message":
            return _given_message(record.message)
        case "event":
            return given_event(record.event)
        case "end":
            return None
    raise InvalidRequest("", "is no record of a kind that is known here")


def _given_project(sent: transfer_pb2.TransferHeader) -> GivenProject:
    info = value_of(
        ProjectInfo,
        sent,
        tech_stack_origin=Origin(sent.tech_stack_origin) if sent.tech_stack_origin else None,
        path_origin=Origin(sent.path_origin) if sent.path_origin else None,
    )
    return GivenProject(info=info, settings=project_settings(sent.settings))


def _given_memory(sent: transfer_pb2.TransferMemory) -> GivenMemory:
    try:
        made = draft(sent.memory, _writer(sent.memory))
    except InvalidRequest as error:
        error.move_into("memory.memory.")
        raise
    return GivenMemory(
        draft=made,
        update_time=values.time("memory.update_time", sent, "update_time"),
        session_position=sent.session_position if sent.HasField("session_position") else None,
        emb_space=sent.emb_space,
        chunks=tuple(_given_chunk(at, chunk) for at, chunk in enumerate(sent.chunks)),
    )


def _writer(sent: memory_pb2.Memory) -> str:
    """Writer of the memory in the exporting service. Imports are administrative, so it is trusted."""
    writer = values.identifier("writer", sent.writer)
    if len(writer) > _LONGEST_WRITER:
        raise InvalidRequest("writer", f"has {len(writer)} characters; the limit is {_LONGEST_WRITER}")
    return writer


def _given_session(sent: transfer_pb2.TransferSession) -> Session:
    created = values.time("session.create_time", sent, "create_time") or 0.0
    return Session(
        id=values.identifier("session.id", sent.id),
        title=values.identifier("session.title", sent.title),
        create_time=created,
        update_time=created,
        is_archived=sent.archived,
    )


def _given_message(sent: transfer_pb2.TransferMessage) -> GivenMessage:
    message = value_of(
        SessionMessage,
        sent,
        id=values.identifier("message.id", sent.id),
        role=PromptRole(sent.role),
        send_time=values.time("message.send_time", sent, "send_time") or 0.0,
        memory_id=values.identifier("message.memory_id", sent.memory_id),
    )
    return GivenMessage(session_id=values.identifier("message.session_id", sent.session_id), message=message)


def _given_chunk(at: int, sent: transfer_pb2.TransferChunk) -> GivenChunk:
    if len(sent.values) % _FLOAT_BYTES:
        field = f"memory.chunks[{at}].values"
        raise InvalidRequest(field, f"has {len(sent.values)} bytes; float32 takes 4 for each component")
    return GivenChunk(values=np.frombuffer(sent.values, "<f4").astype(np.float32), tokens=sent.tokens)


def _memory_record(exported: ExportedMemory, emb_space: str) -> transfer_pb2.TransferRecord:
    """A memory with all that was asked for."""
    sent = memory(exported.memory, with_raw=True)
    for name in _OUTPUT_ONLY:
        sent.ClearField(name)
    # Where it goes, an empty one would mean that project's zone.
    sent.time_zone = sent.time_zone or UTC_NAME
    made = transfer_pb2.TransferMemory(
        memory=sent,
        update_time=values.timestamp(exported.memory.update_time),
        session_position=exported.session_position if exported.session_position >= 0 else None,
        emb_space=emb_space if exported.embeddings else "",
        chunks=(
            transfer_pb2.TransferChunk(values=one.vector.astype("<f4").tobytes(), tokens=one.tokens.tobytes())
            for one in exported.embeddings
        ),
    )
    return transfer_pb2.TransferRecord(memory=made)


def _conversation(part: Session | GivenMessage) -> transfer_pb2.TransferRecord:
    """A session, or a message of one."""
    if isinstance(part, Session):
        session = message_of(transfer_pb2.TransferSession, part, archived=part.is_archived)
        return transfer_pb2.TransferRecord(session=session)
    message = message_of(transfer_pb2.TransferMessage, part.message, session_id=part.session_id)
    return transfer_pb2.TransferRecord(message=message)


def _import_response(numbers: Sequence[int], imported: Imported) -> pb.ImportProjectResponse:
    """Results for the lines with these numbers, as a reply."""
    return pb.ImportProjectResponse(
        seq=imported.seq,
        created_count=imported.created,
        updated_count=imported.updated,
        unchanged_count=imported.unchanged,
        removed_count=imported.removed,
        embedded_count=imported.embedded,
        session_count=imported.sessions,
        message_count=imported.messages,
        expired_count=imported.expired,
        event_count=imported.events,
        left_event_count=imported.left_events,
        failures=[
            pb.ImportFailure(number=numbers[place], status=to_proto(error)) for place, error in imported.failures
        ],
    )
