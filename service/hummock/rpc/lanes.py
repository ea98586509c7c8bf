"""Lanes: where a call runs, and the queue of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

from hummock.rpc.admission import DEFAULT_WAITING_LIMIT, AdmissionQueue, Load
from hummock.rpc.loop_executor import LoopExecutor


class Lane(Enum):
    """How calls of a method are answered, and where their work runs."""

    INLINE = auto()
    """A short read on the event loop that never blocks; if it takes longer, it continues as a READ."""
    READ = auto()
    """On a worker for reads."""
    WRITE = auto()
    """On a worker for writes, or on none while its future waits for the disk."""
    READ_STREAM = auto()
    """Replies to one request, each step on a worker for streams."""
    WRITE_STREAM = auto()
    """Replies to one request of a method that writes, each step on a worker for streams."""
    MESSAGES = auto()
    """A stream of requests; each is answered, on a worker for writes, before the next is read."""
    BATCHES = auto()
    """A stream of requests, several of which are written together."""

    @cached_property
    def is_read(self) -> bool:
        """Whether its methods have no side effects."""
        return self in {Lane.INLINE, Lane.READ, Lane.READ_STREAM}

    @cached_property
    def takes_stream(self) -> bool:
        """Whether its methods take a stream of requests."""
        return self in {Lane.MESSAGES, Lane.BATCHES}

    @cached_property
    def gives_stream(self) -> bool:
        """Whether its methods give a stream of replies."""
        return self not in {Lane.INLINE, Lane.READ, Lane.WRITE}


def inline_queue(
    waiting_limit: int = DEFAULT_WAITING_LIMIT, *, monotonic: Callable[[], float] = time.monotonic
) -> AdmissionQueue:
    """The queue before the event loop itself."""
    return AdmissionQueue(LoopExecutor(), workers=1, waiting_limit=waiting_limit, monotonic=monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The queues. Reads and writes have separate ones, as a write holds its worker while it waits for the disk.

    Streams of replies have their own: one write may wake a thousand of them.
    """

    read: AdmissionQueue
    write: AdmissionQueue
    stream: AdmissionQueue
    inline: AdmissionQueue = field(default_factory=inline_queue)

    def queue_of(self, lane: Lane) -> AdmissionQueue:
        """The queue that runs the work of a lane."""
        if lane is Lane.INLINE:
            return self.inline
        if lane in {Lane.READ_STREAM, Lane.WRITE_STREAM}:
            return self.stream
        return self.read if lane.is_read else self.write

    def loads(self) -> dict[str, Load]:
        """Load of each queue, by its name."""
        return {
            "inline": self.inline.load,
            "read": self.read.load,
            "write": self.write.load,
            "stream": self.stream.load,
        }

    def load(self) -> Load:
        """Load of all queues together."""
        loads = self.loads().values()
        return Load(running=sum(load.running for load in loads), waiting=sum(load.waiting for load in loads))
