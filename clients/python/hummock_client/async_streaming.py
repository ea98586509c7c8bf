"""Calls with streams, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from typing import Any, cast

from google.protobuf.message import Message
from grpc import aio

from hummock_client.channel import STREAMS
from hummock_client.errors import FailedCall, call_error


def replies(channel: aio.Channel, request: Message, timeout_s: float | None) -> AsyncGenerator[Any, None]:
    """The replies to a request that is answered with a stream. Raises: HummockCallError."""
    route = STREAMS[request.DESCRIPTOR.full_name]
    method: Any = channel.unary_stream(
        route.path, request_serializer=_to_bytes, response_deserializer=route.reply_type.FromString
    )
    return _read(lambda: method(request, timeout=timeout_s), [])


def exchange(
    channel: aio.Channel,
    path: str,
    reply_type: type[Message],
    messages: AsyncIterable[Message],
    timeout_s: float | None,
) -> AsyncGenerator[Any, None]:
    """The replies to messages. Raises: HummockCallError, what `messages` raise."""
    raised: list[BaseException] = []
    method: Any = channel.stream_stream(path, request_serializer=_to_bytes, response_deserializer=reply_type.FromString)
    return _read(lambda: method(_noting(messages, raised), timeout=timeout_s), raised)


async def _read(begin: Callable[[], Any], raised: list[BaseException]) -> AsyncGenerator[Any, None]:
    call = begin()
    try:
        async for reply in call:
            yield reply
    except (aio.AioRpcError, asyncio.CancelledError) as failed:
        if raised:
            raise raised[0] from None
        if isinstance(failed, asyncio.CancelledError):
            raise
        raise call_error(cast(FailedCall, failed)) from failed
    finally:
        call.cancel()


async def _noting(messages: AsyncIterable[Message], raised: list[BaseException]) -> AsyncIterator[Message]:
    try:
        async for message in messages:
            yield message
    except Exception as error:
        raised.append(error)
        raise


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
