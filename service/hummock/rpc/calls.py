"""The ways of answering a call: bytes in, one hop to a worker, bytes out."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from google.protobuf.message import Message
from grpc import aio

from hummock.core.later import Later
from hummock.rpc.deadline import work_until
from hummock.rpc.door import Door
from hummock.rpc.gate import Gate
from hummock.rpc.learn_stream import Learn, LearnStream
from hummock.rpc.message_stream import answer_each
from hummock.rpc.parse.request import check_size, parse
from hummock.rpc.reply_stream import ReplyStream
from hummock.rpc.status import MAX_REPLY_BYTES, ReplyTooLarge, known, to_grpc
from hummock.rpc.write_half import WriteHalf

Context = aio.ServicerContext[bytes, bytes]


def reply_to(request_type: type[Message], servicer_method: Callable[[Message], Message], data: bytes) -> bytes:
    """The whole of a call on its worker: bytes, request, reply, bytes."""
    return _serialised(servicer_method(parse(request_type, data)))


def reply_or_half(
    request_type: type[Message], servicer_method: Callable[[Message], Message | Later[Message] | WriteHalf], data: bytes
) -> bytes | Later[bytes] | WriteHalf:
    """The whole of a call on its worker, or what comes of it later, or what is left of it for where writes run."""
    reply = servicer_method(parse(request_type, data))
    if isinstance(reply, Later):
        return reply.then(_serialised)
    return reply if isinstance(reply, WriteHalf) else _serialised(reply)


def _serialised(message: Message) -> bytes:
    reply = message.SerializeToString()
    if len(reply) > MAX_REPLY_BYTES:
        raise ReplyTooLarge(len(reply), MAX_REPLY_BYTES)
    return reply


class UnaryCall:
    """Answers the calls of one unary method."""

    def __init__(
        self, name: str, work: Callable[[bytes], bytes | Later[bytes] | WriteHalf], gate: Gate, writes: Gate, door: Door
    ) -> None:
        self._name = name
        self._work = work
        self._gate = gate
        self._writes = writes
        self._door = door

    async def answer(self, data: bytes, context: Context) -> bytes:
        """The reply, or a status with details. Cancellation passes through, and takes waiting work with it."""
        try:
            with self._door.pass_through():
                check_size(data)
                left_s = context.time_remaining()
                at_s = None if left_s is None else time.monotonic() + left_s
                work: Callable[[], bytes | Later[bytes] | WriteHalf] = partial(work_until, at_s, self._work, data)
                reply: bytes | WriteHalf = await self._gate.run(work, time_left_s=left_s)
                if isinstance(reply, WriteHalf):
                    finish = reply.finish
                    left_s = context.time_remaining()
                    return await self._writes.run(lambda: _serialised(finish()), time_left_s=left_s, patient=True)
                return reply
        except Exception as error:
            failure = known(error, self._name)
        await context.abort_with_status(to_grpc(failure))


class ReplyStreamCall:
    """Answers the calls of one method that is answered with a stream."""

    def __init__(self, name: str, stream: ReplyStream, door: Door) -> None:
        self._name = name
        self._stream = stream
        self._door = door

    async def answer(self, data: bytes, context: Context) -> None:
        """Sends what there is, or ends the stream with a status with details. Hanging up ends it as well."""
        try:
            with self._door.pass_through():
                check_size(data)
                return await self._stream.answer(data, context)
        except Exception as error:
            failure = known(error, self._name)
        await context.abort_with_status(to_grpc(failure))


class MessageStreamCall:
    """Answers the calls of one method that answers each message of a stream."""

    def __init__(self, name: str, work: Callable[[bytes], bytes], gate: Gate, door: Door) -> None:
        self._name = name
        self._work = work
        self._gate = gate
        self._door = door

    async def answer(self, _: object, context: Context) -> None:
        """Answers every message, or ends the stream with a status with details."""
        try:
            with self._door.pass_through():
                return await answer_each(self._work, self._gate, context)
        except Exception as error:
            failure = known(error, self._name)
        await context.abort_with_status(to_grpc(failure))


class LearnStreamCall:
    """Answers the calls of LearnStream."""

    def __init__(self, name: str, learn: Learn, gate: Gate, door: Door) -> None:
        self._name = name
        self._learn = learn
        self._gate = gate
        self._door = door

    async def answer(self, _: object, context: Context) -> None:
        """Answers every batch, or ends the stream with a status with details."""
        try:
            with self._door.pass_through():
                return await LearnStream(self._learn, self._gate, context, self._name).run()
        except Exception as error:
            failure = known(error, self._name)
        await context.abort_with_status(to_grpc(failure))
