"""The one thread that writes. Writes that arrive while one is made durable share the next fsync.

Interactive writes go before bulk: they do not share a transaction with it, but for one in BULK_SHARE, and end the one
that writes it behind the write that is under way.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from hummock.core.errors import HummockError, Unavailable
from hummock.core.project import DeletedProject
from hummock.ports.claims import Claims
from hummock.ports.writes import ProjectRemoval, Reply, WriteRequest, Written
from hummock.store.limits import StoreLimits
from hummock.store.settled_clock import SettledClock
from hummock.store.tables.engine import Engine, Room
from hummock.store.views.view_cache import ViewCache
from hummock.store.write.group import GroupCommit, Job, Outcome
from hummock.store.write.project_removal import Remains

_GROUPS_A_PAUSE = 16

BULK_SHARE = 8
"""One group in so many takes a bulk write, however many interactive ones wait."""

_WATCH_S = 1.0
"""Between two looks at what lies below, while nothing is written."""

_log = logging.getLogger(__name__)


class Writer:
    """Takes jobs from any thread, commits them in groups, publishes, and only then answers the callers.

    Attributes:
        stopped: Why nothing is written any more, for people; empty while all is well.
    """

    def __init__(
        self,
        group: GroupCommit,
        publish: Callable[[Mapping[str, int], Collection[str]], None],
        idle: Callable[[], bool],
        group_jobs: int,
        removed: Callable[[str], None] = lambda project: None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """Starts the thread.

        Args:
            group: Commits.
            publish: Makes committed writes visible to readers, given how many operations each project has in them, and
                the projects from which something was removed.
            idle: Called while nothing is queued: does a little, or says that nothing is left to do, and is called again
                in a second or so. Where the store fails it, it is called again behind the next write.
            group_jobs: Jobs of one group.
            removed: Told of a project that is gone, before what was written behind that is published.
            watch: Called every second or so.
        """
        self._group = group
        self._publish = publish
        self._idle = idle
        self._group_jobs = group_jobs
        self._removed = removed
        self._watch = watch
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        # Those that have come out of the queue; the writer's thread alone looks at them.
        self._interactive: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        # Groups in a row that have left bulk writes waiting.
        self._passed_over = 0
        self._rest_has_failed = False
        # Interactive writes that were submitted, and how many of them have come out of the queue.
        self._submitted = 0
        self._sorted = 0
        self._followers: tuple[Callable[[str, int], None], ...] = ()
        self._interceptor = Lock()
        self._why_closed: str | None = None
        self.stopped = ""
        self._thread = Thread(target=self._run, name="hummock-writer", daemon=True)
        self._thread.start()

    def submit(self, project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        """Queues a write. After `close` it fails with Unavailable."""
        future: Future[Written[Reply]] = Future()
        self._submit(Job(project=project, request=request, future=future))
        return future

    def remove(self, project: str, request: ProjectRemoval) -> Future[Written[DeletedProject]]:
        """Queues the removal of a project, likewise."""
        future: Future[Written[DeletedProject]] = Future()
        self._submit(Job(project=project, request=request, future=future))
        return future

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Tells of every write from now on; see `ports.Store`."""
        with self._interceptor:
            self._followers = (*self._followers, follower)

    def close(self) -> None:
        """Finishes what is queued. Doing it again does nothing."""
        with self._interceptor:
            if self._why_closed is None:
                self._why_closed = "the store is closed"
                self._queue.put(None)
        self._thread.join()

    def _submit(self, job: Job) -> None:
        with self._interceptor:
            if self._why_closed is None:
                self._submitted += not job.is_bulk
                self._queue.put(job)
                return
        job.future.set_exception(Unavailable(self._why_closed))

    def _run(self) -> None:
        pending: list[Job] = []
        groups = 0
        try:
            while self._fill(pending):
                self._commit(pending)
                self._rest_has_failed = False
                groups += 1
                # Where writes never cease, what is done beside them still gets on.
                if groups % _GROUPS_A_PAUSE == 0:
                    self._rest()
                    self._watch()
        except BaseException as error:
            self._fail(pending, error)

    def _fill(self, pending: list[Job]) -> bool:
        """Takes jobs up to a group's size, waiting for the first; False when there are none and none will come."""
        while not pending:
            while not self._waits() and self._queue.empty() and self._rest():
                pass
            is_over = self._sort()
            places = self._places_for_bulk()
            pending += self._group_of(self._interactive, self._group_jobs - min(places, 1))
            pending += self._group_of(self._bulk, places)
            self._passed_over = self._passed_over + 1 if self._bulk and not places else 0
            if is_over and not pending and not self._waits():
                return False
        return True

    def _rest(self) -> bool:
        """Do a little background work; returns whether there is more. Its errors fail no write."""
        if self._rest_has_failed:
            return False
        try:
            return self._idle()
        except HummockError as error:
            # What is wrong below is said to the next write, and by who looks at the files.
            _log.error("what is done beside writes has failed, and is tried again behind the next one: %s", error)
            self._rest_has_failed = True
            return False

    def _sort(self) -> bool:
        """Takes out of the queue what has come, waiting where nothing waits; whether nothing more will come."""
        while True:
            try:
                job = self._queue.get(block=not self._waits(), timeout=_WATCH_S)
            except Empty:
                if not self._waits():
                    self._watch()
                return False
            if job is None:
                # For the next call, once what waits has been written.
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
        """The first jobs, without those whose callers have gone away, which must not cost anything."""
        taken: list[Job] = []
        while jobs and len(taken) < most:
            job = jobs.popleft()
            if _is_wanted(job):
                taken.append(job)
        return taken

    def _commit(self, pending: list[Job]) -> None:
        outcomes = self._group.commit(pending, self._is_awaited)
        for outcome in outcomes:
            if outcome.error is None and isinstance(outcome.job.request, ProjectRemoval):
                self._removed(outcome.job.project)
        self._publish(_operations(outcomes), {outcome.job.project for outcome in outcomes if outcome.has_removed})
        # What one transaction did not take is first of its kind in the next one.
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
        """Tells everyone who waits or will come that there is no writer any more."""
        _log.critical("the writer stopped", exc_info=error)
        with self._interceptor:
            self._why_closed = self.stopped = "the store's writer stopped; restart the service"
        queued: list[Job] = [*pending, *self._queued()]
        for job in queued:
            if not job.future.done():
                failure = Unavailable(self._why_closed)
                failure.__cause__ = error
                job.future.set_exception(failure)

    def _queued(self) -> list[Job]:
        jobs: list[Any] = [*self._interactive, *self._bulk]
        while not self._queue.empty():
            jobs.append(self._queue.get())
        return [job for job in jobs if job is not None and _is_wanted(job)]


def _is_wanted(job: Job) -> bool:
    """Whether its caller is there; from now on he waits to the end."""
    return job.future.running() or job.future.set_running_or_notify_cancel()


def _operations(outcomes: Iterable[Outcome]) -> Counter[str]:
    """Number of operations by project; 0 for a project that was only written to."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.error is None:
            counts[outcome.job.project] += outcome.operations
    return counts


def start_writer(
    engine: Engine,
    claims: Claims,
    room: Room,
    views: ViewCache,
    clock: SettledClock,
    limits: StoreLimits,
    look: Callable[[], None],
) -> Writer:
    """Start the writer thread, with its background work: views catch up, and removed projects are cleared.

    `look` is called every second or so.
    """
    remains = Remains(engine, claims)
    claims.follow(remains.come)

    def idle() -> bool:
        return views.catch_up_one() or remains.clear_some()

    def removed(project: str) -> None:
        views.forget(project)
        remains.come()

    group = GroupCommit(engine, room, clock, limits)
    return Writer(group, views.publish, idle, limits.group_jobs, removed, look)
