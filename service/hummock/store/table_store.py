"""Stores over an engine of tables: one read-only, and one with the writer."""

from __future__ import annotations

from collections.abc import Callable

from hummock.core.embedding import EmbeddingSpace
from hummock.core.project import StoreStatus
from hummock.ports.claims import Claims
from hummock.ports.writes import Reply, Written
from hummock.store.settled_clock import SettledClock
from hummock.store.store_reads import StoreReads
from hummock.store.tables.engine import Engine, Health, Room
from hummock.store.tables.lookups import expired, project_number
from hummock.store.tables.stored_projects import TableProjects
from hummock.store.views.view_cache import ViewCache
from hummock.store.write import idempotency
from hummock.store.write.spaces import SpaceBeside, drop_left_spaces
from hummock.store.write.writer import Writer


class ReadOnlyStore(StoreReads):
    """Reads of a store that another process of this machine writes; created by `lmdb.opening.open_reads`."""

    def close(self) -> None:
        """Release the directory. Reads must have ended."""
        self._cores.close()
        self._views.close()
        self._engine.close()


class WritableStore(StoreReads):
    """The implementation of `ports.Store`; created by the `opening` module of each engine."""

    def __init__(
        self,
        engine: Engine,
        projects: TableProjects,
        views: ViewCache,
        writer: Writer,
        request_kept_s: float,
        room: Room,
        health: Health,
        claims: Claims,
        clock: SettledClock,
    ) -> None:
        super().__init__(engine, projects, views)
        self.claims = claims
        self._clock = clock
        self._health = health
        self._writer = writer
        # Writes and removals are queued without a step between; see `ports.Store`.
        self.write = self.remove_project = writer.submit
        self._request_kept_s = request_kept_s
        self._room = room

    def earlier(
        self, project: str, request_id: str, fingerprint: bytes, reply_type: type[Reply]
    ) -> Written[Reply] | None:
        """The stored reply to an earlier request with this id; see `ports.Store`."""
        oldest = self._clock.settled() - self._request_kept_s
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return None
            record = idempotency.earlier(txn, self._tables, number, request_id, fingerprint, oldest)
        return None if record is None else idempotency.written(record, reply_type)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call `follower` after every write from now on; see `ports.Store`."""
        self._writer.follow(follower)

    def expired(self, limit: int) -> list[tuple[str, str]]:
        """Expired memories that can be removed; see `ports.Store`."""
        return expired(self._engine, self._clock.settled(), limit)

    def space_beside(self, space: EmbeddingSpace) -> SpaceBeside:
        """Vectors of another space beside those in use, of which a later start can make use (`write/spaces.py`)."""
        return SpaceBeside(self._engine, self._room, space)

    def drop_left_spaces(self) -> None:
        """Remove the vectors of spaces that were left some time ago, or are not wanted any more."""
        drop_left_spaces(self._engine, self._clock.settled())

    def settled_now(self) -> float:
        """Time in Unix seconds by which permanent removals are decided; see `ports.Store`."""
        return self._clock.settled()

    def status(self) -> StoreStatus:
        """Usage and health of the store."""
        with self._engine.answering() as txn:
            used_bytes = self._engine.used_bytes(txn)
            # Each project has a name and a record.
            project_count = self._engine.count(txn, self._tables.project) // 2
            pending_count = self._engine.pending_count(txn)
        loaded_project_count, loaded_bytes = self._views.usage()
        return StoreStatus(
            directory=self._engine.place,
            used_bytes=used_bytes,
            quota_bytes=self._room.quota_bytes,
            project_count=project_count,
            loaded_project_count=loaded_project_count,
            loaded_bytes=loaded_bytes,
            pending_count=pending_count,
            damaged_count=self._engine.damage.count,
            write_fault=self._writer.stopped or self._health.write_fault,
            clock_ahead_s=self._clock.ahead_s(),
        )

    def trouble(self) -> str:
        """The fault that makes the store unreliable, or an empty string; see `ports.Store`."""
        return self._writer.stopped or self._health.trouble

    def close(self) -> None:
        """Finish the queued writes and release the directory. Reads must have ended."""
        self._writer.close()
        self.claims.close()
        self._cores.close()
        self._views.close()
        self._engine.close()
