"""An executor whose jobs run on the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

_CROWD = 16
"""Jobs that wait, from which on each job is followed by a pause for new calls."""

_JOBS_PER_PAUSE = 64
"""While fewer wait, one job in so many is followed by a pause: calls may wait in gRPC's core, unseen."""

_QUIET, _MOST = 12, 256
"""Loop iterations without a new job that end a pause, and iterations that end it in any case. gRPC hands over one call
in about five iterations."""


class LoopExecutor(Executor):
    """Runs jobs on the event loop that submits them, first in, first out, one job per loop iteration.

    Handing a call to a thread and back costs as much as half a recall. Between two jobs the loop handles its other
    events, so calls are accepted, refused and cancelled while jobs wait. Pauses let in the calls of a flood, which
    would wait in gRPC's core otherwise, before everybody else's and in no fair queue.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], object]]] = deque()
        self._submitted = self._ended = 0
        self.has_run = False
        """Whether a job has just run or is to run: whoever runs one itself sets it, and calls `end_turn`."""

    def submit(self, work: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        """Queue the job. Call on the loop's thread."""
        submitted: Future[Any] = Future()
        self._waiting.append((submitted, partial(work, *args, **kwargs)))
        self._submitted += 1
        if not self.has_run:
            self.has_run = True
            self.end_turn()
        return submitted

    def end_turn(self) -> None:
        """End a job; the next one runs in the next iteration, or after a pause for new calls."""
        self._ended += 1
        is_pause = len(self._waiting) >= _CROWD or not self._ended % _JOBS_PER_PAUSE
        # After the callers whose answers have just been set.
        asyncio.get_running_loop().call_soon(self._begin_turn, self._submitted, _QUIET if is_pause else 0, _MOST)

    def _run_first(self) -> None:
        submitted, work = self._waiting.popleft()
        try:
            if submitted.set_running_or_notify_cancel():
                submitted.set_result(work())
        except BaseException as error:
            submitted.set_exception(error)
        self.end_turn()

    def _begin_turn(self, submitted: int, quiet: int, most: int) -> None:
        if quiet and most:
            quiet = quiet - 1 if self._submitted == submitted else _QUIET
            asyncio.get_running_loop().call_soon(self._begin_turn, self._submitted, quiet, most - 1)
        elif self._waiting:
            self._run_first()
        else:
            self.has_run = False
