"""An executor that is the event loop itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class LoopExecutor(Executor):
    """Runs work on the event loop on which it is submitted, first in, first out, one piece a turn of the loop.

    To hand a call to a thread and its answer back costs as much as half a recall. Between two pieces of work the loop
    looks at everything else that it has to do, so that calls come in, are refused and hang up while others wait. What
    comes while nothing waits is done when it is submitted.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], object]]] = deque()
        self._has_run = False

    def submit(self, work: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        """Runs the work, or queues it where this turn has had its piece. Called on the loop."""
        submitted: Future[Any] = Future()
        self._waiting.append((submitted, lambda: work(*args, **kwargs)))
        if not self._has_run:
            self._run_first()
        return submitted

    def takes_turn(self) -> bool:
        """True if this turn's piece is still free. The caller runs it itself, at once, and then calls `end_turn`."""
        if self._has_run:
            return False
        self._has_run = True
        return True

    def end_turn(self) -> None:
        """The turn's piece is done; the next one runs in the next turn."""
        # Behind whoever has been given an answer.
        asyncio.get_running_loop().call_soon(self._begin_turn)

    def _run_first(self) -> None:
        self._has_run = True
        submitted, work = self._waiting.popleft()
        try:
            if submitted.set_running_or_notify_cancel():
                submitted.set_result(work())
        except BaseException as error:
            submitted.set_exception(error)
        self.end_turn()

    def _begin_turn(self) -> None:
        self._has_run = False
        if self._waiting:
            self._run_first()
