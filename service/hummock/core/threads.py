"""Priorities of threads, and cores on which two pieces of work run at the same time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TypeVar

Here = TypeVar("Here")
Elsewhere = TypeVar("Elsewhere")

_NICENESS = 10
"""Linux schedules by thread: with this niceness a call gets nine tenths of a core shared with a worker, and a worker
still progresses while other programs keep all cores busy."""


def give_way() -> None:
    """Lower this thread's priority, if the system has priorities of threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Cores:
    """Counts the cores that are free, and runs a second piece of work on one. Thread-safe.

    The work is compiled and releases the GIL. A small piece takes less time than handing it over.
    """

    def __init__(self, count: int, thread_names: str) -> None:
        """`count` is the number of cores to share; names of threads, which start on first use, begin so."""
        self._free = count
        self._lock = Lock()
        self._others = ThreadPoolExecutor(max_workers=count, thread_name_prefix=thread_names)

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
        """Results of both, run at the same time if a core is free for `elsewhere`, else one after the other."""
        with self.another() as is_free:
            if not is_free:
                return here(), elsewhere()
            other = self._others.submit(elsewhere)
            return here(), other.result()

    def close(self) -> None:
        """End the threads. The work must have ended."""
        self._others.shutdown()

    def _give(self, count: int) -> None:
        with self._lock:
            self._free += count
