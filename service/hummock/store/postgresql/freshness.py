"""Newest sequence numbers of projects in the database, which every read checks first."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock

from hummock.core.errors import StoreUnreachable
from hummock.store.postgresql.database import Database
from hummock.store.tables.recent import RecentReads
from hummock.store.tables.stored_projects import TableProjects
from hummock.store.views.stored import ProjectGone


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
        self._interceptor = Lock()
        self._running: dict[int, _Look] = {}
        self._next: dict[int, _Look] = {}

    def seq(self, number: int) -> int:
        """Sequence number of a project's last write by any service. Raises: ProjectGone, DatabaseUnreachable."""
        with self._interceptor:
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
            with self._interceptor:
                self._running[number] = self._next.pop(number)
        try:
            # After a failed read its waiters do not wait for another one; an error cannot be outdated.
            if before is not None and isinstance(before.error, StoreUnreachable):
                raise before.error
            look.seq = self._database.seq(number)
        except Exception as error:
            look.error = error
        finally:
            with self._interceptor:
                if self._running.get(number) is look:
                    del self._running[number]
            look.is_done.set()
