"""Streams: replies without end that a write wakes, and an answer to each message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import partial
from typing import Any, Literal, Protocol

from google.protobuf.message import Message

from hummock.core.errors import Exhausted, Unavailable
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.status import to_bytes
from hummock.rpc.validation import check_size, parse

MAX_STREAMS = 1000
"""Streams that are answered at once: each costs some ten KiB, and a hop to a worker for each write to its project."""


class TooManyStreams(Exhausted):
    """As many calls are answered with streams as may be."""

    reason = "TOO_MANY_STREAMS"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} streams are open; the limit is {limit}; close one, or share one between its readers")
        self.limit = limit


class Feed:
    """Belongs to the event loop on which it was made; only `tell` may be called by any thread."""

    def __init__(self, max_streams: int = MAX_STREAMS) -> None:
        self._loop = asyncio.get_running_loop()
        self._moved: dict[str, set[asyncio.Event]] = {}
        self._max_streams = max_streams
        self._streams = 0
        self._is_over = False

    def tell(self, project: str, _seq: int) -> None:
        """A project was written to."""
        if project in self._moved:
            # A loop that has been closed meanwhile has no streams.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake, project)

    @contextmanager
    def following(self, project: str) -> Iterator[asyncio.Event]:
        """An event that every write to the project sets, and the end of the feed; whoever waits for it clears it.

        Raises: TooManyStreams.
        """
        if self._streams >= self._max_streams:
            raise TooManyStreams(self._max_streams)
        moved = asyncio.Event()
        self._streams += 1
        self._moved.setdefault(project, set()).add(moved)
        try:
            yield moved
        finally:
            self._streams -= 1
            followers = self._moved[project]
            followers.discard(moved)
            if not followers:
                del self._moved[project]

    @property
    def streams(self) -> int:
        """How many streams follow."""
        return self._streams

    @property
    def is_over(self) -> bool:
        """Whether streams are to end."""
        return self._is_over

    def end(self) -> None:
        """Wakes all, so that they end."""
        self._is_over = True
        for project in self._moved:
            self._wake(project)

    def _wake(self, project: str) -> None:
        for moved in self._moved.get(project, ()):
            moved.set()


class Pause(Enum):
    """What a stream gives instead of a message."""

    UNTIL_WRITTEN = auto()
    """Nothing more until the request's project is written to."""


UNTIL_WRITTEN = Pause.UNTIL_WRITTEN
Steps = Generator[Message | Literal[Pause.UNTIL_WRITTEN], None, None]
"""Each step runs on a worker, one after the other. Before a pause it must have looked at the project in that very step:
a write that came earlier than the step wakes nobody."""


class Replies(Protocol):
    """The end of a stream that is written to."""

    async def write(self, message: bytes) -> None:
        """Sends a message; waits while the reader is slow."""


class Messages(Replies, Protocol):
    """Both ends of a stream."""

    async def read(self) -> object:
        """The next message as bytes; anything else behind the last one."""


async def answer_each(work: Callable[[bytes], bytes], queue: AdmissionQueue, wire: Messages) -> None:
    """Answers each message before the next one is read, so that the connection itself slows the sender down.

    Args:
        work: Makes the answer of a message.
        queue: Where that runs.
        wire: The stream.

    Raises: what the work raises, behind the answers before it.
    """
    while isinstance(data := await wire.read(), bytes):
        await wire.write(await queue.run(partial(work, data), is_patient=True))


class ReplyStream:
    """Answers the calls of one method. A slow reader slows its own stream down and nothing else."""

    def __init__(
        self, request_type: type[Message], method: Callable[[Any], Steps], queue: AdmissionQueue, feed: Feed
    ) -> None:
        """Calls of a method.

        Args:
            request_type: Of its requests, which name a project.
            method: Its steps.
            queue: Where they run.
            feed: Wakes them.
        """
        self._request_type = request_type
        self._method = method
        self._queue = queue
        self._feed = feed

    async def answer(self, data: bytes, wire: Replies) -> None:
        """Sends all there is. Raises: what the method raises; Unavailable, when the service stops meanwhile."""
        check_size(data)
        request: Any = await self._queue.run(partial(parse, self._request_type, data))
        steps = _Walk(self._method(request))
        try:
            with self._feed.following(request.project) as moved:
                while True:
                    moved.clear()
                    step = await self._queue.run(steps.next, is_patient=True)
                    if step is None:
                        return
                    if isinstance(step, bytes):
                        await wire.write(step)
                        continue
                    if not self._feed.is_over:
                        await moved.wait()
                    if self._feed.is_over:
                        raise Unavailable("the service is stopping; follow it again from where you are")
        finally:
            steps.close()


class _Walk:
    """Steps, taken by workers one after the other and closed by the loop at any time."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._is_over = False

    def next(self) -> bytes | Pause | None:
        """The next message as bytes, or a pause; None behind the last one."""
        try:
            step = next(self._steps, None)
        finally:
            # Closed meanwhile, because the caller hung up.
            if self._is_over:
                self._steps.close()
        return to_bytes(step) if isinstance(step, Message) else step

    def close(self) -> None:
        """Ends the walk: at once, or behind the step that runs."""
        self._is_over = True
        with suppress(ValueError):
            self._steps.close()
