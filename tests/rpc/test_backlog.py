"""Calls that come faster than the service reads wait in gRPC's core, within bounds; the loop is kept busy meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hummock.core.recall import RecallQuery
from hummock.recall.cache import Answer
from hummock.rpc import admission, listening
from hummock.rpc.listening import CALLS_OF_CONNECTION
from hummock.rpc.loop_executor import LoopExecutor
from hummock_client.v1 import recall_pb2
from tests.rpc.edge import edge_on_a_thread, use_cases
from tests.rpc.samples import fresh, recalled

pytestmark = pytest.mark.timed

RECALL = "/hummock.v1.ContextService/Recall"
CALLS = 600
CONNECTIONS = 6
UNREAD_CALLS, UNREAD_CALLS_MOST = 256, 384
PATIENCE_S = 60
NEW_CALLS, ITERATIONS_A_CALL = 10, 5


@pytest.fixture(autouse=True)
def no_wait_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been read waits in the queue, on busy cores for longer than the queue would let it."""
    monkeypatch.setattr(admission, "LONGEST_WAIT_S", PATIENCE_S)
    monkeypatch.setattr(admission, "STANDING_WAIT_S", PATIENCE_S)


@dataclass
class BusyLoop:
    """A recall that keeps the event loop until it is let go, where the question says so."""

    kept: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def inline(self, query: RecallQuery) -> Answer:
        if query.text == "keep":
            self.kept.set()
            assert self.let_go.wait(PATIENCE_S)
        return fresh(recalled(query))


def request(text: str) -> bytes:
    return recall_pb2.RecallRequest(project="p", query_text=text).SerializeToString()


def sent(channel: grpc.Channel, count: int, text: str = "q") -> list[Any]:
    ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(RECALL)
    return [ask.future(request(text), timeout=PATIENCE_S) for _ in range(count)]


def codes(calls: Sequence[Any]) -> Counter[grpc.StatusCode]:
    """Status codes of the calls, once all have ended."""
    for call in calls:
        ended = threading.Event()
        call.add_done_callback(lambda _, ended=ended: ended.set())
        assert ended.wait(PATIENCE_S)
    return Counter(call.code() for call in calls)


@contextmanager
def busy() -> Iterator[tuple[str, BusyLoop]]:
    """The address of a service whose loop is kept, and what lets it go."""
    loop = BusyLoop()
    with edge_on_a_thread(use_cases(recall=loop), waiting_limit=CALLS) as address, ExitStack() as stack:
        stack.callback(loop.let_go.set)
        channel = stack.enter_context(grpc.insecure_channel(address))
        # A call that nobody holds is cancelled.
        keeping = sent(channel, 1, "keep")
        assert loop.kept.wait(PATIENCE_S)
        yield address, loop
        assert codes(keeping) == {grpc.StatusCode.OK: 1}


def connections(stack: ExitStack, address: str) -> list[grpc.Channel]:
    own = [("grpc.use_local_subchannel_pool", 1)]
    return [stack.enter_context(grpc.insecure_channel(address, options=own)) for _ in range(CONNECTIONS)]


@pytest.mark.long
def test_calls_beyond_the_bound_are_ended_unread_and_the_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """V7 of the reliability notes."""
    monkeypatch.setattr(listening, "UNREAD_CALLS", UNREAD_CALLS)
    monkeypatch.setattr(listening, "UNREAD_CALLS_MOST", UNREAD_CALLS_MOST)
    with busy() as (address, loop), ExitStack() as stack:
        channels, ended = connections(stack, address), threading.Semaphore(0)
        calls = [call for channel in channels for call in sent(channel, CALLS // CONNECTIONS)]
        for call in calls:
            call.add_done_callback(lambda _: ended.release())
        # The core has taken one more out of its queue, for the loop to read.
        for _ in range(CALLS - UNREAD_CALLS_MOST - 1):
            assert ended.acquire(timeout=PATIENCE_S)
        assert {call.code() for call in calls if call.done()} == {grpc.StatusCode.CANCELLED}
        # Health has a queue of its own.
        health = health_pb2_grpc.HealthStub(channels[0]).Check.future(health_pb2.HealthCheckRequest())
        loop.let_go.set()
        found = codes(calls)
        assert health.result(PATIENCE_S).status == health_pb2.HealthCheckResponse.SERVING
    assert set(found) == {grpc.StatusCode.OK, grpc.StatusCode.CANCELLED}
    assert found[grpc.StatusCode.OK] >= UNREAD_CALLS


@pytest.mark.long
def test_calls_of_one_connection_wait_at_their_caller() -> None:
    assert CALLS_OF_CONNECTION < CALLS
    with busy() as (address, loop), grpc.insecure_channel(address) as channel:
        calls = sent(channel, CALLS)
        loop.let_go.set()
        assert codes(calls) == {grpc.StatusCode.OK: CALLS}


def test_calls_that_come_one_by_one_are_let_in_before_the_next_job_of_a_crowd() -> None:
    """GRPC hands over a call in some iterations; what waits in its core stands in no fair queue."""

    async def crowd() -> list[int]:
        loop, executor = asyncio.get_running_loop(), LoopExecutor()
        came, seen = 0, list[int]()

        def come(iterations: int) -> None:
            nonlocal came
            if iterations:
                loop.call_soon(come, iterations - 1)
            elif came < NEW_CALLS:
                came += 1
                executor.submit(int)
                loop.call_soon(come, ITERATIONS_A_CALL - 1)

        jobs = [executor.submit(lambda: seen.append(came)) for _ in range(32)]
        come(ITERATIONS_A_CALL)
        await asyncio.gather(*map(asyncio.wrap_future, jobs))
        return seen

    assert asyncio.run(crowd())[1:] == [NEW_CALLS] * 31
