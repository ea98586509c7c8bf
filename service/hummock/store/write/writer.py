"""The single writer thread. Writes that arrive during a commit share the next fsync.

Interactive writes go before bulk writes: only one transaction in BULK_SHARE mixes them, and a waiting interactive write
ends a bulk transaction after its current write.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from hummock.core.errors import HummockError, Unavailable
from hummock.ports.writes import Claims, ProjectRemoval, WriteRequest, Written
from hummock.store.limits import StoreLimits
from hummock.store.settled_clock import SettledClock
from hummock.store.tables.engine import Engine, Room
from hummock.store.views.view_cache import ViewCache
from hummock.store.write.group import GroupCommit, Job
from hummock.store.write.project_removal import Remains

_GROUPS_A_PAUSE = 16

BULK_SHARE = 8  # One group in this many takes a bulk write, however many interactive ones wait.
_WATCH_S = 1.0  # Seconds between two checks of the engine's health while nothing is written.

_QUIET_S = 0.010
"""Seconds without a write before background work begins: a caller that writes one memory after the other sends the next
within a few milliseconds, and it should find neither the writer nor the interpreter busy."""

_log = logging.getLogger(__name__)


class Writer:
    """Takes jobs from any thread, commits them in groups, publishes them, and only then answers the callers."""

    def __init__(
        self,
        group: GroupCommit,
        publish: Callable[[Mapping[str, tuple[int, int]], Collection[str]], None],
        idle: Callable[[], bool],
        group_jobs: int,
        pause: Callable[[], bool] = lambda: False,
        removed: Callable[[str], None] = lambda project: None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread.

        Args:
            group: Commits jobs.
            publish: Shows committed writes to readers, given the operations and the seq by project, and the projects
                with removals.
            idle: Called once nothing was written for some milliseconds: does some background work and returns True, or
                returns False, to be called again in about a second. After a store error it is called again after the
                next write.
            group_jobs: Upper bound on the jobs of one group.
            pause: Called between two groups now and then, even if writes never pause: does the background work that
                must progress nevertheless.
            removed: Called with the name of a removed project, before later writes are published.
            watch: Called about every second.
        """
        self._group = group
        self._publish = publish
        self._idle = idle
        self._pause = pause
        self._group_jobs = group_jobs
        self._removed = removed
        self._watch = watch
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        # Jobs taken from the queue; used by the writer's thread only.
        self._interactive: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        # Consecutive groups that have left bulk writes waiting.
        self._passed_over = 0
        self._rest_has_failed = False
        # Number of interactive writes submitted, and of those taken from the queue.
        self._submitted = 0
        self._sorted = 0
        self._followers: tuple[Callable[[str, int], None], ...] = ()
        self._lock = Lock()
        self._why_closed: str | None = None
        self.stopped = ""  # Message saying why the writer stopped; empty while it runs.
        self._thread = Thread(target=self._run, name="hummock-writer", daemon=True)
        self._thread.start()

    def submit(self, project: str, request: WriteRequest[Any] | ProjectRemoval) -> Future[Written[Any]]:
        """Queue a write, or the removal of a project. After `close` its future fails with Unavailable."""
        is_bulk = isinstance(request, WriteRequest) and request.is_bulk
        job = Job(project=project, request=request, future=Future(), is_bulk=is_bulk)
        with self._lock:
            if self._why_closed is None:
                self._submitted += not is_bulk
                self._queue.put(job)
                return job.future
        job.future.set_exception(Unavailable(self._why_closed))
        return job.future

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call `follower` after every write from now on; see `ports.Store`."""
        with self._lock:
            self._followers = (*self._followers, follower)

    def close(self) -> None:
        """Finish the queued writes and stop. Idempotent."""
        with self._lock:
            if self._why_closed is None:
                self._why_closed = "the store is closed"
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        pending: list[Job] = []
        groups = 0
        try:
            while self._fill(pending):
                self._commit(pending)
                self._rest_has_failed = False
                groups += 1
                if groups % _GROUPS_A_PAUSE == 0:
                    self._rest(self._pause)
                    self._watch()
        except BaseException as error:
            self._fail(pending, error)

    def _fill(self, pending: list[Job]) -> bool:
        """Take jobs up to a group's size, waiting for the first; False if there are none and none will come."""
        while not pending:
            is_over = self._sort()
            places = self._places_for_bulk()
            pending += self._group_of(self._interactive, self._group_jobs - min(places, 1))
            pending += self._group_of(self._bulk, places)
            self._passed_over = self._passed_over + 1 if self._bulk and not places else 0
            if is_over and not pending and not self._waits():
                return False
        return True

    def _rest(self, work: Callable[[], bool]) -> bool:
        """Do some background work; returns whether there is more. Its errors do not fail writes."""
        if self._rest_has_failed:
            return False
        try:
            return work()
        except HummockError as error:
            # The next write and the health checks report the fault.
            _log.error("what is done beside writes has failed, and is tried again behind the next one: %s", error)
            self._rest_has_failed = True
            return False

    def _sort(self) -> bool:
        """Empty the queue into the two deques; True once the writer is closing.

        It blocks only if both are empty, and does the background work as long as nothing comes.
        """
        wait_s = _QUIET_S
        while True:
            try:
                job = self._queue.get(block=not self._waits(), timeout=wait_s)
            except Empty:
                if self._waits():
                    return False
                if wait_s == _WATCH_S:
                    self._watch()
                wait_s = 0.0 if self._rest(self._idle) else _WATCH_S
                continue
            if job is None:
                # Requeued for the next call, after the waiting jobs have been written.
                self._queue.put(None)
                return True
            self._sorted += not job.is_bulk
            (self._bulk if job.is_bulk else self._interactive).append(job)

    def _is_awaited(self) -> bool:
        return bool(self._interactive) or self._submitted != self._sorted

    def _waits(self) -> bool:
        return bool(self._interactive or self._bulk)

    def _places_for_bulk(self) -> int:
        if not self._interactive:
            return self._group_jobs
        return 1 if self._bulk and self._passed_over >= BULK_SHARE - 1 else 0

    def _group_of(self, jobs: deque[Job], most: int) -> list[Job]:
        taken: list[Job] = []
        while jobs and len(taken) < most:
            job = jobs.popleft()
            if _is_wanted(job):
                taken.append(job)
        return taken

    def _commit(self, pending: list[Job]) -> None:
        outcomes = self._group.commit(pending, self._is_awaited)
        written: dict[str, tuple[int, int]] = {}
        for outcome in outcomes:
            if outcome.written is not None:
                project = outcome.job.project
                operations, seq = written.get(project, (0, 0))
                # The seq of a repeat is that of its first time.
                written[project] = operations + outcome.operations, max(seq, outcome.written.seq)
                if isinstance(outcome.job.request, ProjectRemoval):
                    self._removed(project)
        self._publish(written, {outcome.job.project for outcome in outcomes if outcome.has_removed})
        # Jobs that did not fit are first of their kind in the next transaction.
        for job in reversed(pending[len(outcomes) :]):
            (self._bulk if job.is_bulk else self._interactive).appendleft(job)
        pending.clear()
        for outcome in outcomes:
            outcome.tell()
        for outcome in outcomes:
            if outcome.written is not None:
                for follower in self._followers:
                    follower(outcome.job.project, outcome.written.seq)

    def _fail(self, pending: list[Job], error: BaseException) -> None:
        """Fail all waiting and future jobs, as the writer has stopped."""
        _log.critical("the writer stopped", exc_info=error)
        with self._lock:
            self._why_closed = self.stopped = "the store's writer stopped; restart the service"
        queued: list[Any] = [*self._interactive, *self._bulk]
        while not self._queue.empty():
            queued.append(self._queue.get())
        for job in [*pending, *(job for job in queued if job is not None and _is_wanted(job))]:
            if not job.future.done():
                failure = Unavailable(self._why_closed)
                failure.__cause__ = error
                job.future.set_exception(failure)


def _is_wanted(job: Job) -> bool:
    """Whether the caller still waits; afterwards the job cannot be cancelled."""
    return job.future.running() or job.future.set_running_or_notify_cancel()


def start_writer(
    engine: Engine,
    claims: Claims,
    room: Room,
    views: ViewCache,
    clock: SettledClock,
    limits: StoreLimits,
    look: Callable[[], None],
) -> Writer:
    """Start the writer, which also catches up views, clears removed projects, and calls `look` each second.

    A view catches up once no write has come for a moment, or when it is read; or once it is many operations behind.
    """
    remains = Remains(engine, claims)
    claims.follow(remains.come)

    def idle() -> bool:
        return views.catch_up_one() or remains.clear_some()

    def removed(project: str) -> None:
        views.forget(project)
        remains.come()

    group = GroupCommit(engine, room, clock, limits)
    return Writer(group, views.publish, idle, limits.group_jobs, remains.clear_some, removed, look)
