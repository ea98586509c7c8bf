"""From the descriptors of the services to handlers: bytes in, one hop to a worker, bytes out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from hummock.core.errors import Unavailable
from hummock.core.later import Later
from hummock.rpc.deadline import work_until
from hummock.rpc.feed import Feed
from hummock.rpc.gate import Gate, Load
from hummock.rpc.learn_stream import Learn, LearnStream
from hummock.rpc.message_stream import answer_each
from hummock.rpc.parse.request import check_size, compile_rules, parse
from hummock.rpc.reply_stream import ReplyStream
from hummock.rpc.servicers.admin import AdminServicer
from hummock.rpc.servicers.context import ContextServicer
from hummock.rpc.servicers.learning import LearningServicer
from hummock.rpc.servicers.memory import MemoryServicer
from hummock.rpc.servicers.project import ProjectServicer
from hummock.rpc.servicers.session import SessionServicer
from hummock.rpc.status import MAX_REPLY_BYTES, ReplyTooLarge, known, to_grpc
from hummock.rpc.use_cases import UseCases
from hummock.rpc.write_half import WriteHalf
from hummock.v1 import (
    admin_service_pb2,
    context_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    project_service_pb2,
    session_service_pb2,
)

Context = aio.ServicerContext[bytes, bytes]

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    file.DESCRIPTOR.services_by_name[name]
    for file, name in (
        (context_service_pb2, "ContextService"),
        (memory_service_pb2, "MemoryService"),
        (session_service_pb2, "SessionService"),
        (project_service_pb2, "ProjectService"),
        (learning_service_pb2, "LearningService"),
        (admin_service_pb2, "AdminService"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Where calls run: reads apart from writes, for a write holds its worker while it waits for the disk."""

    reads: Gate
    writes: Gate

    def load(self) -> Load:
        """Both together."""
        reads, writes = self.reads.load, self.writes.load
        return Load(running=reads.running + writes.running, waiting=reads.waiting + writes.waiting)


class Door:
    """Whether calls are let in, and how many are inside. Belongs to the event loop."""

    def __init__(self) -> None:
        self._is_open = False
        self._inside = 0
        self._nobody_inside = asyncio.Event()
        self._nobody_inside.set()

    def open(self) -> None:
        """Lets calls in."""
        self._is_open = True

    def close(self) -> None:
        """Lets no more calls in; those inside stay."""
        self._is_open = False

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        """Counts a call as inside. Raises: Unavailable, while the door is closed."""
        if not self._is_open:
            raise Unavailable("the service is starting or stopping; try again")
        self._inside += 1
        self._nobody_inside.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._nobody_inside.set()

    async def emptied(self) -> None:
        """Returns when no call is inside."""
        await self._nobody_inside.wait()


def handlers(use_cases: UseCases, gates: Gates, door: Door, feed: Feed) -> list[grpc.GenericRpcHandler]:
    """One handler a service; the rules of every request are compiled."""
    servicers: Mapping[str, object] = {
        "ContextService": ContextServicer(use_cases),
        "MemoryService": MemoryServicer(use_cases.garden),
        "SessionService": SessionServicer(use_cases.sessions),
        "ProjectService": ProjectServicer(use_cases),
        "LearningService": LearningServicer(use_cases.learning, use_cases.observe, use_cases.scan),
        "AdminService": AdminServicer(use_cases.status, gates.load),
    }
    compile_rules(GetMessageClass(method.input_type) for method in _methods())
    return [
        grpc.method_handlers_generic_handler(
            service.full_name,
            {method.name: _handler(method, servicers[service.name], gates, door, feed) for method in service.methods},
        )
        for service in SERVICES
    ]


def _methods() -> Iterator[MethodDescriptor]:
    for service in SERVICES:
        yield from service.methods


def _handler(
    method: MethodDescriptor, servicer: object, gates: Gates, door: Door, feed: Feed
) -> grpc.RpcMethodHandler[bytes, bytes]:
    """The servicer's method of the same name answers. Without (de)serialisers a handler sees bytes."""
    name = f"/{method.containing_service.full_name}/{method.name}"
    if isinstance(servicer, ContextServicer) and method.client_streaming:
        stream = _StreamCall(name, servicer.Learn, gates.writes, door)
        return grpc.stream_stream_rpc_method_handler(stream.answer)
    gate = gates.reads if _is_read(method) else gates.writes
    request_type, servicer_method = GetMessageClass(method.input_type), getattr(servicer, method.name)
    if method.client_streaming:
        each = partial(_reply, request_type, servicer_method)
        return grpc.stream_stream_rpc_method_handler(_MessageStreamCall(name, each, gate, door).answer)
    if method.server_streaming:
        reply_stream = ReplyStream(request_type, servicer_method, gate, feed)
        return grpc.unary_stream_rpc_method_handler(_ReplyStreamCall(name, reply_stream, door).answer)
    work = partial(_reply_or_half, request_type, servicer_method)
    return grpc.unary_unary_rpc_method_handler(_UnaryCall(name, work, gate, gates.writes, door).answer)


def _is_read(method: MethodDescriptor) -> bool:
    return bool(method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)


def _reply(request_type: type[Message], servicer_method: Callable[[Message], Message], data: bytes) -> bytes:
    """The whole of a call on its worker: bytes, request, reply, bytes."""
    return _serialised(servicer_method(parse(request_type, data)))


def _reply_or_half(
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


class _UnaryCall:
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


class _ReplyStreamCall:
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


class _MessageStreamCall:
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


class _StreamCall:
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
