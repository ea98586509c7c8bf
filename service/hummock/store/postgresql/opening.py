"""Opening of a store over PostgreSQL, which any number of services may open and write to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import SeqNotReached, StoreUnreachable
from hummock.core.settings import IndexPolicy
from hummock.ports.models import Clock
from hummock.ports.store import Outdated, Snapshot
from hummock.ports.writes import Claims
from hummock.store.limits import DEFAULT_LIMITS, StoreLimits
from hummock.store.postgresql.claims import LeasedClaims
from hummock.store.postgresql.connections import Connections, DatabaseUnreachable
from hummock.store.postgresql.database import Database, recorded_directory
from hummock.store.postgresql.freshness import FreshProjects, Listener, SeenViews
from hummock.store.postgresql.last_seen import StaleSnapshot
from hummock.store.postgresql.room import DatabaseRoom
from hummock.store.search.graph_builder import graph_builder
from hummock.store.settled_clock import SettledClock
from hummock.store.table_store import WritableStore
from hummock.store.tables.lookups import active_space
from hummock.store.tables.recent import RecentReads
from hummock.store.tables.record_codec import DirectoryRecord
from hummock.store.write.reanalyse import Say, reanalyse
from hummock.store.write.writer import Writer, start_writer

_WRITERS = 4  # Connections in addition to the readers': the writer's, the listener's for views, and two spare ones.


def open_shared_store(
    dsn: str,
    *,
    space: EmbeddingSpace,
    clock: Clock,
    quota_bytes: int,
    memory_budget_bytes: int,
    readers: int,
    limits: StoreLimits = DEFAULT_LIMITS,
    index: IndexPolicy = IndexPolicy.SIGNS,
    say: Say = lambda line: None,
) -> SharedStore:
    """Open a store over a database that other services may have open too.

    Of several hosts in the connection string the one that accepts writes is used. A database keeps the space that it
    was first opened with. If the clock is a day ahead of the database's, nothing is removed by it at first.
    `quota_bytes` bounds the tables, and `memory_budget_bytes` loaded projects; the most recently read one alone may
    exceed it. `readers` threads read simultaneously. `index` is the index of vectors in large projects. `say` takes
    progress lines for people if opening takes long.

    Raises: StartError: the database is unusable, of another space, or of a newer version or analyzer.
    """
    database = Database(dsn, space, readers + _WRITERS)
    claims: LeasedClaims | None = None
    try:
        clock = SettledClock(clock, database.now_s())
        claims = LeasedClaims(database, limits.lease_s)
        reanalyse(database, claims, say)
        recent = RecentReads(limits.recent_memory_bytes, limits.recent_token_bytes)
        projects = FreshProjects(database, clock.now, recent)
        views = SeenViews(projects, memory_budget_bytes, limits, recent, clock.monotonic, graph_builder(index, None))
        room = DatabaseRoom(database, quota_bytes, clock)
        writer = start_writer(database, claims, room, views, clock, limits, room.look)
        return SharedStore(database, projects, views, recent, writer, limits.request_kept_s, room, claims, clock)
    except BaseException:
        if claims is not None:
            claims.close()
        database.close()
        raise


Read = TypeVar("Read")


class SharedStore(WritableStore):
    """A store whose database other services write to as well; created by `open_shared_store`."""

    def __init__(
        self,
        database: Database,
        projects: FreshProjects,
        views: SeenViews,
        recent: RecentReads,
        writer: Writer,
        request_kept_s: float,
        room: DatabaseRoom,
        claims: Claims,
        clock: SettledClock,
    ) -> None:
        super().__init__(database, projects, views, writer, request_kept_s, room, room, claims, clock)
        self._database = database
        self._seen = views
        self._recent_reads = recent
        self._listener = Listener(database, self._seqs)
        self._listener.follow(views.reach)

    def read(
        self, project: str, work: Callable[[Snapshot], Read], *, min_seq: int = 0, allow_stale: bool = False
    ) -> Read:
        """Result of `work` on a snapshot; with `allow_stale` it comes from memory if the database is unreachable."""
        if not allow_stale:
            return super().read(project, work, min_seq=min_seq)
        away: StoreUnreachable | None = self._database.away
        if away is None:
            try:
                return super().read(project, work, min_seq=min_seq)
            except StoreUnreachable as error:
                away = error
        try:
            seen = self.last_seen(project)
            seen.require(min_seq)
            return work(seen)
        except (Outdated, SeqNotReached, StoreUnreachable) as error:
            raise away from error

    def read_at_once(self, project: str, work: Callable[[Snapshot], Read | None]) -> None:
        """Returns None: to see writes of other services takes a round trip, and the event loop must not wait."""

    def last_seen(self, project: str) -> StaleSnapshot:
        """A snapshot of a project's data in memory. Raises: StoreUnreachable: it is not loaded."""
        seen = self._seen.seen(project)
        if seen is None:
            why = "and what was asked is not in memory"
            raise self._database.away or DatabaseUnreachable(self._database.place, why)
        view, age_s = seen
        timely = view.at(self._projects.now())
        return StaleSnapshot(timely, age_s, self._projects, self._database, self._recent_reads, self._cores)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call `follower` after every write of any service, twice after those of this one."""
        super().follow(follower)
        self._listener.follow(follower)

    def close(self) -> None:
        """Finish the queued writes and close the connections. Reads must have ended."""
        self._listener.close()
        super().close()

    def _seqs(self) -> dict[str, int]:
        return {one.name: one.seq for one in self.projects("", 1 << 30)}


def recorded_model_of(dsn: str) -> str | None:
    """Name of the model of a database's vectors; None if it has none yet. Writes nothing. Raises: StartError."""
    recorded = recorded_directory_of(dsn)
    return None if recorded is None else active_space(recorded).model


def recorded_directory_of(dsn: str) -> DirectoryRecord | None:
    """The record of a database; None if nothing was ever stored in it. Writes nothing. Raises: StartError."""
    with Connections(dsn, 1).alone() as connection:
        return recorded_directory(connection)
