"""LearnStream: one answer a batch, in order; what fails does not end it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from hummock.core.errors import StorageFull
from hummock.core.memory import LearnCommand, Learned
from hummock.rpc.learn_stream import IN_FLIGHT, IN_FLIGHT_MEMORIES
from hummock_client.errors import status_error
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2
from tests.rpc.edge import Edge, edge, refusal_of, use_cases
from tests.rpc.samples import learned

pytestmark = pytest.mark.timed


def batch(*contents: str, project: str = "p", ids: Iterable[str] = ()) -> bytes:
    names = [*ids, *[""] * len(contents)]
    memories = [
        memory_pb2.Memory(id=name, kind=memory_pb2.MEMORY_KIND_NOTE, content=content)
        for content, name in zip(contents, names, strict=False)
    ]
    return pb.LearnStreamRequest(learn=pb.LearnRequest(project=project, memories=memories)).SerializeToString()


def open_stream(serving: Edge) -> Any:
    call: Any = serving.channel.stream_stream("/hummock.v1.ContextService/LearnStream")
    return call()


def answers(
    batches: Iterable[bytes], learn: Callable[[LearnCommand], Learned] = learned, **options: Any
) -> tuple[list[pb.LearnStreamResponse], aio.AioRpcError | None]:
    """The replies to a stream, and the error that ended it."""

    async def run() -> tuple[list[pb.LearnStreamResponse], aio.AioRpcError | None]:
        async with edge(use_cases(learn=learn), **options) as serving:
            call: Any = serving.channel.stream_stream("/hummock.v1.ContextService/LearnStream")
            replies: list[pb.LearnStreamResponse] = []
            try:
                async for reply in call(send()):
                    replies.append(pb.LearnStreamResponse.FromString(reply))  # noqa: PERF401 # kept when it breaks
            except aio.AioRpcError as error:
                return replies, error
            return replies, None

    async def send() -> AsyncIterator[bytes]:
        for data in batches:
            yield data

    return asyncio.run(run())


def test_an_empty_stream_has_no_answers() -> None:
    assert answers([]) == ([], None)


def test_each_batch_is_answered_in_order_with_what_is_stored_so_far() -> None:
    replies, error = answers([batch(*("记住",) * size) for size in (1, 2, 3, 1, 1, 4)])
    assert error is None
    assert [reply.batch_index for reply in replies] == [0, 1, 2, 3, 4, 5]
    assert [reply.stored_count for reply in replies] == [1, 3, 6, 7, 8, 12]
    assert [len(reply.learnt.results) for reply in replies] == [1, 2, 3, 1, 1, 4]


def test_answers_keep_the_order_of_batches_when_a_later_one_is_stored_first() -> None:
    second_stored = threading.Event()

    def learn(command: LearnCommand) -> Learned:
        if command.lessons[0].draft.payload.content == "first":
            assert second_stored.wait(60)
        else:
            second_stored.set()
        return learned(command)

    replies, error = answers([batch("first"), batch("second")], learn, workers=4)
    assert error is None
    assert [reply.batch_index for reply in replies] == [0, 1]


def test_batches_that_name_the_same_id_are_stored_in_their_order() -> None:
    stored: list[str] = []

    def learn(command: LearnCommand) -> Learned:
        stored.append(command.lessons[0].draft.payload.content)
        return learned(command)

    contents = [str(number) for number in range(40)]
    replies, error = answers([batch(content, ids=["世界.图鉴"]) for content in contents], learn, workers=4)
    assert error is None
    assert (len(replies), stored) == (40, contents)


def test_a_batch_that_breaks_a_rule_fails_alone() -> None:
    replies, error = answers([batch("a"), batch("b", project=""), batch("c")])
    assert error is None
    assert [reply.WhichOneof("outcome") for reply in replies] == ["learnt", "failed", "learnt"]
    failed = replies[1].failed
    error_told = status_error(failed)
    assert (error_told.code, error_told.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert [one.field for one in error_told.field_violations] == ["project"]
    assert replies[2].stored_count == 2


def test_a_batch_that_the_store_refuses_fails_alone() -> None:
    def learn(command: LearnCommand) -> Learned:
        if command.lessons[0].draft.payload.content == "b":
            raise StorageFull(2, 1)
        return learned(command)

    replies, error = answers([batch("a"), batch("b"), batch("c")], learn)
    assert error is None
    assert [status_error(reply.failed).reason for reply in replies] == ["OK", "STORAGE_FULL", "OK"]
    assert replies[1].failed.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]


def test_a_batch_that_meets_a_bug_fails_alone_and_is_logged_once() -> None:
    def learn(command: LearnCommand) -> Learned:
        raise RuntimeError("secret")

    with capture_logs() as logs:
        replies, error = answers([batch("a")], learn)
    assert error is None
    assert replies[0].failed.code == grpc.StatusCode.INTERNAL.value[0]
    assert "secret" not in replies[0].failed.message
    assert [line["method"] for line in logs] == ["/hummock.v1.ContextService/LearnStream"]


def test_a_batch_above_the_size_limit_fails_alone() -> None:
    replies, error = answers([batch(*("x" * 200_000,) * 25), batch("b")])
    assert error is None
    assert "4194304" in replies[0].failed.message
    assert replies[1].stored_count == 1


def test_garbage_ends_the_stream_behind_the_answers_before_it() -> None:
    replies, error = answers([batch("a"), batch("b"), b"\xff" * 9, batch("c")])
    assert [reply.stored_count for reply in replies] == [1, 2]
    assert error is not None
    assert refusal_of(error).code is grpc.StatusCode.INVALID_ARGUMENT
    assert "LearnStreamRequest" in refusal_of(error).message


@pytest.mark.parametrize(("size", "at_once"), [(1, IN_FLIGHT), (IN_FLIGHT_MEMORIES // 2, 2), (IN_FLIGHT_MEMORIES, 1)])
def test_no_more_than_a_few_batches_are_taken_in_before_the_first_is_stored(size: int, at_once: int) -> None:
    release, lock, begun, most = threading.Event(), threading.Lock(), [0], [0]

    def learn(command: LearnCommand) -> Learned:
        with lock:
            begun[0] += 1
            most[0] = max(most[0], begun[0])
            if begun[0] == at_once:
                release.set()
        assert release.wait(60)
        with lock:
            begun[0] -= 1
        return learned(command)

    batches = [batch(*(f"{number} {each}" for each in range(size))) for number in range(30)]
    replies, error = answers(batches, learn, workers=16)
    assert error is None
    assert (len(replies), most[0]) == (30, at_once)


def test_streams_are_slowed_down_not_refused_when_the_service_is_busy() -> None:
    replies, error = answers([batch(str(number)) for number in range(12)], workers=1, waiting_limit=0)
    assert error is None
    assert [reply.WhichOneof("outcome") for reply in replies] == ["learnt"] * 12


@pytest.mark.parametrize("when", ["before the answer", "after the answer"])
async def test_a_caller_that_hangs_up_leaves_nothing_behind(when: str) -> None:
    release = threading.Event()

    def learn(command: LearnCommand) -> Learned:
        release.wait(60)
        return learned(command)

    async def again(serving: Edge) -> bytes:
        stream = open_stream(serving)
        await stream.write(batch("b"))
        await stream.done_writing()
        reply = await stream.read()
        assert isinstance(reply, bytes)
        return reply

    with capture_logs() as logs:
        async with edge(use_cases(learn=learn)) as serving:
            stream = open_stream(serving)
            await stream.write(batch("a"))
            if when == "after the answer":
                release.set()
                await stream.read()
            stream.cancel()
            release.set()
            async with asyncio.timeout(60):
                while serving.lanes.write.load.running:  # noqa: ASYNC110 # the queue has no event, on purpose
                    await asyncio.sleep(0.001)
            assert pb.LearnStreamResponse.FromString(await again(serving)).stored_count == 1
    assert logs == []
