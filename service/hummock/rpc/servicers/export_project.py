"""An export of a project: a header, its memories, an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hummock.core.transfer import KeptPage
from hummock.rpc.parse import values
from hummock.rpc.present import transfer as present_transfer
from hummock.rpc.reply_stream import Steps
from hummock.rpc.use_cases import UseCases
from hummock.v1 import project_service_pb2 as pb
from hummock.v1 import transfer_pb2

_MOST_RECORDS = 512
_MOST_BYTES = 4 * 1024 * 1024
"""Of one message, besides its last record."""


def export_project(use_cases: UseCases, request: pb.ProjectServiceExportRequest) -> Steps:
    """The messages of one export."""
    project = use_cases.projects.get(values.project_name("project", request.project))
    settings = use_cases.settings.get(project.name).own
    yield _message([present_transfer.header(project.info, settings)], project.memory_count)
    sent = 0
    for page in use_cases.export(project, with_vectors=request.with_vectors):
        sent += len(page.memories)
        for records in _chunks(_records(page, project.emb_space)):
            yield _message(records, project.memory_count)
    conversations = map(present_transfer.conversation, use_cases.export.conversations(project.name))
    for records in _chunks(conversations):
        yield _message(records, project.memory_count)
    yield _message([transfer_pb2.TransferRecord(end=transfer_pb2.TransferEnd(memory_count=sent))], project.memory_count)


def _records(page: KeptPage, emb_space: str) -> Iterator[transfer_pb2.TransferRecord]:
    for kept in page.memories:
        yield present_transfer.memory(kept, emb_space)
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


def _message(records: list[transfer_pb2.TransferRecord], memory_count: int) -> pb.ProjectServiceExportResponse:
    return pb.ProjectServiceExportResponse(records=records, memory_count=memory_count)
