"""Opening of a store over LMDB, for the process that writes a directory and for others that read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hummock.core.embedding import EmbeddingSpace
from hummock.core.settings import IndexPolicy
from hummock.ports.models import Clock
from hummock.ports.writes import Claim, Work
from hummock.store.limits import DEFAULT_LIMITS, MAP_BYTES, StoreLimits
from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.files import written_at
from hummock.store.lmdb.room import DiskRoom, Upkeep
from hummock.store.lmdb.saved_graphs import SavedGraphFiles
from hummock.store.lmdb.saved_views import SavedViewFiles
from hummock.store.search.graph_builder import graph_builder
from hummock.store.settled_clock import SettledClock
from hummock.store.table_store import StoreReads, WritableStore
from hummock.store.tables.reads import TableProjects
from hummock.store.views.view_cache import FollowingViews, ViewCache
from hummock.store.write.reanalyse import Say, reanalyse
from hummock.store.write.spaces import switch_space
from hummock.store.write.writer import start_writer


def open_store(
    directory: Path,
    *,
    space: EmbeddingSpace,
    clock: Clock,
    map_bytes: int = MAP_BYTES,
    quota_bytes: int,
    memory_budget_bytes: int,
    limits: StoreLimits = DEFAULT_LIMITS,
    index: IndexPolicy = IndexPolicy.SIGNS,
    say: Say = lambda line: None,
) -> WritableStore:
    """Open a store for reading and writing; the directory is created if missing.

    It keeps its space, unless the given one is recorded beside it: then it switches to that (`write/spaces.py`).

    `map_bytes` bounds the data file: address space only, it grows on demand. `quota_bytes` bounds the live data, and
    `memory_budget_bytes` loaded projects; the most recently read one alone may exceed it. `index` is that of vectors in
    large projects. `say` takes progress lines for people while terms of an earlier analyzer are updated.

    Raises: StartError: the directory is in use, unusable, of another space, or of a newer version or analyzer.
    """
    clock = SettledClock(clock, written_at(directory))
    environment = Environment(directory, space, map_bytes)
    try:
        claims = OnlyWriter()
        switch_space(environment, clock.now())
        reanalyse(environment, claims, say)
        projects = TableProjects(environment, clock.now)
        saved = SavedViewFiles(environment, limits, is_writer=True)
        graphs = graph_builder(index, SavedGraphFiles(environment, is_writer=True))
        views = ViewCache(projects, memory_budget_bytes, limits, saved, graphs)
        room = DiskRoom(environment, quota_bytes, limits)
        upkeep = Upkeep(environment, room, clock)
        writer = start_writer(environment, claims, room, views, clock, limits, upkeep.look)
        kept_s = limits.request_kept_s
        return WritableStore(environment, projects, views, writer, kept_s, room, upkeep, claims, clock)
    except BaseException:
        environment.close()
        raise


def open_reads(
    directory: Path,
    *,
    space: EmbeddingSpace,
    clock: Clock,
    map_bytes: int = MAP_BYTES,
    memory_budget_bytes: int,
    limits: StoreLimits = DEFAULT_LIMITS,
    index: IndexPolicy = IndexPolicy.SIGNS,
) -> StoreReads:
    """Open a store that another process of this machine writes, for reads, which see all its commits.

    Arguments as for `open_store`, and equal to those of the writing process.

    Raises: StartError: the directory is unusable, or of another space.
    """
    environment = Environment(directory, space, map_bytes, is_read_only=True)
    projects = TableProjects(environment, clock.now)
    saved = SavedViewFiles(environment, limits, is_writer=False)
    graphs = graph_builder(index, SavedGraphFiles(environment, is_writer=False))
    return StoreReads(environment, projects, FollowingViews(projects, memory_budget_bytes, limits, saved, graphs))


class OnlyWriter:
    """`ports.Claims` of a data directory: the single writing service does all work."""

    def take(self, work: Work, project: str) -> Claim:
        """A claim, always granted."""
        return Claim(work=work, project=project, fence=0)

    def release(self, claim: Claim) -> None:
        """Does nothing: no other service waits for it."""

    def holds(self, claim: Claim) -> bool:
        """Always true."""
        return True

    def follow(self, follower: Callable[[], None]) -> None:
        """Does nothing: there is no other service that could die."""

    def close(self) -> None:
        """Does nothing."""
