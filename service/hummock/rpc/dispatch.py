"""The ways of answering a call: bytes in, work behind a gate, bytes out."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import grpc
from google.protobuf.message import Message
from grpc import aio

from hummock.core.errors import HummockError, InvalidRequest
from hummock.core.later import Later
from hummock.rpc import recall_messages
from hummock.rpc.admission import Door, Gate, work_until
from hummock.rpc.recall_messages import recall_query
from hummock.rpc.status import MAX_REPLY_BYTES, ReplyTooLarge, known, to_grpc, to_proto, violations_of
from hummock.rpc.streams import ReplyStream, answer_each
from hummock.rpc.use_cases import Recall
from hummock.rpc.validation import check, check_size, decode, parse
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import recall_pb2


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a call for another gate: of one that computes, what waits for the disk; of a long one, all."""

    finish: Callable[[], Message]


IN_FLIGHT = 4

_SIDES_OF_A_TURN = 2

Learn = Callable[[pb.LearnRequest], pb.LearnResponse | Later[pb.LearnResponse]]
Outcome = pb.LearnResponse | pb.LearnFailure


class Wire(Protocol):
    """The two ends of the stream."""

    async def read(self) -> object:
        """The next message as bytes; anything else behind the last one."""

    async def write(self, message: bytes) -> None:
        """Sends a message."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batch:
    """A batch on its way: the memories or session that it names, how many memories it makes, what becomes of it."""

    names: frozenset[tuple[str, str, str]] = frozenset()
    size: int = 0
    outcome: asyncio.Task[Outcome]


class LearnStream:
    """Answers one stream. Up to IN_FLIGHT batches are stored at once, so that they share a commit.

    A batch waits for the earlier ones that name an id which it names too, of a memory or of a turn's session: the last
    word wins, and turns keep their order. When all places are
    taken nothing is read, so the connection itself slows the sender down.
    """

    def __init__(self, learn: Learn, gate: Gate, wire: Wire, method: str) -> None:
        """Args are what stores a checked batch, where that runs, the stream, and the method's name for the log."""
        self._learn = learn
        self._gate = gate
        self._wire = wire
        self._method = method
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._batches: asyncio.Queue[_Batch | None] = asyncio.Queue()
        self._unfinished: set[_Batch] = set()
        self._broken: InvalidRequest | None = None

    async def run(self) -> None:
        """Answers every batch. Raises: InvalidRequest for bytes that are no batch, behind the answers before it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(tasks))
            await self._write()
        if self._broken is not None:
            raise self._broken

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._places.acquire()
            data = await self._wire.read()
            batch = await self._begin(data, tasks) if isinstance(data, bytes) else None
            self._batches.put_nowait(batch)
            if batch is None:
                return
            self._unfinished.add(batch)

    async def _begin(self, data: bytes, tasks: asyncio.TaskGroup) -> _Batch | None:
        """Starts a batch; None when its bytes are garbled, which ends the stream."""
        try:
            check_size(data)
        except InvalidRequest as error:
            return _Batch(outcome=tasks.create_task(self._fail(error)))
        try:
            request = await self._gate.run(partial(decode, pb.LearnStreamRequest, data), patient=True)
        except InvalidRequest as error:
            self._broken = error
            return None
        learn = request.batch
        names = _names(learn)
        before = [batch.outcome for batch in self._unfinished if batch.names & names]
        size = _SIDES_OF_A_TURN if learn.HasField("turn") else len(learn.memories)
        return _Batch(names=names, size=size, outcome=tasks.create_task(self._store(request, before)))

    async def _store(self, request: pb.LearnStreamRequest, before: list[asyncio.Task[Outcome]]) -> Outcome:
        if before:
            await asyncio.wait(before)
        try:
            return await self._gate.run(partial(self._store_now, request), patient=True)
        except Exception as error:  # the stream goes on: what failed is this batch's answer
            return await self._fail(error)

    def _store_now(self, request: pb.LearnStreamRequest) -> pb.LearnResponse | Later[pb.LearnResponse]:
        check(request)
        return self._learn(request.batch)

    async def _fail(self, error: Exception) -> Outcome:
        return _failure(known(error, self._method))

    async def _write(self) -> None:
        batch_index = stored_count = 0
        while (batch := await self._batches.get()) is not None:
            outcome = await batch.outcome
            self._unfinished.discard(batch)
            reply = pb.LearnStreamResponse(batch_index=batch_index)
            if isinstance(outcome, pb.LearnFailure):
                reply.failed.CopyFrom(outcome)
            else:
                stored_count += batch.size
                reply.stored.CopyFrom(outcome)
            reply.stored_count = stored_count
            await self._wire.write(reply.SerializeToString())
            self._places.release()
            batch_index += 1


def _names(learn: pb.LearnRequest) -> frozenset[tuple[str, str, str]]:
    if learn.HasField("turn"):
        return frozenset({("session", learn.project, learn.turn.session_id)})
    return frozenset(("memory", learn.project, sent.id) for sent in learn.memories if sent.id)


def _failure(error: HummockError) -> pb.LearnFailure:
    status = to_proto(error)
    field = violations_of(error)[0].field if isinstance(error, InvalidRequest) else ""
    return pb.LearnFailure(
        code=status.code, reason=error.reason, message=status.message, field=field.removeprefix("batch.")
    )


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


RECALL = "/hummock.v1.ContextService/Recall"

_MOST_BYTES = 64 * 1024
"""Larger requests are not read on the event loop."""


def recall_handler(
    answer: Callable[[Any], recall_pb2.RecallResponse | Rest],
    at_once: Gate,
    reads: Gate,
    door: Door,
) -> grpc.RpcMethodHandler[bytes, bytes]:
    """What answers the method; `answer` takes a RecallRequest, and leaves one that takes longer to a worker."""
    work = partial(reply_or_rest, recall_pb2.RecallRequest, answer)
    call = UnaryCall(RECALL, work, at_once, door, rest=reads, most_bytes=_MOST_BYTES)
    return grpc.unary_unary_rpc_method_handler(call.answer)


def recall_response(recall: Recall, request: recall_pb2.RecallRequest) -> recall_pb2.RecallResponse | Rest:
    """Finds the memories that bear on a query: at once, or on a worker."""
    query = recall_query(request)
    recalled = recall.at_once(query)
    if recalled is None:
        return Rest(lambda: recall_messages.recall_response(recall(query)))
    return recall_messages.recall_response(recalled)
