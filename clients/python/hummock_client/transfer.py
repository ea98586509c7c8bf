"""Records of projects as the messages of an Import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hummock.v1 import project_service_pb2 as pb
from hummock.v1.transfer_pb2 import TransferRecord

_MAX_LINES = 64
_MAX_BYTES = 1024 * 1024
"""A message may have 4 MiB; smaller ones show progress sooner."""

_LARGEST_RECORD_BYTES = 3 * 1024 * 1024
"""A larger one travels without its vectors, which the service makes anew."""


def import_messages(
    project: str, numbered: Iterable[tuple[int, TransferRecord]]
) -> Iterator[pb.ProjectServiceImportRequest]:
    """The records, in their order and with their numbers, in messages of bounded size; at least one message."""
    message = pb.ProjectServiceImportRequest(project=project)
    message_bytes = 0
    is_first = True
    for number, record in numbered:
        record = _slim(record)
        record_bytes = record.ByteSize()
        if message.lines and (len(message.lines) == _MAX_LINES or message_bytes + record_bytes > _MAX_BYTES):
            yield message
            is_first = False
            message, message_bytes = pb.ProjectServiceImportRequest(project=project), 0
        message.lines.add(number=number, record=record)
        message_bytes += record_bytes
    if message.lines or is_first:
        yield message


def _slim(record: TransferRecord) -> TransferRecord:
    if record.ByteSize() <= _LARGEST_RECORD_BYTES or not record.memory.chunks:
        return record
    slim = TransferRecord()
    slim.CopyFrom(record)
    slim.memory.ClearField("chunks")
    return slim
