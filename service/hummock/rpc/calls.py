"""The ways of answering a call: bytes in, work behind a gate, bytes out."""

from __future__ import annotations

import math
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
from hummock.rpc.rest import Rest
from hummock.rpc.status import MAX_REPLY_BYTES, ReplyTooLarge, known, to_grpc

Context = aio.ServicerContext[bytes, bytes]


def reply_to(request_type: type[Message], servicer_method: Callable[[Message], Message], data: bytes) -> bytes:
    """The whole of a call on its worker: bytes, request, reply, bytes."""
    return _serialised(servicer_method(parse(request_type, data)))


def reply_or_rest(
    request_type: type[Message], servicer_method: Callable[[Message], Message | Later[Message] | Rest], data: bytes
) -> bytes | Later[bytes] | Rest:
    """The whole of a call, or what comes of it later, or what is left of it for another gate."""
    reply = servicer_method(parse(request_type, data))
    if isinstance(reply, Later):
        return reply.then(_serialised)
    return reply if isinstance(reply, Rest) else _serialised(reply)


def _finished(rest: Rest) -> bytes:
    return _serialised(rest.finish())


def _serialised(message: Message) -> bytes:
    reply = message.SerializeToString()
    if len(reply) > MAX_REPLY_BYTES:
        raise ReplyTooLarge(len(reply), MAX_REPLY_BYTES)
    return reply


class UnaryCall:
    """Answers the calls of one unary method."""

    def __init__(
        self,
        name: str,
        work: Callable[[bytes], bytes | Later[bytes] | Rest],
        gate: Gate,
        door: Door,
        *,
        rest: Gate,
        is_rest_patient: bool = False,
        most_bytes: float = math.inf,
    ) -> None:
        """Calls of a method.

        Args:
            name: The method's, for the log.
            work: Makes the reply of a request.
            gate: Where that runs.
            door: Lets calls in.
            rest: Where what it leaves runs.
            is_rest_patient: Whether that waits beyond the limit of those who wait there.
            most_bytes: Larger requests run where the rest runs, all of them.
        """
        self._name = name
        self._work = work
        self._gate = gate
        self._door = door
        self._rest = rest
        self._is_rest_patient = is_rest_patient
        self._most_bytes = most_bytes

    async def answer(self, data: bytes, context: Context) -> bytes:
        """The reply, or a status with details. Cancellation passes through, and takes waiting work with it."""
        try:
            with self._door.pass_through():
                return await self._reply(data, context)
        except Exception as error:
            status = to_grpc(known(error, self._name))
        # What ends the call keeps this frame alive until the collector comes, and must not keep the request.
        del data
        await context.abort_with_status(status)

    async def _reply(self, data: bytes, context: Context) -> bytes:
        check_size(data)
        left_s = context.time_remaining()
        at_s = None if left_s is None else time.monotonic() + left_s
        work: Callable[[], bytes | Later[bytes] | Rest] = partial(work_until, at_s, self._work, data)
        gate = self._gate if len(data) <= self._most_bytes else self._rest
        reply: bytes | Rest = await gate.run(work, time_left_s=left_s)
        if not isinstance(reply, Rest):
            return reply
        rest = partial(work_until, at_s, _finished, reply)
        left_s = context.time_remaining()
        return await self._rest.run(rest, time_left_s=left_s, patient=self._is_rest_patient)


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
            status = to_grpc(known(error, self._name))
        # What ends the call keeps this frame alive until the collector comes, and must not keep the request.
        del data
        await context.abort_with_status(status)


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
            status = to_grpc(known(error, self._name))
        await context.abort_with_status(status)


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
            status = to_grpc(known(error, self._name))
        await context.abort_with_status(status)
