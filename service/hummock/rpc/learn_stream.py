"""LearnStream: batches of memories, several of which are written together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from google.protobuf.message import Message

from hummock.core.deadline import Deadline
from hummock.core.errors import HummockError, InvalidRequest, Unavailable
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.policy import peek
from hummock.rpc.status import known, to_proto
from hummock.rpc.streams import Feed, Messages, read_next
from hummock.rpc.validation import RulesBroken, Violation, check, decode
from hummock_client.v1 import context_service_pb2 as pb

IN_FLIGHT = 4
"""Batches that are written at once, so that small ones share a commit."""

IN_FLIGHT_MEMORIES = 64
"""Memories of batches under way, from which on no further batch is begun: preparing one while another is written would
keep the interpreter from the calls of others."""

_SIDES_OF_A_TURN = 2

Batch = pb.LearnRequest | pb.LearnTurnRequest
Stored = pb.LearnResponse | pb.LearnTurnResponse
Learn = Callable[[Batch], Stored | Future[pb.LearnResponse]]
Outcome: TypeAlias = Message
"""The stored memories, or a google.rpc.Status."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batch:
    """A batch in flight: the ids that it names, the number of its memories, and its outcome."""

    names: frozenset[tuple[str, str, str]] = frozenset()
    size: int = 0
    outcome: asyncio.Task[Outcome]


@dataclass(slots=True, eq=False)
class LearnStream:
    """Answers one stream, with up to IN_FLIGHT batches under way.

    A batch waits for the earlier ones that name an id which it names too, of a memory or of a turn's session: the last
    word wins, and turns keep their order. When all places are taken nothing is read, so the connection itself slows the
    sender down.

    Attributes:
        learn: Stores a checked batch while the caller waits for it.
        queue: The queue that it runs on.
        wire: The stream.
        feed: Signals that the service stops.
        deadline: How long the caller waits for what it has sent.
        method: The method's name, for the log.
    """

    learn: Learn
    queue: AdmissionQueue
    wire: Messages
    feed: Feed
    deadline: Deadline
    method: str
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _batches: asyncio.Queue[_Batch | None] = field(default_factory=asyncio.Queue)
    _unfinished: set[_Batch] = field(default_factory=set)
    _broken: InvalidRequest | Unavailable | None = None

    async def run(self) -> None:
        """Answer every batch that arrives.

        Raises, after the answers before it: InvalidRequest for bytes that are no batch; Unavailable when the service
        stops.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(tasks))
            await self._write()
        if self._broken is not None:
            raise self._broken

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            while len(self._unfinished) >= IN_FLIGHT or sum(one.size for one in self._unfinished) >= IN_FLIGHT_MEMORIES:
                self._answered.clear()
                await self._answered.wait()
            batch = await self._next(tasks)
            self._batches.put_nowait(batch)
            if batch is None:
                return
            self._unfinished.add(batch)

    async def _next(self, tasks: asyncio.TaskGroup) -> _Batch | None:
        """The next batch, begun; None where the stream ends."""
        try:
            data = await read_next(self.wire, self.feed)
        except Unavailable as stopping:
            # No more embedding, which would delay the stop; batches that wait for the disk are written.
            self.deadline.end(stopping)
            self._broken = stopping
            return None
        return None if data is None else await self._begin(data, tasks)

    async def _begin(self, data: bytes, tasks: asyncio.TaskGroup) -> _Batch | None:
        """Starts a batch; None when its bytes are garbled, which ends the stream."""
        try:
            projects, request = peek(pb.LearnStreamRequest, data)
        except InvalidRequest as error:
            return _Batch(outcome=tasks.create_task(self._fail(error)))
        try:
            if request is None:
                decoding, project = partial(decode, pb.LearnStreamRequest, data), projects[0] if projects else ""
                request = await self.queue.run(decoding, project=project, is_patient=True, is_bulk=True)
        except InvalidRequest as error:
            self._broken = error
            return None
        batch = _batch(request)
        names = _names(batch)
        before = [batch.outcome for batch in self._unfinished if batch.names & names]
        size = _SIDES_OF_A_TURN if isinstance(batch, pb.LearnTurnRequest) else len(batch.memories)
        return _Batch(names=names, size=size, outcome=tasks.create_task(self._store(request, before)))

    async def _store(self, request: pb.LearnStreamRequest, before: list[asyncio.Task[Outcome]]) -> Outcome:
        if before:
            await asyncio.wait(before)
        try:
            project = _batch(request).project
            storing = partial(self._store_now, request)
            return await self.queue.run(storing, project=project, is_patient=True, is_bulk=True)
        except Exception as error:  # the stream goes on: the error is this batch's answer
            return await self._fail(error)

    def _store_now(self, request: pb.LearnStreamRequest) -> Any:
        self.deadline.check()
        check(request)
        return self.learn(_batch(request))

    async def _fail(self, error: Exception) -> Outcome:
        return _failure(known(error, self.method))

    async def _write(self) -> None:
        batch_index = stored_count = 0
        while (batch := await self._batches.get()) is not None:
            outcome = await batch.outcome
            reply = pb.LearnStreamResponse(batch_index=batch_index)
            match outcome:
                case pb.LearnResponse():
                    reply.learnt.CopyFrom(outcome)
                case pb.LearnTurnResponse():
                    reply.learnt_turn.CopyFrom(outcome)
                case _:
                    reply.failed.MergeFrom(outcome)
            stored_count += 0 if reply.HasField("failed") else batch.size
            reply.stored_count = stored_count
            await self.wire.write(reply.SerializeToString())
            self._unfinished.discard(batch)
            self._answered.set()
            batch_index += 1


def _batch(request: pb.LearnStreamRequest) -> Batch:
    return request.learn_turn if request.HasField("learn_turn") else request.learn


def _names(batch: Batch) -> frozenset[tuple[str, str, str]]:
    if isinstance(batch, pb.LearnTurnRequest):
        return frozenset({("session", batch.project, batch.session_id)})
    return frozenset(("memory", batch.project, sent.id) for sent in batch.memories if sent.id)


def _failure(error: HummockError) -> Message:
    """The status of a batch, with field paths relative to the batch and not to the stream's message."""
    if isinstance(error, RulesBroken):
        error = RulesBroken(
            [
                Violation(field=one.field.removeprefix("learn.").removeprefix("learn_turn."), rule=one.rule)
                for one in error.violations
            ]
        )
    status: Message = to_proto(error)
    return status
