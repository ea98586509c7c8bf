"""Calls with streams, for code that blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from hummock_client.channel import STREAMS
from hummock_client.errors import FailedCall, call_error


def replies(channel: grpc.Channel, request: Message, timeout_s: float | None) -> Generator[Any, None, None]:
    """The replies to a request that is answered with a stream. Raises: HummockCallError."""
    route = STREAMS[request.DESCRIPTOR.full_name]
    method = channel.unary_stream(
        route.path, request_serializer=_to_bytes, response_deserializer=route.reply_type.FromString
    )
    return _read(lambda: method(request, timeout=timeout_s), [])


def exchange(
    channel: grpc.Channel, path: str, reply_type: type[Message], messages: Iterable[Message], timeout_s: float | None
) -> Generator[Any, None, None]:
    """The replies to messages, read on a thread of gRPC's. Raises: HummockCallError, what `messages` raise."""
    raised: list[BaseException] = []
    method = channel.stream_stream(path, request_serializer=_to_bytes, response_deserializer=reply_type.FromString)
    return _read(lambda: method(_noting(messages, raised), timeout=timeout_s), raised)


def _read(begin: Callable[[], Any], raised: list[BaseException]) -> Generator[Any, None, None]:
    call = begin()
    try:
        yield from call
    except grpc.RpcError as failed:
        if raised:
            raise raised[0] from None
        raise call_error(cast(FailedCall, failed)) from failed
    finally:
        call.cancel()


def _noting(messages: Iterable[Message], raised: list[BaseException]) -> Iterator[Message]:
    try:
        yield from messages
    except Exception as error:
        raised.append(error)
        raise


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
