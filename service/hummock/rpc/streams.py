"""Streams: replies without end that a write wakes, and an answer to each message."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, Literal, Protocol, cast

from google.protobuf.message import Message

from hummock.core.errors import Exhausted, Unavailable
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.policy import peek
from hummock.rpc.status import to_bytes
from hummock.rpc.validation import check_size, parse

MAX_STREAMS = 1000
"""Streams that are answered at once: each costs some ten KiB, and a hop to a worker for each write to its project."""

MAX_STREAMS_OF_A_PROJECT = 600
MAX_STREAMS_OF_A_CALLER = 200


class TooManyStreams(Exhausted):
    """The limit of open response streams is reached: in all, for one project, or for one caller."""

    reason = "TOO_MANY_STREAMS"

    def __init__(self, limit: int, whose: str = "") -> None:
        super().__init__(
            f"{limit} streams{whose} are open; the limit is {limit}; close one, or share one between its readers"
        )
        self.limit = limit


class Feed:
    """Signals writes and the end of the service to streams. Only `tell` may be called off its event loop."""

    def __init__(
        self,
        max_streams: int = MAX_STREAMS,
        of_a_project: int = MAX_STREAMS_OF_A_PROJECT,
        of_a_caller: int = MAX_STREAMS_OF_A_CALLER,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._moved: dict[str, set[asyncio.Event]] = {}
        self._callers: Counter[str] = Counter()
        self._max_streams = max_streams
        self._of_a_project = of_a_project
        self._of_a_caller = of_a_caller
        self._streams = 0
        self._endings: set[Callable[[], object]] = set()
        self._is_over = False

    def tell(self, project: str, _seq: int) -> None:
        """A project was written to."""
        if project in self._moved:
            # A loop that has been closed meanwhile has no streams.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake, project)

    @contextmanager
    def following(self, project: str, caller: str = "") -> Iterator[asyncio.Event]:
        """An event that every write to the project sets; the caller clears it.

        Raises: TooManyStreams.
        """
        if self._streams >= self._max_streams:
            raise TooManyStreams(self._max_streams)
        if len(self._moved.get(project, ())) >= self._of_a_project:
            raise TooManyStreams(self._of_a_project, " of this project")
        if self._callers[caller] >= self._of_a_caller:
            raise TooManyStreams(self._of_a_caller, " of this caller")
        moved = asyncio.Event()
        self._streams += 1
        self._callers[caller] += 1
        self._moved.setdefault(project, set()).add(moved)
        try:
            yield moved
        finally:
            self._streams -= 1
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]
            followers = self._moved[project]
            followers.discard(moved)
            if not followers:
                del self._moved[project]

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return self._streams

    @contextmanager
    def until_over(self) -> Iterator[None]:
        """A block that ends when the service stops, wherever it waits: with Unavailable."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        if self._is_over:
            raise _stopping()
        self._endings.add(task.cancel)
        try:
            yield
        except asyncio.CancelledError:
            # If the caller has hung up as well, one more cancellation is pending.
            if not self._is_over or task.uncancel():
                raise
            raise _stopping() from None
        finally:
            self._endings.discard(task.cancel)

    def end(self) -> None:
        """Ends all."""
        self._is_over = True
        for end in self._endings:
            end()

    def _wake(self, project: str) -> None:
        for moved in self._moved.get(project, ()):
            moved.set()


def _stopping() -> Unavailable:
    return Unavailable("the service is stopping; go on from where you are, once it is there again")


class Pause(Enum):
    """Signal that a stream yields instead of a message."""

    UNTIL_WRITTEN = auto()
    """Wait until the request's project is written to."""


UNTIL_WRITTEN = Pause.UNTIL_WRITTEN
Steps = Generator[Message | Literal[Pause.UNTIL_WRITTEN], None, None]
"""Steps of a stream; each runs on a worker, one after the other. A step that ends in a pause must itself have read the
project: a write before the step wakes no stream."""


class Replies(Protocol):
    """The end of a stream that is written to."""

    async def write(self, message: bytes) -> None:
        """Sends a message; waits while the reader is slow."""


class Messages(Replies, Protocol):
    """Both directions of a stream."""

    async def read(self) -> object:
        """The next message as bytes; anything else after the last one."""


async def read_next(wire: Messages, feed: Feed) -> bytes | None:
    """Read the next message; None after the last one. Raises: Unavailable, if the service stops first."""
    with feed.until_over():
        data = await wire.read()
    return data if isinstance(data, bytes) else None


async def answer_each(
    request_type: type[Message], answer: Callable[[Any], Message], queue: AdmissionQueue, wire: Messages, feed: Feed
) -> None:
    """Answer each message before the next one is read, so that the connection itself slows the sender down.

    Args:
        request_type: Type of the messages.
        answer: Makes the answer to a message.
        queue: The queue that the work runs on.
        wire: The stream.
        feed: Signals that the service stops.

    Raises: what the answer raises, after the answers before it; Unavailable, when the service stops.
    """
    while (data := await read_next(wire, feed)) is not None:
        work = partial(_answered, request_type, answer, data)
        projects, _ = peek(request_type, data)
        project = projects[0] if projects else ""
        await wire.write(await queue.run(work, project=project, is_patient=True, is_bulk=True))


def _answered(request_type: type[Message], answer: Callable[[Any], Message], data: bytes) -> bytes:
    """Bytes, request, reply, bytes: all that a worker does for a message."""
    return to_bytes(answer(parse(request_type, data)))


@dataclass(frozen=True, slots=True, eq=False)
class ReplyStream:
    """Answers the calls of one method. A slow reader slows its own stream down and nothing else.

    Attributes:
        request_type: Type of its requests, which name a project.
        method: Its steps.
        queue: The queue that they run on.
        feed: Wakes them.
    """

    request_type: type[Message]
    method: Callable[[Any], Steps]
    queue: AdmissionQueue
    feed: Feed

    async def answer(self, data: bytes, wire: Replies, caller: str = "") -> None:
        """Send all replies. Raises: what the method raises; Unavailable, when the service stops meanwhile.

        Args:
            data: The request.
            wire: Takes the replies.
            caller: The caller that the stream counts for.
        """
        check_size(data)
        with self.feed.until_over():
            request: Any = await self.queue.run(partial(parse, self.request_type, data), is_patient=True)
            steps = _Walk(self.method(request))
            try:
                with self.feed.following(request.project, caller) as moved:
                    await self._send(steps, request.project, moved, wire)
            finally:
                steps.close()

    async def _send(self, steps: _Walk, project: str, moved: asyncio.Event, wire: Replies) -> None:
        while True:
            moved.clear()
            step = await self.queue.run(steps.next, project=project, is_patient=True)
            if step is None:
                return
            if isinstance(step, bytes):
                await wire.write(step)
            else:
                await moved.wait()


class _Walk:
    """Steps, taken by workers one after the other and closed by the loop at any time."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._is_over = False

    def next(self) -> bytes | Pause | None:
        """The next message as bytes, or a pause; None after the last one."""
        try:
            step = next(self._steps, None)
        finally:
            # Closed meanwhile, because the caller hung up.
            if self._is_over:
                self._steps.close()
        return to_bytes(step) if isinstance(step, Message) else step

    def close(self) -> None:
        """End the iteration: at once, or after the running step."""
        self._is_over = True
        with suppress(ValueError):
            self._steps.close()
