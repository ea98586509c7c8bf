"""Admission: which calls are let in, which wait for a worker, in which order, and until when they are worth it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hummock.core.errors import HummockError, Overloaded, Unavailable

Result = TypeVar("Result")

DEFAULT_WAITING_LIMIT = 256
_SHORTEST_RETRY_S = 0.05
_LONGEST_RETRY_S = 5.0
_FIRST_GUESS_S = 0.01
_NEWEST_WEIGHT = 0.1


class DeadlinePassed(HummockError):
    """The caller's deadline passed before its work began."""

    reason = "DEADLINE_EXCEEDED"

    def __init__(self) -> None:
        super().__init__("the deadline passed while the call waited for a worker; nothing was done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls being worked on and calls waiting for a worker."""

    running: int
    waiting: int


class InFlight:
    """The calls in flight: whether more are let in, and how many there are. Belongs to the event loop."""

    def __init__(self) -> None:
        self._is_open = False
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def open(self) -> None:
        """Lets calls in."""
        self._is_open = True

    def close(self) -> None:
        """Lets no more calls in; those in flight go on."""
        self._is_open = False

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts a call for as long as a block runs. Raises: Unavailable, while none is let in."""
        if not self._is_open:
            raise Unavailable("the service is starting or stopping; try again")
        self._count += 1
        self._none.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._none.set()

    async def drained(self) -> None:
        """Returns when no call is in flight."""
        await self._none.wait()


class AdmissionQueue:
    """Runs work on the threads of an executor that belongs to this queue alone, in the order of arrival.

    A call whose task is cancelled before its work began never runs. Work that has begun runs to its end, since a
    thread cannot be interrupted, and keeps its worker busy until then. Work that returns a future keeps no worker any
    more, but counts as running until the future is done; where the task is cancelled, so is the future.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        workers: int,
        waiting_limit: int = DEFAULT_WAITING_LIMIT,
        is_on_loop: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Queues before an executor.

        Args:
            executor: Takes work first in, first out. The caller owns it and shuts it down.
            workers: Its threads.
            waiting_limit: Calls that may wait for a worker; the next one is refused at once.
            is_on_loop: Whether it runs work on the event loop itself.
            monotonic: Seconds from some start; tests move it by hand.
        """
        self._executor = executor
        self._workers = workers
        self._waiting_limit = waiting_limit
        self._is_on_loop = is_on_loop
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._admitted = 0
        self._mean_s = _FIRST_GUESS_S

    @property
    def load(self) -> Load:
        """How busy it is now."""
        with self._lock:
            running = min(self._admitted, self._workers)
            return Load(running=running, waiting=self._admitted - running)

    async def run(
        self, work: Callable[[], Result | Future[Result]], *, until_s: float | None = None, is_patient: bool = False
    ) -> Result:
        """Runs work on a worker and returns its result, or that of the future which it returns; raises what it raises.

        Args:
            work: Called once, or never when the caller is cancelled or its time is up before a worker is free.
            until_s: When it is not worth starting any more, on the monotonic clock; None means never.
            is_patient: Waits beyond the waiting limit. For streams, which are slowed down instead of refused.

        Raises:
            Overloaded: As many calls wait as may wait.
            DeadlinePassed: Its time was up before a worker was free.
        """
        self._admit(is_patient)
        loop = asyncio.get_running_loop()
        # The worker answers this future itself: handing over a concurrent one, as asyncio does, costs as much again.
        answer: asyncio.Future[Result] = loop.create_future()
        tell = _directly if self._is_on_loop else loop.call_soon_threadsafe
        job = _Job(work, until_s, self._monotonic, self._leave, tell, loop, answer)
        try:
            queued = self._executor.submit(job)
        except BaseException:
            # A worker may find the job all the same; it must not do what the caller hears has failed.
            self._leave(job.drop())
            raise
        try:
            return await answer
        except asyncio.CancelledError:
            if queued.cancel():
                self._leave(job.end())
            job.give_up()
            raise
        finally:
            # An error that came keeps this frame alive, and would keep itself alive through them.
            del job, queued, answer

    def _admit(self, is_patient: bool) -> None:
        with self._lock:
            waiting = max(0, self._admitted - self._workers)
            if self._admitted >= self._workers and waiting >= self._waiting_limit and not is_patient:
                raise Overloaded(waiting, self._waiting_limit, self._retry_after_s(waiting))
            self._admitted += 1

    def _leave(self, took_s: float | None) -> None:
        with self._lock:
            self._admitted -= 1
            if took_s is not None:
                self._mean_s += _NEWEST_WEIGHT * (took_s - self._mean_s)

    def _retry_after_s(self, waiting: int) -> float:
        until_half_empty_s = waiting * self._mean_s / self._workers / 2
        return round(min(max(until_half_empty_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S), 3)


class _Job(Generic[Result]):
    """Work in the queue; lets go of it when it is over, so that a cancelled call's request is freed at once."""

    __slots__ = ("_answer", "_awaited", "_leave", "_loop", "_monotonic", "_started_s", "_tell", "_until_s", "_work")

    def __init__(
        self,
        work: Callable[[], Result | Future[Result]],
        until_s: float | None,
        monotonic: Callable[[], float],
        leave: Callable[[float | None], None],
        tell: Callable[..., object],
        loop: asyncio.AbstractEventLoop,
        answer: asyncio.Future[Result],
    ) -> None:
        self._work: Callable[[], Result | Future[Result]] | None = work
        self._until_s = until_s
        self._monotonic = monotonic
        self._leave = leave
        self._tell = tell
        self._loop = loop
        self._answer: asyncio.Future[Result] | None = answer
        self._awaited: Future[Result] | None = None
        self._started_s: float | None = None

    def __call__(self) -> None:
        """Runs on a worker, and tells the loop what came of it, or leaves that to whoever completes the future."""
        try:
            result = self._run()
        except BaseException as error:
            self._finish(_fail, error)
            return
        if not isinstance(result, Future):
            self._finish(_succeed, result)
            return
        self._awaited = result
        # Whatever thread this is, the one that completes it is another.
        self._tell = self._loop.call_soon_threadsafe
        result.add_done_callback(self._pass_on)

    def _run(self) -> Result | Future[Result]:
        work, now_s = self._work, self._monotonic()
        if work is None or (self._until_s is not None and now_s >= self._until_s):
            raise DeadlinePassed
        self._started_s = now_s
        return work()

    def _pass_on(self, done: Future[Result]) -> None:
        # Not raised here: what went wrong would keep this frame alive, which keeps the future that holds it.
        error = CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._finish(_succeed, done.result())
        else:
            self._finish(_fail, error)

    def _finish(self, tell: Callable[[asyncio.Future[Any], Any], None], outcome: object) -> None:
        # Let go of: what went wrong keeps the frames alive that it came through, and this job with them.
        answer, self._answer, self._awaited = self._answer, None, None
        if answer is None:
            return
        self._leave(self.end())
        # A loop that has been closed meanwhile has nobody who waits.
        with suppress(RuntimeError):
            self._tell(tell, answer, outcome)

    def end(self) -> float | None:
        """Lets go of the work. Returns the seconds that it took, None when it never began."""
        self._work = None
        return None if self._started_s is None else self._monotonic() - self._started_s

    def drop(self) -> float | None:
        """Has no worker do it or tell of it any more; returns as `end` does."""
        self._answer = None
        return self.end()

    def give_up(self) -> None:
        """Nobody waits for the answer: what it waits for itself need not begin."""
        awaited = self._awaited
        if awaited is not None:
            awaited.cancel()


def _directly(tell: Callable[..., None], *told: object) -> None:
    tell(*told)


def _succeed(answer: asyncio.Future[Any], result: object) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        # A future takes any other exception but this one, and would never be done.
        answer.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)
