"""Threads that run a model: what somebody waits for goes before what comes by the thousand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

Result = TypeVar("Result")

BULK_ONE_IN = 8
"""While both wait, one text in so many is bulk: it never starves."""


class TextLanes:
    """Runs texts one by one: interactive ones first, and first come, first served in each lane.

    What is interactive waits for the text that runs on each thread, and no more.
    """

    def __init__(self, slots: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=slots, thread_name_prefix=name)
        self._lock = Lock()
        self._interactive: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._bulk: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._since_bulk = 0
        self._running = 0

    def submit(self, work: Callable[[], Result], *, is_bulk: bool) -> Future[Result]:
        """The result of the work, as a future; cancelled before its turn, it never runs."""
        told: Future[Result] = Future()
        with self._lock:
            (self._bulk if is_bulk else self._interactive).append((told, work))
        self._executor.submit(self._run_next)
        return told

    def waiting(self) -> int:
        """Texts that wait."""
        with self._lock:
            return len(self._interactive) + len(self._bulk)

    def running(self) -> int:
        """Texts that are being read."""
        with self._lock:
            return self._running

    def shutdown(self) -> None:
        """Finishes what runs, drops what waits."""
        self._executor.shutdown(cancel_futures=True)
        for told, _ in (*self._interactive, *self._bulk):
            told.cancel()

    def _run_next(self) -> None:
        with self._lock:
            is_bulk = self._bulk and (not self._interactive or self._since_bulk >= BULK_ONE_IN - 1)
            self._since_bulk = 0 if is_bulk else self._since_bulk + 1
            told, work = (self._bulk if is_bulk else self._interactive).popleft()
        if not told.set_running_or_notify_cancel():
            return
        self._count(1)
        try:
            result = work()
        except BaseException as error:
            self._count(-1)
            told.set_exception(error)
        else:
            self._count(-1)
            told.set_result(result)

    def _count(self, more: int) -> None:
        with self._lock:
            self._running += more
