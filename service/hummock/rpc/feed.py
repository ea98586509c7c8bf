"""Wakes the streams of a project when it is written to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hummock.core.errors import Exhausted

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
