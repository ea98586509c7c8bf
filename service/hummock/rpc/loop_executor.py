"""An executor whose jobs run on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any


class LoopExecutor(Executor):
    """Runs jobs on the event loop that submits them, first in, first out, one job per loop iteration.

    Handing a call to a thread and back costs as much as half a recall. Between two jobs the loop handles its other
    events, so calls are accepted, refused and cancelled while jobs wait.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], object]]] = deque()
        self.accepted = 0
        """Calls that gRPC has handed over so far; whoever takes one counts it."""
        self.has_run = False
        """Whether a job has just run or is to run: whoever runs one itself sets it, and calls `end_turn`."""

    def submit(self, work: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        """Queue the job. Call on the loop's thread."""
        submitted: Future[Any] = Future()
        self._waiting.append((submitted, partial(work, *args, **kwargs)))
        if not self.has_run:
            self.has_run = True
            self.end_turn()
        return submitted

    def end_turn(self) -> None:
        """End a job; the next one runs in the next iteration."""
        # After the callers whose answers have just been set.
        asyncio.get_running_loop().call_soon(self._begin_turn)

    def _run_first(self) -> None:
        submitted, work = self._waiting.popleft()
        try:
            if submitted.set_running_or_notify_cancel():
                submitted.set_result(work())
        except BaseException as error:
            submitted.set_exception(error)
        self.end_turn()

    def _begin_turn(self) -> None:
        if self._waiting:
            self._run_first()
        else:
            self.has_run = False
