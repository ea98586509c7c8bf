"""Which cores inferences use, so that one text takes a second core only while nobody else needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["Cores"]


class Cores:
    """Counts those that are free. Safe to call from several threads."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Takes a core, free or not."""
        self._give(-1)
        try:
            yield
        finally:
            self._give(1)

    @contextmanager
    def another(self) -> Iterator[bool]:
        """Takes a core if one is free, and says whether it was."""
        with self._lock:
            is_free = self._free > 0
            self._free -= is_free
        try:
            yield is_free
        finally:
            self._give(is_free)

    def _give(self, count: int) -> None:
        with self._lock:
            self._free += count
