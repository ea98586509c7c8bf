"""What other services write: newest seqs, the views that follow them, and notifications."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from threading import Event, Lock, Thread

import psycopg

from hummock.core.errors import HummockError, StoreUnreachable
from hummock.store.errors import ProjectGone
from hummock.store.limits import StoreLimits
from hummock.store.postgresql.database import Database
from hummock.store.tables.reads import TableProjects
from hummock.store.tables.recent import RecentReads
from hummock.store.views.view import ProjectView
from hummock.store.views.view_cache import ForeignViews, Graphs, ViewEntry

_AT_ONCE_S = 0.5
"""Seconds for which notifications are passed on before the thread checks the connection, and whether it is to end."""

_AGAIN_S = 0.5  # Seconds between two attempts to connect.

_log = logging.getLogger(__name__)


class _Look:
    """A read of a project's seq by one reader, shared by all that arrived before it began."""

    __slots__ = ("error", "is_done", "seq")

    def __init__(self) -> None:
        self.is_done = Event()
        self.seq: int | None = None
        self.error: Exception | None = None


class FreshProjects(TableProjects):
    """The projects of a database that other services write to.

    A reader must see all writes acknowledged before it arrived, so it cannot use a read of the seq that began
    earlier. Readers that arrive during one share the next.
    """

    def __init__(self, database: Database, now: Callable[[], float], recent: RecentReads) -> None:
        super().__init__(database, now, recent)
        self._database = database
        self._lock = Lock()
        self._running: dict[int, _Look] = {}
        self._next: dict[int, _Look] = {}

    def seq(self, number: int) -> int:
        """Sequence number of a project's last write by any service. Raises: ProjectGone, DatabaseUnreachable."""
        with self._lock:
            before = self._running.get(number)
            look = None if before is None else self._next.get(number)
            is_first = look is None
            if look is None:
                look = _Look()
                (self._running if before is None else self._next)[number] = look
        if is_first:
            self._look(number, look, before)
        else:
            look.is_done.wait()
        if look.error is not None:
            raise look.error
        if look.seq is None:
            raise ProjectGone
        return look.seq

    def _look(self, number: int, look: _Look, before: _Look | None) -> None:
        if before is not None:
            before.is_done.wait()
            with self._lock:
                self._running[number] = self._next.pop(number)
        try:
            # After a failed read its waiters do not wait for another one; an error cannot be outdated.
            if before is not None and isinstance(before.error, StoreUnreachable):
                raise before.error
            look.seq = self._database.seq(number)
        except Exception as error:
            look.error = error
        finally:
            with self._lock:
                if self._running.get(number) is look:
                    del self._running[number]
            look.is_done.set()


class SeenViews(ForeignViews):
    """Views that stay when the database is away, for reads that accept stale data."""

    def __init__(
        self,
        projects: TableProjects,
        budget_bytes: int,
        limits: StoreLimits,
        recent: RecentReads,
        monotonic: Callable[[], float],
        graphs: Graphs | None = None,
    ) -> None:
        """`recent` has reads of the loaded projects; those of evicted views are dropped."""
        super().__init__(projects, budget_bytes, limits, graphs=graphs)
        self._reads = recent
        self._monotonic = monotonic

    def seen(self, project: str) -> tuple[ProjectView, float] | None:
        """The loaded view and its maximum staleness in seconds, without asking the database."""
        entry = self._entries.get(project)
        view = None if entry is None else self._used(entry)
        return None if entry is None or view is None else (view, self._monotonic() - entry.newest_s)

    def publish(self, written: Mapping[str, tuple[int, int]], shrunk: Collection[str] = ()) -> None:
        """Catch up views with removals, so that no removed memory is visible here once that is acknowledged."""
        for project in shrunk:
            try:
                self.newer_view(project)
            except StoreUnreachable:
                self.forget(project)

    def _is_newest(self, entry: ViewEntry) -> bool:
        began_s = self._monotonic()
        is_newest = super()._is_newest(entry)
        if is_newest:
            entry.newest_s = max(entry.newest_s, began_s)
        return is_newest

    def _catch_up(self, entry: ViewEntry) -> None:
        began_s = self._monotonic()
        super()._catch_up(entry)
        entry.newest_s = max(entry.newest_s, began_s)

    def _load(self, entry: ViewEntry, number: int) -> ProjectView:
        # The entry has no earlier view.
        entry.newest_s = self._monotonic()
        return super()._load(entry, number)

    def _forgotten(self, project: str) -> ProjectView | None:
        view = super()._forgotten(project)
        if view is not None:
            self._reads.forget(view.number)
        return view


class Listener:
    """A thread that notifies followers of every write by any service."""

    def __init__(self, database: Database, seqs: Callable[[], dict[str, int]]) -> None:
        """Start the thread. Writes missed without a connection are reported as one per project, at its `seqs`."""
        self._database = database
        self._seqs = seqs
        self._followers: tuple[Callable[[str, int], None], ...] = ()
        self._lock = Lock()
        self._ending = Event()
        self._is_deaf = False
        self._thread = Thread(target=self._run, name="hummock-listener", daemon=True)
        self._thread.start()

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call `follower` after every write from now on, with the project and its seq."""
        with self._lock:
            self._followers = (*self._followers, follower)

    def close(self) -> None:
        """End the thread."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._listen()
            except (HummockError, psycopg.Error) as error:
                if not self._is_deaf:
                    _log.warning("writes of other services are not heard of for the moment: %s", error)
                self._is_deaf = True
            self._ending.wait(_AGAIN_S)

    def _listen(self) -> None:
        with self._database.listening() as connection:
            if self._is_deaf:
                self._is_deaf = False
                _log.warning("writes of other services are heard of again")
                for project, seq in self._seqs().items():
                    self._tell(project, seq)
            while not self._ending.is_set():
                for notice in connection.notifies(timeout=_AT_ONCE_S):
                    number, _, project = notice.payload.partition(" ")
                    self._tell(project, int(number))
                # Detects a frozen server, which would otherwise stay silent forever.
                connection.execute(b"SELECT 1")
                self._database.look()

    def _tell(self, project: str, seq: int) -> None:
        for follower in self._followers:
            follower(project, seq)
