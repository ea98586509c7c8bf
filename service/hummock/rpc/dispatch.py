"""Dispatch: one way in and out for all calls. Parse, admit, run on a lane, answer or abort."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from hummock.core.access import Caller
from hummock.core.patience import Patience
from hummock.rpc.admission import AdmissionQueue, InFlight
from hummock.rpc.gate import Gate, Visit
from hummock.rpc.lanes import Lane, Lanes
from hummock.rpc.learn_stream import LearnStream
from hummock.rpc.status import known, to_bytes, to_grpc
from hummock.rpc.streams import Feed, Replies, ReplyStream, answer_each
from hummock.rpc.validation import check_size, parse
from hummock.rpc.verbs import Need, need_of
from hummock.rpc.whose import ProjectName, caller_of

Context = aio.ServicerContext[bytes, bytes]
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

_OK = grpc.StatusCode.OK.name
_CANCELLED = grpc.StatusCode.CANCELLED.name
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
            the disk, or what the second half goes on with; in a lane of replies it yields steps. For MESSAGES it takes
            nothing and returns what answers those of one stream.
        takes_deadline: Whether it takes the deadline as well: `until_s`, on the monotonic clock, None without one.
        takes_patience: Whether it takes the caller's patience as well, for it looks between its parts whether anybody
            still waits.
        takes_caller: Whether it takes the caller as well, behind all else: it writes memories.
        then: The second half, if there is one.
    """

    lane: Lane
    answer: Callable[..., Any]
    takes_deadline: bool = False
    takes_patience: bool = False
    takes_caller: bool = False
    then: Then | None = None


class Call:
    """Lets the calls of one method in, has them run, and ends them: with their answer, or with a status."""

    def __init__(
        self,
        need: Need,
        run: Callable[[Any, Context, Visit, Patience], Awaitable[bytes | None]],
        in_flight: InFlight,
        gate: Gate,
        *,
        is_stream: bool = False,
    ) -> None:
        """Calls of a method.

        Args:
            need: The method's.
            run: Gives the reply to a request, or sends what there is to send; admits each request before it is run.
            in_flight: Counts them.
            gate: Knows who calls.
            is_stream: Whether they last as long as the caller likes.
        """
        self._need = need
        self._run = run
        self._in_flight = in_flight
        self._gate = gate
        self._is_stream = is_stream

    async def answer(self, request: Any, context: Context) -> bytes | None:
        """The reply, or a status with details. Cancellation passes through, and takes waiting work with it."""
        visit: Visit | None = None
        outcome, reason = _CANCELLED, _CANCELLED
        try:
            left_s = context.time_remaining()
            with self._in_flight.counted(None if left_s is None else time.monotonic() + left_s) as patience:
                # Before anything of the request is read.
                visit = self._gate.visit(self._need, context, is_stream=self._is_stream)
                reply = await self._run(request, context, visit, patience)
                outcome, reason = _OK, ""
                return reply
        except Exception as error:
            failure = known(error, self._need.method)
            status = to_grpc(failure)
            outcome, reason = status.code.name, failure.reason
            del failure
        finally:
            if visit is not None:
                visit.leave(outcome, reason)
            else:
                self._gate.turned_away(self._need, outcome, reason)
        # What ends the call keeps this frame alive until the collector comes, and must not keep the request.
        del request, visit
        with self._in_flight.telling():
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
        self._has_max_reply = "max_reply_bytes" in request_type.DESCRIPTOR.fields_by_name
        self._method = method
        self._lanes = lanes
        self._project_of = ProjectName(request_type)
        self._queue = lanes.queue_of(method.lane)
        # Read on the event loop, a large request would be in everybody's way.
        self._queue_of_large = lanes.read if method.lane is Lane.INLINE else self._queue

    async def run(self, data: bytes, _: Context, visit: Visit, patience: Patience) -> bytes:
        """The reply as bytes; raises what the method raises."""
        check_size(data)
        project, until_s = self._project_of(data), patience.until_s
        queue = self._queue if len(data) <= _INLINE_BYTES else self._queue_of_large
        reply = await queue.run(partial(self._begin, data, patience, visit), project=project, until_s=until_s)
        if isinstance(reply, bytes):
            return reply
        then = self._method.then
        if then is None or isinstance(reply, Message):
            return _seen(reply, visit)
        queue, is_patient = self._lanes.queue_of(then.lane), not then.lane.is_read
        finishing = partial(_finish, then, reply, visit)
        return await queue.run(finishing, project=project, until_s=until_s, is_patient=is_patient)

    def _begin(self, data: bytes, patience: Patience, visit: Visit) -> Any:
        """The reply as bytes, a future of the reply, or what the second half goes on with."""
        request: Any = parse(self._request_type, data)
        visit.admit(request)
        method = self._method
        more = (patience.until_s,) if method.takes_deadline else (patience,) if method.takes_patience else ()
        reply = method.answer(request, *more, *_caller(method, visit))
        if not isinstance(reply, Message):
            return reply
        return _seen(reply, visit, request.max_reply_bytes if self._has_max_reply else 0)


def _caller(method: Method, visit: Visit) -> tuple[Caller, ...]:
    return (visit.caller,) if method.takes_caller else ()


def _finish(then: Then, begun: Any, visit: Visit) -> bytes:
    return _seen(then.answer(begun), visit)


def _seen(reply: Message, visit: Visit, most_bytes: int = 0) -> bytes:
    visit.saw(reply)
    return to_bytes(reply, most_bytes)


def handler(
    descriptor: MethodDescriptor, method: Method, lanes: Lanes, in_flight: InFlight, feed: Feed, gate: Gate
) -> Handler:
    """What gRPC calls for a method. Without (de)serialisers it sees bytes.

    Args:
        descriptor: Of the method, in the contract.
        method: How its calls are answered.
        lanes: Where.
        in_flight: Counts them.
        feed: Wakes streams of replies.
        gate: Knows who calls.
    """
    if method.lane.gives_stream:
        return _stream_handler(descriptor, method, lanes.queue_of(method.lane), in_flight, feed, gate)
    return unary_handler(descriptor, method, lanes, in_flight, gate)


def unary_handler(
    descriptor: MethodDescriptor, method: Method, lanes: Lanes, in_flight: InFlight, gate: Gate
) -> Handler:
    """The same for a method that has one reply; Args as for `handler`."""
    unary = Unary(GetMessageClass(descriptor.input_type), method, lanes)
    return grpc.unary_unary_rpc_method_handler(Call(need_of(descriptor), unary.run, in_flight, gate).answer)


def _stream_handler(
    descriptor: MethodDescriptor, method: Method, queue: AdmissionQueue, in_flight: InFlight, feed: Feed, gate: Gate
) -> Handler:
    need, request_type = need_of(descriptor), GetMessageClass(descriptor.input_type)

    project_of = ProjectName(request_type)

    async def give_replies(data: bytes, context: Context, visit: Visit, _: Patience) -> None:
        replies = ReplyStream(request_type, partial(_admitted, method, visit), queue, feed)
        await replies.answer(data, _Guarded(context, visit), caller_of(context))

    async def answer_messages(_: object, context: Context, visit: Visit, __: Patience) -> None:
        # What answers the messages of one stream knows those before.
        answer = partial(_admitted, replace(method, answer=method.answer()), visit)
        await answer_each(partial(_answer, request_type, answer), project_of, queue, context, feed)

    async def learn_batches(_: object, context: Context, visit: Visit, patience: Patience) -> None:
        answer = partial(_admitted, method, visit)
        await LearnStream(answer, queue, context, feed, patience, need.method).run()

    match method.lane:
        case Lane.MESSAGES:
            return grpc.stream_stream_rpc_method_handler(
                Call(need, answer_messages, in_flight, gate, is_stream=True).answer
            )
        case Lane.BATCHES:
            return grpc.stream_stream_rpc_method_handler(
                Call(need, learn_batches, in_flight, gate, is_stream=True).answer
            )
    return grpc.unary_stream_rpc_method_handler(Call(need, give_replies, in_flight, gate, is_stream=True).answer)


def _admitted(method: Method, visit: Visit, request: Message, *more: object) -> Any:
    """The answer to a message of a stream, whose caller's token may have been revoked meanwhile."""
    visit.look_again()
    visit.admit(request)
    reply = method.answer(request, *more, *_caller(method, visit))
    if isinstance(reply, Message):
        visit.saw(reply)
    return reply


def _answer(request_type: type[Message], answer: Callable[[Any], Message], data: bytes) -> bytes:
    """The whole of a message's way on its worker: bytes, request, reply, bytes."""
    return to_bytes(answer(parse(request_type, data)))


class _Guarded:
    """The end of a stream that is written to for as long as the caller's token counts."""

    def __init__(self, wire: Replies, visit: Visit) -> None:
        self._wire = wire
        self._visit = visit

    async def write(self, message: bytes) -> None:
        """Sends a message. Raises: TokenInvalid."""
        self._visit.look_again()
        await self._wire.write(message)
