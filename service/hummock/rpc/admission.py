"""Admission: which calls are let in, where they run, in which order, and until when they are worth it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hummock.core.errors import HummockError, Overloaded, Unavailable
from hummock.core.later import Later


class Door:
    """Whether calls are let in, and how many are inside. Belongs to the event loop."""

    def __init__(self) -> None:
        self._is_open = False
        self._inside = 0
        self._nobody_inside = asyncio.Event()
        self._nobody_inside.set()

    def open(self) -> None:
        """Lets calls in."""
        self._is_open = True

    def close(self) -> None:
        """Lets no more calls in; those inside stay."""
        self._is_open = False

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        """Counts a call as inside. Raises: Unavailable, while the door is closed."""
        if not self._is_open:
            raise Unavailable("the service is starting or stopping; try again")
        self._inside += 1
        self._nobody_inside.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._nobody_inside.set()

    async def emptied(self) -> None:
        """Returns when no call is inside."""
        await self._nobody_inside.wait()


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

    def _run_first(self) -> None:
        self._has_run = True
        submitted, work = self._waiting.popleft()
        try:
            if submitted.set_running_or_notify_cancel():
                submitted.set_result(work())
        except BaseException as error:
            submitted.set_exception(error)
        # Behind whoever has been given an answer.
        asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._has_run = False
        if self._waiting:
            self._run_first()


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


class Gate:
    """Runs work on the threads of an executor that belongs to this gate alone, in the order of arrival.

    A call whose task is cancelled before its work began never runs. Work that has begun runs to its end, since a
    thread cannot be interrupted, and keeps its worker busy until then. What comes `Later` keeps no worker, but counts
    as a call that is inside until it is there; one whose task is cancelled gives it up, if it has not begun either.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        workers: int,
        waiting_limit: int = DEFAULT_WAITING_LIMIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Opens the gate.

        Args:
            executor: Takes work first in, first out. The caller owns it and shuts it down.
            workers: Its threads.
            waiting_limit: Calls that may wait for a worker; the next one is refused at once.
            monotonic: Seconds from some start; tests move it by hand.
        """
        self._executor = executor
        self._workers = workers
        self._waiting_limit = waiting_limit
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
        self, work: Callable[[], Result | Later[Result]], *, time_left_s: float | None = None, patient: bool = False
    ) -> Result:
        """Runs `work` on a worker and returns its result, or raises what it raises.

        Args:
            work: Called once, or never when the caller is cancelled or its time is up before a worker is free.
            time_left_s: Seconds from now in which it is worth starting; None means for ever.
            patient: Waits beyond the waiting limit. For streams, which are slowed down instead of refused.

        Raises:
            Overloaded: As many calls wait as may wait.
            DeadlinePassed: Its time was up before a worker was free.
        """
        self._admit(patient=patient)
        give_up_at = None if time_left_s is None else self._monotonic() + time_left_s
        loop = asyncio.get_running_loop()
        # The worker answers this future itself: handing over a concurrent one, as asyncio does, costs as much again.
        answer: asyncio.Future[Callable[[], Result]] = loop.create_future()
        tell = _at_once if isinstance(self._executor, LoopExecutor) else loop.call_soon_threadsafe
        job = _Job(work, give_up_at, self._monotonic, self._leave, tell, loop.call_soon_threadsafe, answer)
        try:
            queued = self._executor.submit(job)
        except BaseException:
            self._leave(job)
            raise
        try:
            result = await answer
        except asyncio.CancelledError:
            if queued.cancel():
                self._leave(job)
            job.give_up()
            raise
        finally:
            # An error that came keeps this frame alive, and would keep itself alive through them.
            del job, queued, answer
        return result()

    def _admit(self, *, patient: bool) -> None:
        with self._lock:
            waiting = max(0, self._admitted - self._workers)
            if self._admitted >= self._workers and waiting >= self._waiting_limit and not patient:
                raise Overloaded(waiting, self._waiting_limit, self._retry_after_s(waiting))
            self._admitted += 1

    def _leave(self, job: _Job[Result]) -> None:
        took_s = job.finish()
        with self._lock:
            self._admitted -= 1
            if took_s is not None:
                self._mean_s += _NEWEST_WEIGHT * (took_s - self._mean_s)

    def _retry_after_s(self, waiting: int) -> float:
        until_half_empty_s = waiting * self._mean_s / self._workers / 2
        return round(min(max(until_half_empty_s, _SHORTEST_RETRY_S), _LONGEST_RETRY_S), 3)


class _Job(Generic[Result]):
    """Work in the queue; lets go of it when it is over, so that a cancelled call's request is freed at once."""

    __slots__ = (
        "_answer",
        "_awaited",
        "_give_up_at",
        "_leave",
        "_monotonic",
        "_started_at",
        "_tell",
        "_tell_later",
        "_work",
    )

    def __init__(
        self,
        work: Callable[[], Result | Later[Result]],
        give_up_at: float | None,
        monotonic: Callable[[], float],
        leave: Callable[[_Job[Result]], None],
        tell: Callable[..., object],
        tell_later: Callable[..., object],
        answer: asyncio.Future[Callable[[], Result]],
    ) -> None:
        self._work: Callable[[], Result | Later[Result]] | None = work
        self._give_up_at = give_up_at
        self._monotonic = monotonic
        self._leave = leave
        self._tell = tell
        self._tell_later = tell_later
        self._answer: asyncio.Future[Callable[[], Result]] | None = answer
        self._awaited: Future[Any] | None = None
        self._started_at: float | None = None

    def __call__(self) -> None:
        """Runs on a worker, and tells the loop what came of it, or leaves that to whoever knows it later."""
        try:
            result = self._run()
        except BaseException as error:
            self._end(_fail, error)
        else:
            if isinstance(result, Later):
                self._awaited = result.awaited
                # Whatever thread this is, the one that knows is another.
                self._tell = self._tell_later
                result.awaited.add_done_callback(lambda _: self._end(_succeed, result.result))
            else:
                self._end(_succeed, lambda: result)

    def _run(self) -> Result | Later[Result]:
        work, now = self._work, self._monotonic()
        if work is None or (self._give_up_at is not None and now >= self._give_up_at):
            raise DeadlinePassed
        self._started_at = now
        return work()

    def _end(self, answer: Callable[[asyncio.Future[Any], Any], None], outcome: object) -> None:
        self._leave(self)
        # Let go of: what went wrong keeps the frames alive that it came through, and this job with them.
        awaiting, self._answer = self._answer, None
        # A loop that has been closed meanwhile has nobody who waits.
        with suppress(RuntimeError):
            self._tell(answer, awaiting, outcome)

    def give_up(self) -> None:
        """Nobody waits for the answer: what it waits for itself need not begin."""
        if self._awaited is not None:
            self._awaited.cancel()

    def finish(self) -> float | None:
        """Lets go of the work. Returns the seconds that it took, None when it never began."""
        self._work = None
        return None if self._started_at is None else self._monotonic() - self._started_at


def _at_once(tell: Callable[..., None], *told: object) -> None:
    tell(*told)


def _succeed(answer: asyncio.Future[Any], result: object) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)


def loop_gate(waiting_limit: int = DEFAULT_WAITING_LIMIT) -> Gate:
    """A gate before the event loop itself."""
    return Gate(LoopExecutor(), workers=1, waiting_limit=waiting_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Reads apart from writes, for a write holds its worker while it waits for the disk.

    What takes a moment and waits for nothing runs `at_once`, on the event loop.
    """

    reads: Gate
    writes: Gate
    at_once: Gate = field(default_factory=loop_gate)

    def load(self) -> Load:
        """All together."""
        loads = [gate.load for gate in (self.at_once, self.reads, self.writes)]
        return Load(running=sum(load.running for load in loads), waiting=sum(load.waiting for load in loads))


Request = TypeVar("Request")
Reply = TypeVar("Reply")

_UNTIL_S: ContextVar[float | None] = ContextVar("until_s", default=None)


def until_s() -> float | None:
    """Seconds on the monotonic clock; None without a deadline, and outside of a call."""
    return _UNTIL_S.get()


def work_until(at_s: float | None, work: Callable[[Request], Reply], request: Request) -> Reply:
    """Do the work, within which `until_s` is `at_s`."""
    token = _UNTIL_S.set(at_s)
    try:
        return work(request)
    finally:
        _UNTIL_S.reset(token)
