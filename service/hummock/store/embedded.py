"""The store: LMDB on disk, views in memory, one writer; and its reads alone, beside another process that writes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from hummock.core.embedding import EmbeddingSpace
from hummock.core.status import StoreStatus
from hummock.ports import Clock, Reply, WriteRequest, Written
from hummock.store.environment import Environment
from hummock.store.limits import DEFAULT_LIMITS, MAP_BYTES, StoreLimits
from hummock.store.reads import StoreReads
from hummock.store.views.following import FollowingProjects
from hummock.store.views.residents import ResidentProjects
from hummock.store.writing.group import GroupCommit
from hummock.store.writing.reanalyse import Say, reanalyse
from hummock.store.writing.requests import RequestReads
from hummock.store.writing.writer import Writer


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
) -> EmbeddedStore:
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
    environment = Environment(directory, space, map_bytes)
    try:
        reanalyse(environment, say)
        residents = ResidentProjects(environment, memory_budget_bytes, limits)
        group = GroupCommit(environment, clock, quota_bytes, limits)
        requests = RequestReads(environment, clock, limits.request_kept_s)
        writer = Writer(group, residents.publish, residents.catch_up_one, limits.group_jobs)
        return EmbeddedStore(environment, residents, writer, requests, group.quota_bytes)
    except BaseException:
        environment.close()
        raise


def open_reads(
    directory: Path,
    *,
    space: EmbeddingSpace,
    map_bytes: int = MAP_BYTES,
    memory_budget_bytes: int,
    limits: StoreLimits = DEFAULT_LIMITS,
) -> ReadOnlyStore:
    """The reads of a store that another process of this machine has open. Every read sees what that one has committed.

    Args:
        directory: Where that store is.
        space: Of all its vectors.
        map_bytes: As that process has it.
        memory_budget_bytes: For projects in memory; the one last read may be larger alone.
        limits: As that process has them.

    Raises: StartError: the directory is unusable, or of another space.
    """
    environment = Environment(directory, space, map_bytes, is_read_only=True)
    return ReadOnlyStore(environment, FollowingProjects(environment, memory_budget_bytes, limits))


class ReadOnlyStore(StoreReads):
    """What `open_reads` makes."""

    def close(self) -> None:
        """Lets go of the directory. Reads must have ended."""
        self._residents.close()
        self._environment.close()


class EmbeddedStore(StoreReads):
    """The embedded implementation of `ports.Store`; `open_store` makes it."""

    def __init__(
        self,
        environment: Environment,
        residents: ResidentProjects,
        writer: Writer,
        requests: RequestReads,
        quota_bytes: int,
    ) -> None:
        super().__init__(environment, residents)
        self._writer = writer
        self._requests = requests
        self._quota_bytes = quota_bytes

    def write(self, project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        """Queues a write; see `ports.Store`."""
        return self._writer.submit(project, request)

    def earlier(
        self, project: str, request_id: str, fingerprint: bytes, reply_type: type[Reply]
    ) -> Written[Reply] | None:
        """What a request was answered before; see `ports.Store`."""
        return self._requests.earlier(project, request_id, fingerprint, reply_type)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Tells of every write from now on; see `ports.Store`."""
        self._writer.follow(follower)

    def status(self) -> StoreStatus:
        """How full the store is."""
        with self._environment.reading() as txn:
            used_bytes = self._environment.used_bytes(txn)
            # Each project has a name and a record.
            project_count = txn.stat(self._tables.project)["entries"] // 2
        loaded_project_count, loaded_bytes = self._residents.usage()
        return StoreStatus(
            directory=str(self._environment.directory),
            used_bytes=used_bytes,
            quota_bytes=self._quota_bytes,
            project_count=project_count,
            loaded_project_count=loaded_project_count,
            loaded_bytes=loaded_bytes,
        )

    def close(self) -> None:
        """Finishes the queued writes and releases the directory. Reads must have ended."""
        self._writer.close()
        self._residents.close()
        self._environment.close()
