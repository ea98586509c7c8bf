"""A circuit breaker: what failed again and again is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

FAILURES = 5
"""In a row, after which nothing is tried."""

OPEN_S = 30.0
"""How long; then one call may try."""


class Breaker:
    """Counts failures in a row. Safe to call from several threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Closed; `monotonic` gives seconds from some start."""
        self._monotonic = monotonic
        self._failures = 0
        self._open_until_s = 0.0
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether a call would not be tried now; to ask uses up no attempt."""
        with self._lock:
            return self._is_open()

    def lets_through(self) -> bool:
        """Whether a call may be tried; while it is open, one every OPEN_S."""
        with self._lock:
            if self._is_open():
                return False
            if self._failures >= FAILURES:
                self._open_until_s = self._monotonic() + OPEN_S
            return True

    def succeeded(self) -> None:
        """Closes it."""
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        """Counts a failure."""
        with self._lock:
            self._failures += 1
            if self._failures == FAILURES:
                self._open_until_s = self._monotonic() + OPEN_S

    def _is_open(self) -> bool:
        return self._failures >= FAILURES and self._monotonic() < self._open_until_s
