"""Calls with streams: messages of bounded size out, replies in, for code that blocks and for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import grpc
from google.protobuf.message import Message
from grpc import aio

from hummock_client.access import Metadata
from hummock_client.channel import STREAMS, to_bytes
from hummock_client.errors import FailedCall, call_error
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import project_service_pb2 as projects_pb
from hummock_client.v1.memory_pb2 import Memory
from hummock_client.v1.transfer_pb2 import TransferRecord

LEARN_STREAM = "/hummock.v1.ContextService/LearnStream"
IMPORT = "/hummock.v1.ProjectService/ImportProject"

_MAX_ITEMS = 64
_MAX_BYTES = 1024 * 1024
"""A message may have 4 MiB; smaller ones show progress sooner."""

_LARGEST_RECORD_BYTES = 3 * 1024 * 1024
"""A larger one travels without its vectors, which the service makes anew."""

Channel = TypeVar("Channel", grpc.Channel, aio.Channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Generic[Channel]):
    """A channel, what goes with every call over it, and the address that it leads to."""

    channel: Channel
    metadata: Metadata = field(default=(), repr=False)
    target: str


Stream = Callable[[Message, float | None], Generator[Any, None, None]]
AsyncStream = Callable[[Message, float | None], AsyncGenerator[Any, None]]


Batch = context_pb.LearnRequest | context_pb.LearnTurnRequest


def stream_message(batch: Batch) -> context_pb.LearnStreamRequest:
    """One message of LearnStream."""
    if isinstance(batch, context_pb.LearnTurnRequest):
        return context_pb.LearnStreamRequest(learn_turn=batch)
    return context_pb.LearnStreamRequest(learn=batch)


def batches(memories: Iterable[Memory]) -> Iterator[list[Memory]]:
    """The memories in order, in batches of at most 64 and, unless one alone is larger, 1 MiB."""
    batch: list[Memory] = []
    batch_bytes = 0
    for memory in memories:
        memory_bytes = memory.ByteSize()
        if batch and (len(batch) == _MAX_ITEMS or batch_bytes + memory_bytes > _MAX_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(memory)
        batch_bytes += memory_bytes
    if batch:
        yield batch


def import_messages(
    project: str, numbered: Iterable[tuple[int, TransferRecord]]
) -> Iterator[projects_pb.ImportProjectRequest]:
    """The records, in their order and with their numbers, in messages of bounded size; at least one message."""
    message = projects_pb.ImportProjectRequest(project=project)
    message_bytes = 0
    is_first = True
    for number, record in numbered:
        record = _slim(record)
        record_bytes = record.ByteSize()
        if message.lines and (len(message.lines) == _MAX_ITEMS or message_bytes + record_bytes > _MAX_BYTES):
            yield message
            is_first = False
            message, message_bytes = projects_pb.ImportProjectRequest(project=project), 0
        message.lines.add(number=number, record=record)
        message_bytes += record_bytes
    if message.lines or is_first:
        yield message


def replies(
    connection: Connection[grpc.Channel], request: Message, timeout_s: float | None
) -> Generator[Any, None, None]:
    """The replies to a request that is answered with a stream. Raises: HummockCallError."""
    route = STREAMS[request.DESCRIPTOR.full_name]
    method = connection.channel.unary_stream(
        route.path, request_serializer=to_bytes, response_deserializer=route.reply_type.FromString
    )
    return _read(lambda: method(request, timeout=timeout_s, metadata=connection.metadata), connection.target)


def exchange(
    connection: Connection[grpc.Channel],
    path: str,
    reply_type: type[Message],
    messages: Iterable[Message],
    timeout_s: float | None,
) -> Generator[Any, None, None]:
    """The replies to messages, read on a thread of gRPC's. Raises: HummockCallError, what `messages` raise."""
    raised: list[BaseException] = []
    method = connection.channel.stream_stream(
        path, request_serializer=to_bytes, response_deserializer=reply_type.FromString
    )
    sent = _noting(messages, raised)
    return _read(lambda: method(sent, timeout=timeout_s, metadata=connection.metadata), connection.target, raised)


def async_replies(
    connection: Connection[aio.Channel], request: Message, timeout_s: float | None
) -> AsyncGenerator[Any, None]:
    """The replies to a request that is answered with a stream. Raises: HummockCallError."""
    route = STREAMS[request.DESCRIPTOR.full_name]
    method: Any = connection.channel.unary_stream(
        route.path, request_serializer=to_bytes, response_deserializer=route.reply_type.FromString
    )
    return _async_read(lambda: method(request, timeout=timeout_s, metadata=connection.metadata), connection.target)


def async_exchange(
    connection: Connection[aio.Channel],
    path: str,
    reply_type: type[Message],
    messages: AsyncIterable[Message],
    timeout_s: float | None,
) -> AsyncGenerator[Any, None]:
    """The replies to messages. Raises: HummockCallError, what `messages` raise."""
    raised: list[BaseException] = []
    method: Any = connection.channel.stream_stream(
        path, request_serializer=to_bytes, response_deserializer=reply_type.FromString
    )
    sent = _async_noting(messages, raised)
    return _async_read(lambda: method(sent, timeout=timeout_s, metadata=connection.metadata), connection.target, raised)


def _slim(record: TransferRecord) -> TransferRecord:
    if record.ByteSize() <= _LARGEST_RECORD_BYTES or not record.memory.chunks:
        return record
    slim = TransferRecord()
    slim.CopyFrom(record)
    slim.memory.ClearField("chunks")
    return slim


def _read(begin: Callable[[], Any], target: str, raised: Sequence[BaseException] = ()) -> Generator[Any, None, None]:
    call = begin()
    try:
        yield from call
    except grpc.RpcError as failed:
        if raised:
            raise raised[0] from None
        raise call_error(cast(FailedCall, failed), target) from failed
    finally:
        call.cancel()


def _noting(messages: Iterable[Message], raised: list[BaseException]) -> Iterator[Message]:
    try:
        yield from messages
    except Exception as error:
        raised.append(error)
        raise


async def _async_read(
    begin: Callable[[], Any], target: str, raised: Sequence[BaseException] = ()
) -> AsyncGenerator[Any, None]:
    call = begin()
    try:
        async for reply in call:
            yield reply
    except (aio.AioRpcError, asyncio.CancelledError) as failed:
        if raised:
            raise raised[0] from None
        if isinstance(failed, asyncio.CancelledError):
            raise
        raise call_error(cast(FailedCall, failed), target) from failed
    finally:
        call.cancel()


async def _async_noting(messages: AsyncIterable[Message], raised: list[BaseException]) -> AsyncIterator[Message]:
    try:
        async for message in messages:
            yield message
    except Exception as error:
        raised.append(error)
        raise
