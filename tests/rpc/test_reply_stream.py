"""Streams of replies: no write is missed, a slow reader harms nobody, and nothing is left of one that hung up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import StringValue

from hummock.core.errors import HummockError, InvalidRequest, Unavailable
from hummock.rpc import status
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.status import ReplyTooLarge
from hummock.rpc.streams import UNTIL_WRITTEN, Feed, ReplyStream, Steps
from hummock.rpc.validation import MAX_REQUEST_BYTES
from hummock_client.v1.memory_service_pb2 import WatchMemoriesRequest

pytestmark = pytest.mark.timed

REQUEST = WatchMemoriesRequest(project="p").SerializeToString()


class Log:
    """A project as a list of writes, which tells a feed of each."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.lines: list[str] = []
        self.looks = 0
        self.closed = threading.Event()
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        with self._lock:
            self.lines.append(line)
        self.feed.tell("p", len(self.lines))

    def watch(self, request: Message) -> Steps:
        """Yields the lines written so far, then each new one."""
        del request
        told = 0
        try:
            while True:
                self.looks += 1
                if told == len(self.lines):
                    yield UNTIL_WRITTEN
                    continue
                told += 1
                yield StringValue(value=self.lines[told - 1])
        finally:
            self.closed.set()


@dataclass
class Reader:
    """A reader that takes each message only while `may_read` is set."""

    got: list[str] = field(default_factory=list)
    may_read: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def write(self, message: bytes) -> None:
        await self.may_read.wait()
        async with self.moved:
            self.got.append(StringValue.FromString(message).value)
            self.moved.notify_all()

    async def until(self, count: int) -> list[str]:
        """Waits for that many messages; returns all received so far."""
        async with self.moved, asyncio.timeout(60):
            await self.moved.wait_for(lambda: len(self.got) >= count)
        return self.got


@dataclass
class Scene:
    """A log, and streams that watch it."""

    log: Log
    queue: AdmissionQueue
    streams: list[asyncio.Task[None]] = field(default_factory=list)

    def open(self, method: Callable[[Message], Steps] | None = None, *, reads: bool = True) -> Reader:
        reader = Reader()
        if reads:
            reader.may_read.set()
        stream = ReplyStream(WatchMemoriesRequest, method or self.log.watch, self.queue, self.log.feed)
        self.streams.append(asyncio.create_task(stream.answer(REQUEST, reader)))
        return reader


@asynccontextmanager
async def scene(*, workers: int = 2) -> AsyncIterator[Scene]:
    with ThreadPoolExecutor(workers) as executor:
        feed = Feed()
        made = Scene(log=Log(feed), queue=AdmissionQueue(executor, workers=workers, waiting_limit=16))
        yield made
        for stream in made.streams:
            stream.cancel()
        await asyncio.gather(*made.streams, return_exceptions=True)
        assert feed.streams == 0


async def error_of(stream: asyncio.Task[None]) -> BaseException | None:
    """The error that a stream ended with, or None."""
    async with asyncio.timeout(60):
        await asyncio.wait([stream])
    return stream.exception()


async def test_what_is_there_is_sent_and_then_what_comes() -> None:
    async with scene() as at:
        at.log.write("一")
        reader = at.open()
        assert await reader.until(1) == ["一"]
        at.log.write("two")
        assert await reader.until(2) == ["一", "two"]


async def test_a_write_between_the_look_and_the_pause_is_not_missed() -> None:
    """The step has looked and found nothing; before its pause begins there is a write, and never another one."""
    async with scene() as at:

        def watch(request: Message) -> Steps:
            del request
            assert at.log.lines == []
            at.log.write("between")
            yield UNTIL_WRITTEN
            yield StringValue(value=at.log.lines[0])

        reader = at.open(watch)
        assert await reader.until(1) == ["between"]
        assert await error_of(at.streams[0]) is None


async def test_every_write_of_many_writers_reaches_every_stream_in_order() -> None:
    async with scene() as at:
        readers = [at.open() for _ in range(5)]

        def write(writer: int) -> None:
            for number in range(50):
                at.log.write(f"{writer}-{number}")

        writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for writer in writers:
            writer.start()
        late = at.open()
        for writer in writers:
            await asyncio.to_thread(writer.join)
        for reader in (*readers, late):
            assert await reader.until(200) == at.log.lines


async def test_a_stream_that_waits_does_no_work() -> None:
    async with scene() as at:
        reader = at.open()
        at.log.write("first")
        await reader.until(1)
        while at.queue.load.running or at.log.looks < 2:  # noqa: ASYNC110 # the queue has no event, on purpose
            await asyncio.sleep(0.001)
        looks = at.log.looks
        at.log.feed.tell("another project", 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert at.log.looks == looks


async def test_a_slow_reader_keeps_nobody_waiting_and_misses_nothing() -> None:
    async with scene(workers=1) as at:
        slow, quick = at.open(reads=False), at.open()
        for number in range(30):
            at.log.write(str(number))
        assert await quick.until(30) == at.log.lines
        assert slow.got == []
        # The quick one looks once more before it waits; what the slow one has ready keeps no worker.
        async with asyncio.timeout(60):
            while at.queue.load.running:  # noqa: ASYNC110 # the queue has no event, on purpose
                await asyncio.sleep(0.001)
        assert slow.got == []
        slow.may_read.set()
        assert await slow.until(30) == at.log.lines


@pytest.mark.parametrize("reads", [True, False])
async def test_a_reader_that_hangs_up_frees_its_stream(reads: bool) -> None:
    async with scene() as at:
        at.log.write("first")
        reader = at.open(reads=reads)
        if reads:
            await reader.until(1)
        while not at.log.looks:  # noqa: ASYNC110 # a worker makes it true
            await asyncio.sleep(0.001)
        at.streams[0].cancel()
        await asyncio.wait([at.streams[0]])
        assert at.log.feed.streams == 0
        assert await asyncio.to_thread(at.log.closed.wait, 60)


async def test_a_reader_that_hangs_up_during_a_step_frees_its_stream_behind_it() -> None:
    async with scene() as at:
        entered, release, closed = threading.Event(), threading.Event(), threading.Event()

        def watch(request: Message) -> Steps:
            del request
            try:
                entered.set()
                release.wait(60)
                yield StringValue(value="too late")
            finally:
                closed.set()

        reader = at.open(watch)
        await asyncio.to_thread(entered.wait, 60)
        at.streams[0].cancel()
        await asyncio.wait([at.streams[0]])
        assert at.log.feed.streams == 0
        release.set()
        assert await asyncio.to_thread(closed.wait, 60)
        assert reader.got == []


@pytest.mark.parametrize("when", ["while it waits", "while nobody reads", "before it begins"])
async def test_a_stopping_service_ends_streams(when: str) -> None:
    """D9, V11 of the reliability notes."""
    async with scene() as at:
        at.log.write("last")
        if when == "before it begins":
            at.log.feed.end()
        reader = at.open(reads=when != "while nobody reads")
        if when == "while it waits":
            await reader.until(1)
        elif when == "while nobody reads":
            while not at.log.looks:  # noqa: ASYNC110 # a worker makes it true
                await asyncio.sleep(0.001)
        at.log.feed.end()
        assert isinstance(await error_of(at.streams[0]), Unavailable)
        assert reader.got == (["last"] if when == "while it waits" else [])


async def test_a_stream_with_an_end_ends() -> None:
    async with scene() as at:

        def count(request: Message) -> Steps:
            del request
            for number in range(3):
                yield StringValue(value=str(number))

        reader = at.open(count)
        assert await error_of(at.streams[0]) is None
        assert reader.got == ["0", "1", "2"]


def failing(error: HummockError) -> Callable[[Message], Steps]:
    def steps(request: Message) -> Steps:
        del request
        yield StringValue(value="first")
        raise error

    return steps


async def test_what_a_step_raises_ends_the_stream_behind_what_was_sent() -> None:
    async with scene() as at:
        reader = at.open(failing(InvalidRequest("view", "is odd")))
        assert isinstance(await error_of(at.streams[0]), InvalidRequest)
        assert reader.got == ["first"]


async def test_a_message_that_is_too_large_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "MAX_REPLY_BYTES", 10)
    async with scene() as at:
        at.log.write("x" * 20)
        reader = at.open()
        assert isinstance(await error_of(at.streams[0]), ReplyTooLarge)
        assert reader.got == []


async def test_a_request_that_breaks_a_rule_is_refused_before_anything_is_done() -> None:
    async with scene() as at:
        stream = ReplyStream(WatchMemoriesRequest, at.log.watch, at.queue, at.log.feed)
        with pytest.raises(InvalidRequest, match="project"):
            await stream.answer(b"", Reader())
        assert at.log.looks == 0


async def test_a_request_that_is_too_large_is_refused_before_it_waits_for_a_worker() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()  # whatever waited for it would hear of that instead
    stream = ReplyStream(WatchMemoriesRequest, Log(Feed()).watch, AdmissionQueue(executor, workers=1), Feed())
    with pytest.raises(InvalidRequest, match="bytes"):
        await stream.answer(bytes(MAX_REQUEST_BYTES + 1), Reader())
