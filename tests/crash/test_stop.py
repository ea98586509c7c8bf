"""A service that is told to stop ends all streams, answers what it has accepted, and loses nothing acknowledged."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, cast

import grpc
import pytest

from hummock_client.errors import FailedCall, call_error
from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as project
from tests.crash.test_kill import PROJECT, batches, missing
from tests.service.inputs import note
from tests.service.running import Process, Stubs, connected, in_process

pytestmark = [pytest.mark.long, pytest.mark.timed]

STOPS = int(os.environ.get("STOPS", "3"))
LONGEST_STOP_S = 60.0
"""Longest wait of a test for the service to stop; the service itself gives up much earlier."""


def until_stopped(replies: Any) -> list[Any]:
    """Replies of a stream until the service says that it stops: a cut connection has no details."""
    came: list[Any] = []
    with pytest.raises(grpc.RpcError) as caught:
        came.extend(replies)
    error = call_error(cast(FailedCall, caught.value), "the service")
    assert (error.reason, error.retry_after_s) == ("UNAVAILABLE", 1.0)
    return came


def stop(process: Process) -> int:
    """SIGTERM, and the exit status."""
    process.popen.send_signal(signal.SIGTERM)
    return process.popen.wait(LONGEST_STOP_S)


def test_open_streams_are_told_to_end_and_what_is_accepted_is_answered(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    """D9, V11 of the reliability notes."""
    may_end = Event()

    def one_batch_and_then_nothing() -> Iterator[context.LearnStreamRequest]:
        learn = context.LearnRequest(project=PROJECT, memories=[note("one batch", id="first")])
        yield context.LearnStreamRequest(learn=learn)
        may_end.wait(LONGEST_STOP_S)

    def many_texts() -> Iterator[context.LearnStreamRequest]:
        memories = [note(f"memory{number} " * 400, id=f"text-{number}") for number in range(500)]
        learn = context.LearnRequest(project=PROJECT, memories=memories, embedding=context.EMBEDDING_MODE_INLINE)
        yield context.LearnStreamRequest(learn=learn)
        may_end.wait(LONGEST_STOP_S)

    with ExitStack() as stack:
        process = stack.enter_context(in_process(tmp_path, models_dir, model))
        stubs = stack.enter_context(connected(process.target))
        large = [note(f"memory{number} " + "lorem " * 20_000, id=f"large-{number}") for number in range(32)]
        for one in large:
            deferred = context.LearnRequest(project=PROJECT, memories=[one], embedding=context.EMBEDDING_MODE_DEFERRED)
            stubs.context.Learn(deferred)
        idle = stubs.context.LearnStream(one_batch_and_then_nothing())
        assert next(idle).stored_count == 1
        working = stubs.context.LearnStream(many_texts())
        export = stubs.project.ExportProject(project.ExportProjectRequest(project=PROJECT))
        next(export)
        watches = [stubs.memory.WatchMemories(memory.WatchMemoriesRequest(project=PROJECT)) for _ in range(20)]
        for watch in watches:
            assert next(watch).HasField("start")
        process.popen.send_signal(signal.SIGTERM)
        assert [until_stopped(watch) for watch in watches] == [[]] * len(watches)
        assert until_stopped(idle) == []
        # The batch is answered before the stream ends, if it has come: nobody waits until it is embedded.
        answers = until_stopped(working)
        assert [reply.WhichOneof("outcome") for reply in answers] in ([], ["failed"])
        may_end.set()
        assert process.popen.wait(LONGEST_STOP_S) == 0
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        assert missing(stubs, ["first", *(one.id for one in large)]) == []
        # All of a batch or nothing, and here nothing: its caller was told so.
        texts = [f"text-{number}" for number in range(500)]
        assert len(missing(stubs, texts)) == 500


def refused(failed: FailedCall) -> tuple[grpc.StatusCode, float | None]:
    """The status, and after how many seconds the service says that a repeat may succeed."""
    error = call_error(failed, "the service")
    return error.code, error.retry_after_s


NOT_DONE = {(grpc.StatusCode.UNAVAILABLE, 1.0), (grpc.StatusCode.CANCELLED, None), (grpc.StatusCode.UNAVAILABLE, None)}
"""Refused by the service by name; ended by gRPC's core unread, in the moment in which it stops; a closed connection."""


def learn_until_refused(
    stubs: Stubs, writer: str, acknowledged: list[str], on_learnt: Callable[[], None]
) -> tuple[grpc.StatusCode, float | None]:
    """Learns one memory after the other, until the service takes no more; why it did not."""
    numbers = count()
    while True:
        number = next(numbers)
        memory_id = f"{writer}-{number}"
        learn = context.LearnRequest(
            project=PROJECT,
            memories=[note(f"memory{number} of writer {writer}", id=memory_id)],
            embedding=context.EMBEDDING_MODE_DEFERRED,
        )
        try:
            stubs.context.Learn(learn)
        except grpc.RpcError as error:
            return refused(cast(FailedCall, error))
        acknowledged.append(memory_id)
        on_learnt()


def learn_until_stopped(process: Process, stubs: Stubs, number: int) -> list[str]:
    """Ids that were acknowledged to four callers and a stream before stop `number` of the service, and at it."""
    stop_after, acknowledged, enough = 40 + 37 * number % 211, list[str](), Event()
    model = stubs.admin.GetStatus(admin.GetStatusRequest()).model
    stream = stubs.context.LearnStream(batches(model.emb_space, model.dim, start=number * 100_000))

    def learnt() -> None:
        if len(acknowledged) >= stop_after:
            enough.set()

    def follow() -> tuple[grpc.StatusCode, float | None]:
        try:
            for reply in stream:
                acknowledged.extend(result.id for result in reply.learnt.results)
        except grpc.RpcError as error:
            return refused(cast(FailedCall, error))
        return grpc.StatusCode.OK, None

    with ThreadPoolExecutor(5) as pool:
        calls: list[Future[tuple[grpc.StatusCode, float | None]]] = [pool.submit(follow)]
        calls += [
            pool.submit(learn_until_refused, stubs, f"w{number}-{writer}", acknowledged, learnt) for writer in range(4)
        ]
        assert enough.wait(LONGEST_STOP_S)
        assert stop(process) == 0
        assert {call.result(LONGEST_STOP_S) for call in calls} <= NOT_DONE
    return acknowledged


def test_stops_at_load_lose_nothing_that_was_acknowledged(tmp_path: Path, models_dir: Path, model: str) -> None:
    """V11 of the reliability notes; each start finds what the last stop left, the last one all."""
    acknowledged, last = list[str](), list[str]()
    for number in range(STOPS):
        with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
            assert missing(stubs, last) == []
            last = learn_until_stopped(process, stubs, number)
        acknowledged += last
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as stubs:
        assert missing(stubs, acknowledged) == []
