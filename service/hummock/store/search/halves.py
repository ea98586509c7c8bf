"""Parallel run of the two halves of a search, if a core is free for the second."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

One = TypeVar("One")
Other = TypeVar("Other")


class Halves:
    """Counts the cores used by large searches, and runs a half on a free one. Thread-safe.

    Halves are compiled loops that release the GIL. A small search takes less time than handing a half over.
    """

    def __init__(self, cores: int | None = None) -> None:
        """`cores` is the number to use; the default is all that this process may use."""
        self._free = cores or _cores()
        self._lock = Lock()
        # Its threads start on first use.
        self._threads = ThreadPoolExecutor(max(1, self._free - 1), thread_name_prefix="hummock-search")

    def both(self, one: Callable[[], One], other: Callable[[], Other]) -> tuple[One, Other]:
        """Results of both calls, run in parallel if a core is free for `one`, otherwise one after the other."""
        taken = self._take()
        try:
            if taken < 2:
                return one(), other()
            half = self._threads.submit(one)
            second = other()
            return half.result(), second
        finally:
            self._give(taken)

    def close(self) -> None:
        """End the threads. Searches must have ended."""
        self._threads.shutdown()

    def _take(self) -> int:
        """Number of cores taken: one for the caller, free or not, and a second if it is free."""
        with self._lock:
            taken = 2 if self._free >= 2 else 1
            self._free -= taken
            return taken

    def _give(self, taken: int) -> None:
        with self._lock:
            self._free += taken


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
