"""Opens the store over LMDB: for the one process that writes a directory, and for others that only read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hummock.core.embedding import EmbeddingSpace
from hummock.ports.claims import Claim, Work
from hummock.ports.models import Clock
from hummock.store.limits import DEFAULT_LIMITS, MAP_BYTES, StoreLimits
from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.files import written_at
from hummock.store.lmdb.room import DiskRoom, Upkeep
from hummock.store.lmdb.saved_views import SavedViewFiles
from hummock.store.settled_clock import SettledClock
from hummock.store.table_store import ReadOnlyStore, WritableStore
from hummock.store.tables.stored_projects import TableProjects
from hummock.store.views.view_cache import FollowingViews, ViewCache
from hummock.store.write.idempotency import RequestReads
from hummock.store.write.reanalyse import Say, reanalyse
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
    say: Say = lambda line: None,
) -> WritableStore:
    """A store that is ready for use.

    Args:
        directory: Made when it is not there.
        space: Of all vectors; a directory keeps the first one that it was opened with.
        clock: The time.
        map_bytes: Most that the data file may ever take; address space only, the file grows as it is needed.
        quota_bytes: Most that live data may take.
        memory_budget_bytes: For projects in memory; the one last read may be larger alone.
        limits: The rest.
        say: Takes a line for people where opening takes long: terms of an earlier analyzer are made anew.

    Raises: StartError: the directory is in use, unusable, of another space, or of a newer version or analyzer.
    """
    clock = SettledClock(clock, written_at(directory))
    environment = Environment(directory, space, map_bytes)
    try:
        claims = OnlyWriter()
        reanalyse(environment, claims, say)
        projects = TableProjects(environment, clock.now)
        views = ViewCache(projects, memory_budget_bytes, limits, SavedViewFiles(environment, limits, is_writer=True))
        room = DiskRoom(environment, quota_bytes, limits)
        requests = RequestReads(environment, clock, limits.request_kept_s)
        upkeep = Upkeep(environment, room, clock)
        writer = start_writer(environment, claims, room, views, clock, limits, upkeep.look)
        return WritableStore(environment, projects, views, writer, requests, room, upkeep, claims, clock)
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
) -> ReadOnlyStore:
    """The reads of a store that another process of this machine has open. Every read sees what that one has committed.

    Args:
        directory: Where that store is.
        space: Of all its vectors.
        clock: The time.
        map_bytes: As that process has it.
        memory_budget_bytes: For projects in memory; the one last read may be larger alone.
        limits: As that process has them.

    Raises: StartError: the directory is unusable, or of another space.
    """
    environment = Environment(directory, space, map_bytes, is_read_only=True)
    projects = TableProjects(environment, clock.now)
    saved = SavedViewFiles(environment, limits, is_writer=False)
    return ReadOnlyStore(environment, projects, FollowingViews(projects, memory_budget_bytes, limits, saved))


class OnlyWriter:
    """`ports.Claims` of a data directory: all work is the one service's that has it."""

    def take(self, work: Work, project: str) -> Claim:
        """Always a claim."""
        return Claim(work=work, project=project, fence=0)

    def release(self, claim: Claim) -> None:
        """Nobody else waits for it."""

    def holds(self, claim: Claim) -> bool:
        """Always."""
        return True

    def follow(self, follower: Callable[[], None]) -> None:
        """There is no other service that could die."""

    def close(self) -> None:
        """There is nothing to end."""
