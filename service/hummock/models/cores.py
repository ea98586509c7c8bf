"""The cores that models share: what a query asks of several models runs at the same time where one is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

Here = TypeVar("Here")
Elsewhere = TypeVar("Elsewhere")


class Cores:
    """Counts the cores that are free. Safe to call from several threads."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = Lock()
        self._others = ThreadPoolExecutor(max_workers=count, thread_name_prefix="embed-other")

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

    def at_once(self, here: Callable[[], Here], elsewhere: Callable[[], Elsewhere]) -> tuple[Here, Elsewhere]:
        """What both return: at the same time if a core is free, else one after the other on this thread."""
        with self.another() as is_free:
            if not is_free:
                return here(), elsewhere()
            other = self._others.submit(elsewhere)
            return here(), other.result()

    def close(self) -> None:
        """End the threads of the other cores."""
        self._others.shutdown()

    def _give(self, count: int) -> None:
        with self._lock:
            self._free += count
