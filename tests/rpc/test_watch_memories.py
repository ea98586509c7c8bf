"""MemoryService.Watch over a real socket, of a garden that tests choose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from grpc import aio

from hummock.core.memory import EventPage, MemoryEvent, MemoryEventType
from hummock.rpc.memory_service import MOST_EVENTS, SEQ_EVERY, watch_memories
from hummock.rpc.streams import Feed
from hummock_client.v1 import memory_service_pb2 as pb
from tests.rpc import samples
from tests.rpc.edge import FixedGarden, edge, refusal_of, use_cases

pytestmark = pytest.mark.timed


def removed(memory_id: str, seq: int) -> MemoryEvent:
    return MemoryEvent(type=MemoryEventType.DELETED, memory_id=memory_id, memory=None, seq=seq)


def paged(*pages: EventPage) -> Callable[[int], EventPage]:
    """A source of events that returns these pages one after the other, then nothing new."""
    left = list(pages)
    return lambda after: left.pop(0) if left else EventPage(events=(), seq=after)


def messages(garden: FixedGarden, count: int, **asked: Any) -> list[pb.WatchMemoriesResponse]:
    """The first messages of a watch."""

    async def run() -> list[pb.WatchMemoriesResponse]:
        async with edge(use_cases(garden=garden)) as serving:
            call: Any = serving.channel.unary_stream("/hummock.v1.MemoryService/WatchMemories")
            stream = call(pb.WatchMemoriesRequest(**({"project": "loan"} | asked)).SerializeToString())
            return [pb.WatchMemoriesResponse.FromString(await stream.read()) for _ in range(count)]

    return asyncio.run(run())


def test_a_watch_begins_with_the_newest_write_where_nothing_else_is_asked() -> None:
    (start,) = messages(FixedGarden(), 1)
    assert (start.WhichOneof("news"), start.seq) == ("start", samples.PROJECT.seq)


def test_many_events_come_in_messages_of_which_the_last_alone_has_told_all() -> None:
    events = tuple(removed(str(number), 9) for number in range(2 * MOST_EVENTS + 1))
    garden = FixedGarden(event_pages=paged(EventPage(events=events, seq=9)))
    got = messages(garden, 4, after_seq=8)[1:]
    assert [(message.seq, len(message.events.events)) for message in got] == [(8, 512), (8, 512), (9, 1)]
    assert [event.id for message in got for event in message.events.events] == [event.memory_id for event in events]


def test_writes_without_an_event_move_the_position_now_and_then() -> None:
    told = FixedGarden().seq("loan")
    garden = FixedGarden(
        event_pages=paged(
            EventPage(events=(), seq=told + SEQ_EVERY - 1, is_newest=False), EventPage(events=(), seq=told + SEQ_EVERY)
        )
    )
    _, news = messages(garden, 2, after_seq=told)
    assert (news.seq, len(news.events.events)) == (told + SEQ_EVERY, 0)


def test_a_wrong_request_is_refused_with_its_field() -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        messages(FixedGarden(), 1, project=" ")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "project" in refusal_of(caught.value).violations


async def test_beyond_the_limit_a_watch_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummock.rpc.server.Feed", lambda: Feed(max_streams=1))
    async with edge(use_cases(garden=FixedGarden())) as serving:
        call: Any = serving.channel.unary_stream("/hummock.v1.MemoryService/WatchMemories")
        request = pb.WatchMemoriesRequest(project="loan").SerializeToString()
        first = call(request)
        await first.read()
        with pytest.raises(aio.AioRpcError) as caught:
            await call(request).read()
        refusal = refusal_of(caught.value)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_STREAMS")
        assert refusal.metadata == {"limit": "1"}
        first.cancel()
        async with asyncio.timeout(60):
            while serving.server._feed.streams:  # noqa: ASYNC110 # the server hears of it a moment later
                await asyncio.sleep(0.001)
        await call(request).read()


def test_a_watch_looks_and_pauses_in_the_same_step() -> None:
    looks: list[int] = []

    def pages(after: int) -> EventPage:
        looks.append(after)
        return EventPage(events=(), seq=after)

    garden, request = FixedGarden(event_pages=pages), pb.WatchMemoriesRequest(project="loan")
    steps = watch_memories(garden, request, lambda name: None)
    next(steps)
    for count in (1, 2, 3):
        next(steps)
        assert len(looks) == count


async def test_a_stopping_service_ends_a_watch_with_unavailable() -> None:
    async with edge(use_cases(garden=FixedGarden())) as serving:
        call: Any = serving.channel.unary_stream("/hummock.v1.MemoryService/WatchMemories")
        stream = call(pb.WatchMemoriesRequest(project="loan").SerializeToString())
        await stream.read()
        stop = asyncio.create_task(serving.server.stop(600))
        with pytest.raises(aio.AioRpcError) as caught:
            await stream.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        await stop
