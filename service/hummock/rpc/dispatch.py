"""Dispatch: one way in and out for all calls. Parse, admit, run on a lane, answer or abort."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from hummock.core.access import LOCAL, Caller, ScopeMissing, TokenInvalid
from hummock.core.deadline import Deadline, NobodyWaits
from hummock.core.errors import HummockError, Overloaded, Unavailable
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.call import CallContext
from hummock.rpc.interceptor import CallRecord, Interceptor, peer_of
from hummock.rpc.lanes import Lane, Lanes
from hummock.rpc.learn_stream import LearnStream
from hummock.rpc.policy import MethodPolicy, peek, policy_of, projects_of
from hummock.rpc.status import Spliced, known, to_bytes, to_grpc
from hummock.rpc.streams import Feed, Replies, ReplyStream, answer_each
from hummock.rpc.turns import Refusals
from hummock.rpc.validation import check, decode

Context = aio.ServicerContext[bytes, bytes]
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

Answer: TypeAlias = Callable[..., Any]
"""A servicer's method: takes a request and a CallContext. Returns the reply, a future of it if it waits for the disk,
or a callable that finishes it in a second lane; in a lane of replies it yields steps. For MESSAGES it takes no
arguments and returns the function that answers the messages of one stream.
"""

Run = Callable[[Any, Context, CallRecord, Deadline], Awaitable[bytes | None]]
"""Returns the reply to a request, or sends the stream of replies; admits each request before it is run."""

_SHAPES: Mapping[tuple[bool, bool], Callable[[Callable[[Any, Context], Awaitable[bytes | None]]], Handler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
"""What makes gRPC's handler of a function, by whether the method takes and gives a stream."""

_OK = grpc.StatusCode.OK.name
_CANCELLED = grpc.StatusCode.CANCELLED.name

_REFUSALS = (Overloaded, TokenInvalid, ScopeMissing)
"""Errors that cost so little that a client which repeats them at once could keep the service busy."""


class InFlight:
    """The calls in flight: whether more are let in, and how many there are. Belongs to the event loop."""

    def __init__(self) -> None:
        self._is_open = False
        self._last_came_s = -math.inf
        self._calls: set[Deadline] = set()
        self._none = asyncio.Event()
        self._none.set()
        self.refusals = Refusals()
        self._untold = 0
        self._told_one = asyncio.Event()

    def open(self) -> None:
        """Accept calls."""
        self._is_open = True

    def close(self) -> None:
        """Refuse new calls; calls in flight continue."""
        self._is_open = False
        self.refusals.end()

    def enter(self, left_s: float | None = None) -> Deadline:
        """Count a call until `leave`; its deadline, `left_s` seconds from now. Raises: Unavailable: none is let in."""
        self._last_came_s = now_s = time.monotonic()
        if not self._is_open:
            raise Unavailable("the service is starting or stopping; try again")
        deadline = Deadline(None if left_s is None else now_s + left_s)
        self._calls.add(deadline)
        self._none.clear()
        return deadline

    def leave(self, deadline: Deadline) -> None:
        """Count a call no longer, and end its deadline: a worker may stop what it still does for it."""
        deadline.end(NobodyWaits())
        self._calls.discard(deadline)
        if not self._calls:
            self._none.set()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call for as long as a block runs. Raises: Unavailable: none is let in."""
        deadline = self.enter()
        try:
            yield
        finally:
            self.leave(deadline)

    async def drained(self) -> None:
        """Returns when no call is in flight."""
        await self._none.wait()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Count a caller as being sent an error while the block runs."""
        self._untold += 1
        try:
            yield
        finally:
            self._untold -= 1
            self._told_one.set()

    async def told(self, within_s: float) -> None:
        """Wait until all errors are sent, or none was for `within_s` seconds: some clients never read."""
        with suppress(TimeoutError):
            while self._untold:
                self._told_one.clear()
                await asyncio.wait_for(self._told_one.wait(), within_s)

    async def quiet(self, for_s: float) -> None:
        """Wait until no call has arrived for `for_s` seconds."""
        while (left_s := self._last_came_s + for_s - time.monotonic()) > 0:  # noqa: ASYNC110 - each call moves the end
            await asyncio.sleep(left_s)

    def hurry(self, why: HummockError) -> None:
        """End the calls in flight that check their deadline, with this error."""
        for deadline in self._calls:
            deadline.end(why)


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """Knows the callers of one method, and answers their calls.

    Attributes:
        policy: The method's.
        run: Answers a call that was let in.
        in_flight: Counts the calls.
        interceptor: Authenticates the callers.
        shape: Makes gRPC's handler of a function.
    """

    policy: MethodPolicy
    run: Run
    in_flight: InFlight
    interceptor: Interceptor
    shape: Callable[[Callable[[Any, Context], Awaitable[bytes | None]]], Handler]

    async def answer(self, caller: Caller | TokenInvalid, request: Any, context: Context) -> bytes | None:
        """Answer a call with its reply or a status with details. Cancellation also cancels its queued work.

        Args:
            caller: The authenticated caller, or the error of its token.
            request: Its message, or its stream of messages.
            context: gRPC's.
        """
        deadline = record = None
        outcome, reason = _CANCELLED, _CANCELLED
        try:
            deadline = self.in_flight.enter(context.time_remaining())
            if isinstance(caller, TokenInvalid):
                raise caller
            record = CallRecord(self.interceptor, self.policy, context, caller)
            reply = await self.run(request, context, record, deadline)
            outcome, reason = _OK, ""
            return reply
        except Exception as error:
            failure = known(error, self.policy.method)
            status, is_refusal = to_grpc(failure), isinstance(failure, _REFUSALS)
            outcome, reason = status.code.name, failure.reason
            del failure
        finally:
            if deadline is not None:
                self.in_flight.leave(deadline)
            if record is not None:
                record.leave(outcome, reason)
            else:
                self.interceptor.turned_away(self.policy, outcome, reason)
        # The error that ends the call keeps this frame alive until garbage collection; the request must not be kept.
        del request, record, caller
        with self.in_flight.telling():
            if is_refusal:
                await self.in_flight.refusals.turn(peer_of(context), context.time_remaining())
            await context.abort_with_status(status)


class Unary:
    """Runs the calls of a method that has one request and one reply."""

    def __init__(self, request_type: type[Message], policy: MethodPolicy, answer: Answer, lanes: Lanes) -> None:
        """Calls of a method, whose policy says where they run; `answer` is the servicer's."""
        self._request_type = request_type
        self._has_max_reply = "max_reply_bytes" in request_type.DESCRIPTOR.fields_by_name
        self._answer = answer
        self._queue = lanes.queue_of(policy.lane)
        # Checked on the event loop, a large request would be in everybody's way.
        self._queue_of_large = lanes.read if policy.lane is Lane.INLINE else self._queue
        self._then = None if policy.then is None else lanes.queue_of(policy.then)
        # The second half of a write is never refused: its first half has already been paid for.
        self._is_patient = policy.then is not None and not policy.then.is_read

    async def run(self, data: bytes, context: Context, record: CallRecord, deadline: Deadline) -> bytes:
        """Run the method and return the reply's bytes; raises what the method raises."""
        projects, request = peek(self._request_type, data)
        if record.caller is not LOCAL:
            record.check_rights(projects)
        project = projects[0] if projects else ""
        caller = f"{record.caller.name} {peer_of(context)}"
        queue, until_s = self._queue_of_large if request is None else self._queue, deadline.until_s
        beginning = partial(self._begin, data, request, projects, deadline, record)
        reply = await queue.run(beginning, project=project, caller=caller, until_s=until_s)
        if self._then is not None and callable(reply):
            finishing = partial(_finish, reply, record)
            return await self._then.run(
                finishing, project=project, caller=caller, until_s=until_s, is_patient=self._is_patient
            )
        return reply if isinstance(reply, bytes) else _seen(reply, record)

    def _begin(self, data: bytes, request: Any, projects: Sequence[str], deadline: Deadline, record: CallRecord) -> Any:
        """The reply as bytes, a future of the reply, or what makes it in the second half."""
        if request is None:
            request = decode(self._request_type, data)
        check(request)
        record.admit(request, projects)
        reply = self._answer(request, CallContext(record.caller, deadline))
        if not isinstance(reply, Message | Spliced):
            return reply
        record.saw(reply)
        return to_bytes(reply, request.max_reply_bytes if self._has_max_reply else 0)


def _finish(make: Callable[[], Message | Spliced], record: CallRecord) -> bytes:
    return _seen(make(), record)


def _seen(reply: Message | Spliced, record: CallRecord) -> bytes:
    record.saw(reply)
    return to_bytes(reply)


class Methods(grpc.GenericRpcHandler):
    """Chooses how a call is answered, by its method and its token."""

    def __init__(self, methods: Iterable[Method], others: Mapping[str, Handler] = {}) -> None:
        """`others` maps wire names to handlers that check their tokens themselves."""
        self._methods = {each.policy.method: each for each in methods}
        self._others = others

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """The handler of a call; None for an unknown method. Its token is checked before gRPC takes in a message."""
        called = self._methods.get(handler_call_details.method)
        if called is None:
            return self._others.get(handler_call_details.method)
        try:
            caller = called.interceptor.caller(handler_call_details.invocation_metadata or ())
        except TokenInvalid as error:
            # A handler that takes a stream: gRPC reads the one message of others before it calls them.
            return grpc.stream_unary_rpc_method_handler(partial(called.answer, error))
        return called.shape(partial(called.answer, caller))


def method(
    descriptor: MethodDescriptor,
    answer: Answer,
    lanes: Lanes,
    in_flight: InFlight,
    interceptor: Interceptor,
    feed: Feed | None = None,
) -> Method:
    """A method of the contract. Its handlers get bytes, as they are registered without (de)serialisers.

    Args:
        descriptor: The method, as the contract has it.
        answer: The servicer's method.
        lanes: The queues.
        in_flight: Counts calls.
        interceptor: Authenticates the callers.
        feed: Wakes streams of replies; required for a method that has some.
    """
    policy, request_type = policy_of(descriptor), GetMessageClass(descriptor.input_type)
    run: Run = Unary(request_type, policy, answer, lanes).run
    if feed is not None and policy.lane.gives_stream:
        run = partial(_run_stream, request_type, policy, answer, lanes.queue_of(policy.lane), feed)
    return Method(policy, run, in_flight, interceptor, _SHAPES[policy.lane.takes_stream, policy.lane.gives_stream])


async def _run_stream(
    request_type: type[Message],
    policy: MethodPolicy,
    answer: Answer,
    queue: AdmissionQueue,
    feed: Feed,
    request: Any,
    context: Context,
    record: CallRecord,
    deadline: Deadline,
) -> None:
    # One function for each stream of messages: it keeps state between them.
    admitted = partial(_admitted, answer() if policy.lane is Lane.MESSAGES else answer, record, deadline)
    match policy.lane:
        case Lane.MESSAGES:
            await answer_each(request_type, admitted, queue, context, feed)
        case Lane.BATCHES:
            await LearnStream(admitted, queue, context, feed, deadline, policy.method).run()
        case _:
            replies = ReplyStream(request_type, admitted, queue, feed)
            await replies.answer(request, _Guarded(context, record), peer_of(context))


def _admitted(answer: Answer, record: CallRecord, deadline: Deadline, request: Message) -> Any:
    """Answer a message of a stream after checking the caller's token again, which may have been revoked meanwhile."""
    record.look_again()
    projects = projects_of(request)
    if record.caller is not LOCAL:
        record.check_rights(projects)
    record.admit(request, projects)
    reply = answer(request, CallContext(record.caller, deadline))
    if isinstance(reply, Message):
        record.saw(reply)
    return reply


@dataclass(frozen=True, slots=True)
class _Guarded:
    """The end of a stream that is written to for as long as the caller's token counts."""

    wire: Replies
    record: CallRecord

    async def write(self, message: bytes) -> None:
        """Sends a message. Raises: TokenInvalid."""
        self.record.look_again()
        await self.wire.write(message)
