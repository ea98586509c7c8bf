"""Admission control: queues calls for workers and refuses those that would start too late."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hummock.core.errors import DeadlinePassed, Overloaded
from hummock.rpc.loop_executor import LoopExecutor
from hummock.rpc.turns import Turns

Result = TypeVar("Result")

DEFAULT_WAITING_LIMIT = 256
LONGEST_WAIT_S = 1.0
"""Longest expected wait for a worker, in seconds. A burst of calls is over by then."""
STANDING_WAIT_S = 0.1
"""Longest expected wait, in seconds, once the queue has not been empty for LONGEST_WAIT_S: a backlog that lasts makes
every call late, so new calls are refused earlier."""

ALWAYS_WAIT = 64
"""Waiting calls that are never refused for their expected wait: as many as sixty-four clients have under way."""

_SHORTEST_RETRY_S = 0.05
_LONGEST_RETRY_S = 5.0
_FIRST_GUESS_S = 0.01
_NEWEST_WEIGHT = 0.1
_MOST_TIMES_THE_MEAN = 4.0
"""Cap on one call's weight in the mean duration. The call that loads a project takes far longer than later ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls being worked on and calls waiting for a worker."""

    running: int
    waiting: int


class _LoopCalls:
    """Calls functions on an event loop, from any thread. A writer that ends many calls at once wakes the loop once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._calls: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._is_woken = False

    def __call__(self, function: Callable[..., object], *arguments: object) -> None:
        """Call the function soon, after those given before it. Raises: RuntimeError: the loop is closed."""
        self._calls.append((function, arguments))
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        # First: a call that is added from here on wakes the loop again, unless it is made below.
        self._is_woken = False
        try:
            while self._calls:
                function, arguments = self._calls.popleft()
                function(*arguments)
        finally:
            if self._calls:  # one has failed, which the loop reports; the others do not wait for the next wake
                self.loop.call_soon(self._run)


class AdmissionQueue:
    """Runs jobs on the threads of its own executor, in the order of `Turns`.

    A call whose task is cancelled before its work begins never runs. Work that has begun runs to its end, since a
    thread cannot be interrupted. Work that returns a future frees its worker, but counts
    as running until the future is done; cancelling the task cancels the future.

    With more than ALWAYS_WAIT calls ahead, a call is refused if its expected wait exceeds its deadline or
    LONGEST_WAIT_S; the limit is STANDING_WAIT_S once the queue has not been empty for LONGEST_WAIT_S. Bursts pass, and
    a lasting backlog stays short.

    Source: Nichols & Jacobson, Controlling Queue Delay, ACM Queue 2012; Maurer, Fail at Scale, ACM Queue 2015.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        workers: int,
        waiting_limit: int = DEFAULT_WAITING_LIMIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty queue.

        Args:
            executor: Takes work first in, first out. The caller owns it and shuts it down.
            workers: Number of threads of the executor.
            waiting_limit: Calls that may wait for a worker. One more evicts the newest call of the project with the
                longest queue, and there of the caller with the longest; it is refused at once if that is its own.
            monotonic: Clock in seconds; tests set it.
        """
        self._executor = executor
        self.on_loop = executor if isinstance(executor, LoopExecutor) else None
        """The executor, where it is the event loop itself."""
        self._workers = workers
        self._waiting_limit = waiting_limit
        self.monotonic = monotonic
        self._lock = threading.Lock()
        self._turns: Turns[_Job[Any]] = Turns()
        self._admitted = self._impatient = 0
        self._mean_s = _FIRST_GUESS_S
        self._calls: _LoopCalls | None = None
        self._waiting_since_s: float | None = None

    @property
    def load(self) -> Load:
        """The current load of the queue."""
        with self._lock:
            running = min(self._admitted, self._workers)
            return Load(running=running, waiting=self._admitted - running)

    async def run(
        self,
        work: Callable[[], Result | Future[Result]],
        *,
        project: str = "",
        caller: str = "",
        until_s: float | None = None,
        is_patient: bool = False,
        is_bulk: bool = False,
    ) -> Result:
        """Run work on a worker and return its result, or that of the future it returns; raises what it raises.

        Args:
            work: Called once, or never when the caller is cancelled or its deadline passes before a worker is free.
            project: The project that the work belongs to.
            caller: Names the caller; those of a project take turns.
            until_s: Deadline for starting it, on the monotonic clock; None means never.
            is_patient: Never refuse it. For streams, which are slowed down instead.
            is_bulk: Lets interactive work go first.

        Raises:
            Overloaded: The queue is full, or the expected wait is too long.
            DeadlinePassed: The deadline passed before a worker was free.
        """
        on_loop = self.on_loop
        if on_loop is not None and not (self._admitted or on_loop.has_run):
            done = self._run_at_once(on_loop, work, project, until_s)
            return await self._later(done) if isinstance(done, Future) else done
        loop = asyncio.get_running_loop()
        # The worker sets this future itself: wrapping a concurrent future, as asyncio does, doubles the cost.
        answer: asyncio.Future[Result] = loop.create_future()
        tell = _directly if on_loop is not None else self.calls_on(loop)
        arrived_s = self.monotonic()
        job = _Job(work, self, answer, loop, tell, arrived_s, project, caller, until_s, is_patient, is_bulk)
        self._admit(job)
        try:
            self._executor.submit(self._work)
        except BaseException:
            self._withdraw(job)
            raise
        try:
            return await answer
        except asyncio.CancelledError:
            self._withdraw(job)
            job.give_up()
            raise
        finally:
            # A raised error refers to this frame, which would refer back to the error: a cycle.
            del job, answer

    def calls_on(self, loop: asyncio.AbstractEventLoop) -> _LoopCalls:
        """What calls functions on the loop for all jobs of this queue."""
        if self._calls is None or self._calls.loop is not loop:
            self._calls = _LoopCalls(loop)
        return self._calls

    def _run_at_once(
        self, loop: LoopExecutor, work: Callable[[], Result | Future[Result]], project: str, until_s: float | None
    ) -> Result | Future[Result]:
        """Run a job on the idle loop and charge it like a queued one. Raises: DeadlinePassed."""
        loop.has_run = True
        began_s = self.monotonic()
        try:
            if until_s is not None and began_s >= until_s:
                raise DeadlinePassed
            return work()
        finally:
            self.worked(project, self.monotonic() - began_s, expected_s=0.0)
            loop.end_turn()

    async def _later(self, done: Future[Result]) -> Result:
        """Wait for a future that another thread completes; the job counts as running meanwhile."""
        with self._lock:
            self._admitted += 1
            self._impatient += 1
        try:
            return await asyncio.wrap_future(done)
        finally:
            with self._lock:
                self._admitted -= 1
                self._impatient -= 1

    def _admit(self, job: _Job[Any]) -> None:
        """Queue a job, evicting another one if the queue is full and that is fair. Raises: Overloaded."""
        evicted: tuple[_Job[Any], Overloaded] | None = None
        with self._lock:
            if self._admitted >= self._workers and not job.is_patient:
                self._check_wait(job)
                evicted = self._make_room(job)
            self._admitted += 1
            self._impatient += not job.is_patient
            self._turns.push(job.project, job, caller=job.caller, is_bulk=job.is_bulk)
            if self._waiting_since_s is None:
                self._waiting_since_s = job.arrived_s
        if evicted is not None:
            refused, error = evicted
            refused.refuse(error)

    def _check_wait(self, job: _Job[Any]) -> None:
        """Check the expected wait. Raises: Overloaded: it is too long."""
        ahead = self._turns.ahead(job.project, job.caller)
        wait_s = ahead * self._mean_s / self._workers
        since_s = self._waiting_since_s
        is_standing = since_s is not None and job.arrived_s - since_s >= LONGEST_WAIT_S
        worth_s = STANDING_WAIT_S if is_standing else LONGEST_WAIT_S
        if job.until_s is not None:
            worth_s = min(worth_s, job.until_s - job.arrived_s)
        if ahead > ALWAYS_WAIT and wait_s > worth_s:
            raise Overloaded(ahead, self._waiting_limit, self._retry_after_s(ahead), wait_s=round(wait_s, 3))

    def _make_room(self, job: _Job[Any]) -> tuple[_Job[Any], Overloaded] | None:
        """Pick a queued job to evict, with its error; None if there is room.

        Raises: Overloaded: the caller itself is to be refused.
        """
        waiting = max(0, self._impatient - self._workers)
        if waiting < self._waiting_limit:
            return None
        error = Overloaded(waiting, self._waiting_limit, self._retry_after_s(waiting))
        longest = self._turns.longest()
        if longest is not None:
            project, caller, newest = longest
            # The longer queue gives way: of two callers where they ask the same project, otherwise of the two projects.
            whose = (project, caller) if project == job.project else (project, None)
            mine = (job.project, job.caller if project == job.project else None)
            if self._turns.length(*whose) > self._turns.length(*mine) + 1 and not newest.is_patient:
                self._turns.remove(project, newest, caller=caller)
                self._left(newest)
                return newest, error
        raise error

    def _work(self) -> None:
        """Run the next job on this worker; does nothing if it was withdrawn meanwhile."""
        with self._lock:
            next_one = self._turns.pop(self._mean_s)
            ahead = len(self._turns)
            if not ahead:
                self._waiting_since_s = None
            if next_one is None:
                return
            _, job = next_one
            job.is_waiting = False
            now_s = self.monotonic()
            wait_s = now_s - job.arrived_s
            is_late = wait_s > LONGEST_WAIT_S and ahead > ALWAYS_WAIT and not job.is_patient
            is_late = is_late and not job.is_expired(now_s)
        if is_late:
            self.leave(job)
            job.refuse(Overloaded(ahead, self._waiting_limit, self._retry_after_s(ahead), wait_s=round(wait_s, 3)))
        else:
            job()

    def worked(self, project: str, took_s: float, *, is_bulk: bool = False, expected_s: float | None = None) -> None:
        """Charge a project for `took_s` less `expected_s`, which is charged already; None is the mean duration."""
        with self._lock:
            more_s = took_s - (self._mean_s if expected_s is None else expected_s)
            self._turns.charge(project, more_s, is_bulk=is_bulk)
            counted_s = min(took_s, _MOST_TIMES_THE_MEAN * self._mean_s)
            self._mean_s += _NEWEST_WEIGHT * (counted_s - self._mean_s)

    def leave(self, job: _Job[Any]) -> None:
        """Count a job as finished."""
        with self._lock:
            self._left(job)

    def _left(self, job: _Job[Any]) -> None:
        job.is_waiting = False
        self._admitted -= 1
        self._impatient -= not job.is_patient

    def _withdraw(self, job: _Job[Any]) -> None:
        """Remove a cancelled job from the queue, unless it has begun."""
        with self._lock:
            if not job.is_waiting:
                return
            self._turns.remove(job.project, job, caller=job.caller, is_bulk=job.is_bulk)
            if not len(self._turns):
                self._waiting_since_s = None
            self._left(job)
        job.drop()

    def _retry_after_s(self, waiting: int) -> float:
        until_half_empty_s = waiting * self._mean_s / self._workers / 2
        return round(min(max(until_half_empty_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S), 3)


@dataclass(slots=True, eq=False)
class _Job(Generic[Result]):
    """A queued job; drops its references when it is over, so that a cancelled call's request is freed at once.

    `is_waiting` belongs to the queue, under its lock; `awaited` is the future that the work has returned.
    """

    work: Callable[[], Result | Future[Result]] | None
    queue: AdmissionQueue
    answer: asyncio.Future[Result] | None
    loop: asyncio.AbstractEventLoop
    tell: Callable[..., object]
    arrived_s: float
    project: str
    caller: str
    until_s: float | None
    is_patient: bool
    is_bulk: bool
    is_waiting: bool = True
    awaited: Future[Result] | None = None

    def __call__(self) -> None:
        """Run on a worker and pass the result to the event loop, unless a future will do that."""
        try:
            result = self._run()
        except BaseException as error:
            self._finish(_fail, error)
            return
        if not isinstance(result, Future):
            self._finish(_succeed, result)
            return
        self.awaited = result
        # The future may be completed by a different thread.
        self.tell = self.queue.calls_on(self.loop)
        result.add_done_callback(self._pass_on)

    def _run(self) -> Result | Future[Result]:
        work, now_s = self.work, self.queue.monotonic()
        if work is None or self.is_expired(now_s):
            raise DeadlinePassed
        try:
            return work()
        finally:
            self.queue.worked(self.project, self.queue.monotonic() - now_s, is_bulk=self.is_bulk)

    def _pass_on(self, done: Future[Result]) -> None:
        # Not raised here: the error would refer to this frame, which refers to the future that holds the error.
        error = CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._finish(_succeed, done.result())
        else:
            self._finish(_fail, error)

    def _finish(self, tell: Callable[[asyncio.Future[Any], Any], None], outcome: object) -> None:
        if self.answer is not None:
            self.queue.leave(self)
            self._say(tell, outcome)

    def _say(self, tell: Callable[[asyncio.Future[Any], Any], None], outcome: object) -> None:
        # An error keeps its frames alive, and through them this job: drop what the job refers to.
        answer, self.answer, self.awaited, self.work = self.answer, None, None, None
        # The loop may have been closed meanwhile; no caller waits then.
        with suppress(RuntimeError):
            self.tell(tell, answer, outcome)

    def is_expired(self, now_s: float) -> bool:
        """True if the deadline has passed."""
        return self.until_s is not None and now_s >= self.until_s

    def refuse(self, error: Overloaded) -> None:
        """Fail the job with this error, for the caller that awaits it."""
        self._say(_fail, error)

    def drop(self) -> None:
        """Forget the work and the caller, so that no worker runs the job."""
        self.answer = self.work = None

    def give_up(self) -> None:
        """Cancel the future that the job waits for: its caller is gone."""
        awaited = self.awaited
        if awaited is not None:
            awaited.cancel()


def _directly(tell: Callable[..., None], *told: object) -> None:
    tell(*told)


def _succeed(answer: asyncio.Future[Any], result: object) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        # A future refuses StopIteration and would never be done.
        answer.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)
