"""Whether anybody still waits for work that takes long: asked between its parts."""

from __future__ import annotations

import time
from collections.abc import Callable

from hummock.core.errors import DeadlinePassed, HummockError


class NobodyWaits(HummockError):
    """The caller has hung up; the error reaches no one."""


class Deadline:
    """Deadline of a caller, which may also end early. Any thread may check it, and any may end it.

    Attributes:
        until_s: When the deadline passes, on the monotonic clock; None without one.
    """

    __slots__ = ("_monotonic", "_over", "until_s")

    def __init__(self, until_s: float | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.until_s = until_s
        self._monotonic = monotonic
        self._over: HummockError | None = None

    def end(self, why: HummockError) -> None:
        """Nobody waits any more, for this reason; the first one stays."""
        if self._over is None:
            self._over = why

    def check(self) -> None:
        """Returns while somebody waits. Raises: DeadlinePassed, or what it was ended with."""
        if self._over is not None:
            raise self._over
        if self.until_s is not None and self._monotonic() >= self.until_s:
            raise DeadlinePassed


NO_DEADLINE = Deadline()
"""No deadline, for work that is wanted however long it takes."""
