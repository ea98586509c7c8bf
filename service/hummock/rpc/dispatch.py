"""Dispatch: one way in and out for all calls. Parse, admit, run on a lane, answer or abort."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from hummock.rpc.admission import AdmissionQueue, InFlight
from hummock.rpc.lanes import Lane, Lanes
from hummock.rpc.learn_stream import LearnStream
from hummock.rpc.status import known, to_bytes, to_grpc
from hummock.rpc.streams import Feed, ReplyStream, answer_each
from hummock.rpc.validation import check_size, parse

Context = aio.ServicerContext[bytes, bytes]
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

_INLINE_BYTES = 64 * 1024
"""That a request may have which is read on the event loop."""


@dataclass(frozen=True, slots=True)
class Then:
    """The second half of a method, in another lane.

    Attributes:
        lane: Where it runs. A write is never refused, for what came before it has been computed.
        answer: Makes the reply of what the first half returned.
    """

    lane: Lane
    answer: Callable[[Any], Message]


@dataclass(frozen=True, slots=True)
class Method:
    """How the calls of a method are answered.

    Attributes:
        lane: Where they run, and whether they are streams.
        answer: The servicer's method. It takes a request and returns the reply, or a future of it where it waits for
            the disk, or what the second half goes on with; in a lane of replies it yields steps.
        takes_deadline: Whether it takes the deadline as well: `until_s`, on the monotonic clock, None without one.
        then: The second half, if there is one.
    """

    lane: Lane
    answer: Callable[..., Any]
    takes_deadline: bool = False
    then: Then | None = None


class Call:
    """Lets the calls of one method in, has them run, and ends them: with their answer, or with a status."""

    def __init__(self, name: str, run: Callable[[Any, Context], Awaitable[bytes | None]], in_flight: InFlight) -> None:
        """Calls of a method.

        Args:
            name: The method's, for the log.
            run: Gives the reply to a request, or sends what there is to send.
            in_flight: Counts them.
        """
        self._name = name
        self._run = run
        self._in_flight = in_flight

    async def answer(self, request: Any, context: Context) -> bytes | None:
        """The reply, or a status with details. Cancellation passes through, and takes waiting work with it."""
        try:
            with self._in_flight.counted():
                return await self._run(request, context)
        except Exception as error:
            status = to_grpc(known(error, self._name))
        # What ends the call keeps this frame alive until the collector comes, and must not keep the request.
        del request
        await context.abort_with_status(status)


class Unary:
    """Runs the calls of a method that has one request and one reply."""

    def __init__(self, request_type: type[Message], method: Method, lanes: Lanes) -> None:
        """Calls of a method.

        Args:
            request_type: Of its requests.
            method: How they are answered.
            lanes: Where.
        """
        self._request_type = request_type
        self._method = method
        self._lanes = lanes
        self._queue = lanes.queue_of(method.lane)
        # Read on the event loop, a large request would be in everybody's way.
        self._queue_of_large = lanes.read if method.lane is Lane.INLINE else self._queue

    async def run(self, data: bytes, context: Context) -> bytes:
        """The reply as bytes; raises what the method raises."""
        check_size(data)
        left_s = context.time_remaining()
        until_s = None if left_s is None else time.monotonic() + left_s
        queue = self._queue if len(data) <= _INLINE_BYTES else self._queue_of_large
        reply = await queue.run(partial(self._begin, data, until_s), until_s=until_s)
        if isinstance(reply, bytes):
            return reply
        then = self._method.then
        if then is None or isinstance(reply, Message):
            return to_bytes(reply)
        queue, is_patient = self._lanes.queue_of(then.lane), not then.lane.is_read
        return await queue.run(partial(_finish, then, reply), until_s=until_s, is_patient=is_patient)

    def _begin(self, data: bytes, until_s: float | None) -> Any:
        """The reply as bytes, a future of the reply, or what the second half goes on with."""
        request = parse(self._request_type, data)
        answer = self._method.answer
        reply = answer(request, until_s) if self._method.takes_deadline else answer(request)
        return to_bytes(reply) if isinstance(reply, Message) else reply


def _finish(then: Then, begun: Any) -> bytes:
    return to_bytes(then.answer(begun))


def handler(descriptor: MethodDescriptor, method: Method, lanes: Lanes, in_flight: InFlight, feed: Feed) -> Handler:
    """What gRPC calls for a method. Without (de)serialisers it sees bytes.

    Args:
        descriptor: Of the method, in the contract.
        method: How its calls are answered.
        lanes: Where.
        in_flight: Counts them.
        feed: Wakes streams of replies.
    """
    if method.lane.gives_stream:
        return _stream_handler(descriptor, method, lanes.queue_of(method.lane), in_flight, feed)
    return unary_handler(descriptor, method, lanes, in_flight)


def unary_handler(descriptor: MethodDescriptor, method: Method, lanes: Lanes, in_flight: InFlight) -> Handler:
    """The same for a method that has one reply; Args as for `handler`."""
    unary = Unary(GetMessageClass(descriptor.input_type), method, lanes)
    return grpc.unary_unary_rpc_method_handler(Call(name_of(descriptor), unary.run, in_flight).answer)


def _stream_handler(
    descriptor: MethodDescriptor, method: Method, queue: AdmissionQueue, in_flight: InFlight, feed: Feed
) -> Handler:
    name, request_type = name_of(descriptor), GetMessageClass(descriptor.input_type)
    replies = ReplyStream(request_type, method.answer, queue, feed)

    async def answer_messages(_: object, context: Context) -> None:
        await answer_each(partial(_answer, request_type, method.answer), queue, context)

    async def learn_batches(_: object, context: Context) -> None:
        await LearnStream(method.answer, queue, context, name).run()

    match method.lane:
        case Lane.MESSAGES:
            return grpc.stream_stream_rpc_method_handler(Call(name, answer_messages, in_flight).answer)
        case Lane.BATCHES:
            return grpc.stream_stream_rpc_method_handler(Call(name, learn_batches, in_flight).answer)
    return grpc.unary_stream_rpc_method_handler(Call(name, replies.answer, in_flight).answer)


def _answer(request_type: type[Message], answer: Callable[[Any], Message], data: bytes) -> bytes:
    """The whole of a message's way on its worker: bytes, request, reply, bytes."""
    return to_bytes(answer(parse(request_type, data)))


def name_of(descriptor: MethodDescriptor) -> str:
    """The method's name on the wire and in the log."""
    return f"/{descriptor.containing_service.full_name}/{descriptor.name}"
