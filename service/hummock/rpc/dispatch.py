"""Dispatch: one way in and out for all calls. Parse, admit, run on a lane, answer or abort."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from hummock.core.deadline import Deadline
from hummock.rpc.admission import AdmissionQueue, InFlight
from hummock.rpc.call import CallContext
from hummock.rpc.interceptor import CallRecord, Interceptor
from hummock.rpc.lanes import Lane, Lanes
from hummock.rpc.learn_stream import LearnStream
from hummock.rpc.policy import MethodPolicy, policy_of
from hummock.rpc.status import known, to_bytes, to_grpc
from hummock.rpc.streams import Feed, Replies, ReplyStream, answer_each
from hummock.rpc.validation import check_size, parse
from hummock.rpc.whose import ProjectName, caller_of

Context = aio.ServicerContext[bytes, bytes]
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

Answer: TypeAlias = Callable[..., Any]
"""A servicer's method: takes a request and a CallContext, and returns the reply, a future of it where it waits for the
disk, or what makes it in a second half; in a lane of replies it yields steps. For MESSAGES it takes nothing and returns
what answers the messages of one stream.
"""

_OK = grpc.StatusCode.OK.name
_CANCELLED = grpc.StatusCode.CANCELLED.name
_INLINE_BYTES = 64 * 1024
"""Largest request, in bytes, that is parsed on the event loop."""


class Call:
    """Lets the calls of one method in, has them run, and ends them: with their answer, or with a status."""

    def __init__(
        self,
        policy: MethodPolicy,
        run: Callable[[Any, Context, CallRecord, Deadline], Awaitable[bytes | None]],
        in_flight: InFlight,
        interceptor: Interceptor,
        *,
        is_stream: bool = False,
    ) -> None:
        """Answer the calls of a method.

        Args:
            policy: The method's.
            run: Returns the reply to a request, or sends the stream of replies; admits each request before it is run.
            in_flight: Counts the calls.
            interceptor: Authenticates the callers.
            is_stream: Whether calls last as long as the caller likes.
        """
        self._policy = policy
        self._run = run
        self._in_flight = in_flight
        self._interceptor = interceptor
        self._is_stream = is_stream

    async def answer(self, request: Any, context: Context) -> bytes | None:
        """The reply, or a status with details. Cancellation passes through, and takes waiting work with it."""
        record: CallRecord | None = None
        outcome, reason = _CANCELLED, _CANCELLED
        try:
            left_s = context.time_remaining()
            with self._in_flight.counted(None if left_s is None else time.monotonic() + left_s) as deadline:
                # Before anything of the request is read.
                record = self._interceptor.record(self._policy, context, is_stream=self._is_stream)
                reply = await self._run(request, context, record, deadline)
                outcome, reason = _OK, ""
                return reply
        except Exception as error:
            failure = known(error, self._policy.method)
            status = to_grpc(failure)
            outcome, reason = status.code.name, failure.reason
            del failure
        finally:
            if record is not None:
                record.leave(outcome, reason)
            else:
                self._interceptor.turned_away(self._policy, outcome, reason)
        # What ends the call keeps this frame alive until the collector comes, and must not keep the request.
        del request, record
        with self._in_flight.telling():
            await context.abort_with_status(status)


class Unary:
    """Runs the calls of a method that has one request and one reply."""

    def __init__(self, request_type: type[Message], policy: MethodPolicy, answer: Answer, lanes: Lanes) -> None:
        """Calls of a method.

        Args:
            request_type: Type of its requests.
            policy: Says where they run.
            answer: The servicer's method.
            lanes: The queues.
        """
        self._request_type = request_type
        self._has_max_reply = "max_reply_bytes" in request_type.DESCRIPTOR.fields_by_name
        self._answer = answer
        self._project_of = ProjectName(request_type)
        self._queue = lanes.queue_of(policy.lane)
        # Read on the event loop, a large request would be in everybody's way.
        self._queue_of_large = lanes.read if policy.lane is Lane.INLINE else self._queue
        self._then = None if policy.then is None else lanes.queue_of(policy.then)
        # A write is never refused, for what came before it has been computed.
        self._is_patient = policy.then is not None and not policy.then.is_read

    async def run(self, data: bytes, _: Context, record: CallRecord, deadline: Deadline) -> bytes:
        """The reply as bytes; raises what the method raises."""
        check_size(data)
        project, until_s = self._project_of(data), deadline.until_s
        queue = self._queue if len(data) <= _INLINE_BYTES else self._queue_of_large
        reply = await queue.run(partial(self._begin, data, deadline, record), project=project, until_s=until_s)
        if self._then is not None and callable(reply):
            finishing = partial(_finish, reply, record)
            return await self._then.run(finishing, project=project, until_s=until_s, is_patient=self._is_patient)
        return reply if isinstance(reply, bytes) else _seen(reply, record)

    def _begin(self, data: bytes, deadline: Deadline, record: CallRecord) -> Any:
        """The reply as bytes, a future of the reply, or what makes it in the second half."""
        request: Any = parse(self._request_type, data)
        record.admit(request)
        reply = self._answer(request, CallContext(record.caller, deadline))
        if not isinstance(reply, Message):
            return reply
        return _seen(reply, record, request.max_reply_bytes if self._has_max_reply else 0)


def _finish(make: Callable[[], Message], record: CallRecord) -> bytes:
    return _seen(make(), record)


def _seen(reply: Message, record: CallRecord, most_bytes: int = 0) -> bytes:
    record.saw(reply)
    return to_bytes(reply, most_bytes)


def handler(
    descriptor: MethodDescriptor,
    answer: Answer,
    lanes: Lanes,
    in_flight: InFlight,
    feed: Feed,
    interceptor: Interceptor,
) -> Handler:
    """The handler that gRPC calls for a method. It gets bytes, as it is registered without (de)serialisers.

    Args:
        descriptor: The method, as the contract has it.
        answer: The servicer's method.
        lanes: The queues.
        in_flight: Counts calls.
        feed: Wakes streams of replies.
        interceptor: Authenticates the callers.
    """
    policy = policy_of(descriptor)
    if policy.lane.gives_stream:
        return _stream_handler(descriptor, answer, lanes.queue_of(policy.lane), in_flight, feed, interceptor)
    return unary_handler(descriptor, answer, lanes, in_flight, interceptor)


def unary_handler(
    descriptor: MethodDescriptor, answer: Answer, lanes: Lanes, in_flight: InFlight, interceptor: Interceptor
) -> Handler:
    """The handler that gRPC calls for a method with one reply; Args as for `handler`."""
    policy = policy_of(descriptor)
    unary = Unary(GetMessageClass(descriptor.input_type), policy, answer, lanes)
    return grpc.unary_unary_rpc_method_handler(Call(policy, unary.run, in_flight, interceptor).answer)


def _stream_handler(
    descriptor: MethodDescriptor,
    answer: Answer,
    queue: AdmissionQueue,
    in_flight: InFlight,
    feed: Feed,
    interceptor: Interceptor,
) -> Handler:
    policy, request_type = policy_of(descriptor), GetMessageClass(descriptor.input_type)
    project_of = ProjectName(request_type)

    async def give_replies(data: bytes, context: Context, record: CallRecord, deadline: Deadline) -> None:
        replies = ReplyStream(request_type, partial(_admitted, answer, record, deadline), queue, feed)
        await replies.answer(data, _Guarded(context, record), caller_of(context))

    async def answer_messages(_: object, context: Context, record: CallRecord, deadline: Deadline) -> None:
        # What answers the messages of one stream knows those before.
        admitted = partial(_admitted, answer(), record, deadline)
        await answer_each(partial(_answer, request_type, admitted), project_of, queue, context, feed)

    async def learn_batches(_: object, context: Context, record: CallRecord, deadline: Deadline) -> None:
        admitted = partial(_admitted, answer, record, deadline)
        await LearnStream(admitted, queue, context, feed, deadline, policy.method).run()

    match policy.lane:
        case Lane.MESSAGES:
            call = Call(policy, answer_messages, in_flight, interceptor, is_stream=True)
            return grpc.stream_stream_rpc_method_handler(call.answer)
        case Lane.BATCHES:
            call = Call(policy, learn_batches, in_flight, interceptor, is_stream=True)
            return grpc.stream_stream_rpc_method_handler(call.answer)
    return grpc.unary_stream_rpc_method_handler(
        Call(policy, give_replies, in_flight, interceptor, is_stream=True).answer
    )


def _admitted(answer: Answer, record: CallRecord, deadline: Deadline, request: Message) -> Any:
    """Answer a message of a stream after checking the caller's token again, which may have been revoked meanwhile."""
    record.look_again()
    record.admit(request)
    reply = answer(request, CallContext(record.caller, deadline))
    if isinstance(reply, Message):
        record.saw(reply)
    return reply


def _answer(request_type: type[Message], admitted: Callable[[Any], Message], data: bytes) -> bytes:
    """Bytes, request, reply, bytes: all that a worker does for a message."""
    return to_bytes(admitted(parse(request_type, data)))


class _Guarded:
    """The end of a stream that is written to for as long as the caller's token counts."""

    def __init__(self, wire: Replies, record: CallRecord) -> None:
        self._wire = wire
        self._visit = record

    async def write(self, message: bytes) -> None:
        """Sends a message. Raises: TokenInvalid."""
        self._visit.look_again()
        await self._wire.write(message)
