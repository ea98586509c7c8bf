"""Whether calls are let in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from hummock.core.errors import Unavailable


class Door:
    """Whether calls are let in, and how many are inside. Belongs to the event loop."""

    def __init__(self) -> None:
        self._is_open = False
        self._inside = 0
        self._nobody_inside = asyncio.Event()
        self._nobody_inside.set()

    def open(self) -> None:
        """Lets calls in."""
        self._is_open = True

    def close(self) -> None:
        """Lets no more calls in; those inside stay."""
        self._is_open = False

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        """Counts a call as inside. Raises: Unavailable, while the door is closed."""
        if not self._is_open:
            raise Unavailable("the service is starting or stopping; try again")
        self._inside += 1
        self._nobody_inside.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._nobody_inside.set()

    async def emptied(self) -> None:
        """Returns when no call is inside."""
        await self._nobody_inside.wait()
