"""Two halves of one search at once, where a core is free for the second."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

One = TypeVar("One")
Other = TypeVar("Other")


class Halves:
    """Counts the cores that large searches have, and lends what is left. Safe to call from several threads.

    Halves are compiled loops that hold no lock. Small searches take less time than it takes to hand a half over.
    """

    def __init__(self, cores: int | None = None) -> None:
        """`cores` of the machine; default those that this process may use."""
        self._free = cores or _cores()
        self._lock = Lock()
        # Threads are started when they are first needed.
        self._threads = ThreadPoolExecutor(max(1, self._free - 1), thread_name_prefix="hummock-search")

    def both(self, one: Callable[[], One], other: Callable[[], Other]) -> tuple[One, Other]:
        """What both give: at once if a core is free for `one`, else one after the other."""
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
        """Ends the threads. Searches must have ended."""
        self._threads.shutdown()

    def _take(self) -> int:
        """A core for the caller, free or not, and another one if it is free."""
        with self._lock:
            taken = 2 if self._free >= 2 else 1
            self._free -= taken
            return taken

    def _give(self, taken: int) -> None:
        with self._lock:
            self._free += taken


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
