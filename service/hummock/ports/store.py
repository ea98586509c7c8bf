"""Where memories, sessions and what was learnt are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from hummock.core.candidates import Gathered, GroupQuery, Standing
from hummock.core.embedding import Embedding
from hummock.core.facets import Stars
from hummock.core.memory import EventPage, Filter, Memory, MemoryKind
from hummock.core.project import DeletedProject, GivenNames, Project, StoreStatus
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.core.transfer import ExportPage
from hummock.ports.claims import Claims
from hummock.ports.learning import LearningReader
from hummock.ports.sessions import Sessions
from hummock.ports.writes import ProjectRemoval, Reply, Review, TextKey, WriteRequest, Written

Read = TypeVar("Read")


class Outdated(Exception):
    """A write has removed what a snapshot was about to give: the work is done again with a newer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some memories in the order of their writes; `next_after` continues behind them, None on the last page."""

    memories: tuple[Memory, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """What stands before a memory and behind it, in its session or file, in that order.

    `is_cut` means that something of it was left out for want of room. `text_hashes` are those of `Candidates`, by id.
    """

    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()
    is_cut: bool = False
    text_hashes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How far a project has come: writes accepted, and changes after which a recall could answer differently.

    `settings` are those of that moment; a change of them is one of these changes. `expired_at` says when the last
    memory ended of those that have expired and are not yet removed, in Unix seconds; 0 where there is none.
    """

    seq: int
    content_seq: int
    settings: ProjectSettings = NO_SETTINGS
    expired_at: float = 0.0


class Snapshot(Protocol):
    """One project at one moment, until the work ends for which the store gave it out. For one thread.

    A project that does not exist has nothing, at seq 0.

    Attributes:
        stale_s: None, unless the store cannot be reached and this is what was seen last; then for how many seconds at
            most it may not be the newest. What is missing in memory is as if it were removed.
    """

    stale_s: float | None

    @property
    def seq(self) -> int:
        """Writes that the project has accepted."""

    @property
    def content_seq(self) -> int:
        """Changes after which a recall could answer differently."""

    @property
    def settings(self) -> ProjectSettings:
        """The project's own settings."""

    @property
    def expired_at(self) -> float:
        """When the last memory ended that has expired and is not yet removed, in Unix seconds; 0 without one."""

    def search(self, queries: Sequence[GroupQuery]) -> Gathered:
        """The candidates of each query."""

    def standing(self, query: GroupQuery, memory_id: str) -> Standing | None:
        """The place of one memory among all that pass the query's filter; None where there is no such memory.

        Exact, whatever the query's pool, and as slow as that: for explaining, not for recalling.
        """

    def rarest(self, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """Those of the terms that the fewest memories hold, at most `most`, in the order given.

        Terms that no memory holds come last, and of equal ones the first comes first.
        """

    def holders(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Number of memories that hold each of the terms, in the order given."""

    def held_behind(self, prefix: str, most: int) -> Mapping[str, int]:
        """Terms that begin with the prefix, and the number of memories that hold each.

        Only the first `most` in the order of their bytes are counted; those that no memory holds any more are left out.
        """

    def holds_any(self, terms: Sequence[str]) -> bool:
        """Whether a memory holds, or once held, one of the terms. Costs next to nothing."""

    def foreign(self, kinds: Collection[MemoryKind], mark: int) -> int:
        """Number of memories of these kinds that are, or may be, in the language that bridges of this mark are for.

        See `Bridge.foreign_mark`. Where it is 0 a query finds nothing by such a bridge. Costs next to nothing.
        """

    def given_names(self) -> GivenNames:
        """Names in the project: those of its domains, and of entries with learned keywords.

        The very same object until one of those changes, and then at next to no cost.
        """

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The memories of these numbers, in order; None for one that was removed after the snapshot was taken."""

    def superseded_by(self, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The ids of the memories that replace each of these, in the order of their writes, where there are any."""

    def neighbours(self, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Neighbours]:
        """At most `count` memories on either side of each of these numbers.

        Fragments of code stand beside the others of their file, by line; all else beside the turns of its session. From
        the first number on, and outwards beside each, they are read until all memories that are named, and all that
        are given as often as they are given, would have more than `most_bytes` as they are stored.
        """

    def damaged(self) -> int:
        """Number of memories that are known to be damaged, and are left out of what is read."""

    def get(self, memory_ids: Sequence[str]) -> list[Memory | None]:
        """The memories with these ids, with their payloads, in order; None where there is none."""

    def project(self) -> Project | None:
        """The project; None where there is none."""

    def require(self, min_seq: int) -> None:
        """Raises: SeqNotReached: the project has not accepted so many writes."""


class Reads(Protocol):
    """What is read of all projects at one moment each. Safe to call from several threads; never waits for a write."""

    @property
    def sessions(self) -> Sessions:
        """Reads of sessions and messages."""

    def read(
        self, project: str, work: Callable[[Snapshot], Read], *, min_seq: int = 0, allow_stale: bool = False
    ) -> Read:
        """What the work makes of the project as it is now; everything acknowledged before the call is in it.

        The work only reads. It is done again with a newer snapshot where a write has removed what it was about to load.

        Args:
            project: Its name.
            work: Is given the snapshot, and keeps nothing of it.
            min_seq: Writes that the project must have accepted.
            allow_stale: Gives what was seen last where the store cannot be reached.

        Raises: SeqNotReached; StoreUnreachable; Unavailable: it is being changed all the time; what the work raises.
        """

    def read_at_once(self, project: str, work: Callable[[Snapshot], Read | None]) -> Read | None:
        """What `read` gives, if a search need not wait for anything and takes a few milliseconds at most.

        None where the project is not in memory as it is now, where it is large, and where there is no such project.
        """


class Store(Reads, Protocol):
    """The memories of all projects. Safe to call from several threads; a read never waits for a write.

    What has expired by the store's clock is not there for any read or write, but for those that count memories.
    """

    @property
    def review(self) -> Review:
        """Reads of what is held for review."""

    @property
    def claims(self) -> Claims:
        """Who does what nobody calls for."""

    def write(self, project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        """Queues a write; creates the project, if it may. Done when it is durable and every later read sees it.

        Raises (from the future): RequestIdReused, StorageFull, ProjectNotFound, ClaimLost, and what `apply` raises.
        """

    def remove_project(self, project: str, request: ProjectRemoval) -> Future[Written[DeletedProject]]:
        """Queues the removal of a project with all that it has. Done when that is durable and no later read finds it.

        What it had is cleared beside other writes, also by a later process. A project of the same name that is made
        later is another one, whose seq, content_seq and numbers go on from those of this one.

        Raises (from the future): ProjectNotFound, RequestIdReused.
        """

    def earlier(
        self, project: str, request_id: str, fingerprint: bytes, reply_type: type[Reply]
    ) -> Written[Reply] | None:
        """What a write was answered that had this request_id, so that a repeat need not be made ready.

        None where there was none, where it is forgotten, and for an empty request_id; `write` answers a repeat alike.

        Raises: RequestIdReused.
        """

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Tells of every write from now on: its project, and the project's seq after it, once every read sees it.

        The follower is called on the writer's thread, so that it returns at once and raises nothing. A repeated request
        is told of again, with the seq that it had the first time.
        """

    def expired(self, limit: int) -> list[tuple[str, str]]:
        """Projects and ids of at most `limit` memories that had expired at `settled_now` and are still to be removed.

        The one that ended first comes first. They are deleted as others are.
        """

    def settled_now(self) -> float:
        """Unix seconds by which something may be removed for good.

        A leap of the wall clock counts ten minutes later, unless it was taken back by then.
        """

    def project(self, name: str) -> Project | None:
        """A project, or None."""

    def generation(self, project: str) -> Generation:
        """A project's newest generation, without loading its memories; zeros for an unknown one.

        It counts every write that is done, never goes back, and no read that begins after it sees an older one.
        """

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none. Raises: SeqNotReached."""

    def load(self, project: str, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The memories of these numbers as they are now, in order; None where one was removed since."""

    def superseded_by(self, project: str, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The ids of the memories that replace each of these, in the order of their writes, where there are any."""

    def pending(self, project: str, limit: int) -> list[int]:
        """The numbers of at most `limit` memories that wait for their vectors, by their writes; see `load`."""

    def vectors(self, digests: Sequence[bytes]) -> list[Embedding | None]:
        """The vectors that were stored with each digest, in whatever project; None where there are none.

        Those of the last memory that had a digest are kept for a while after it is gone.
        """

    def find_by_text(self, project: str, keys: Sequence[TextKey]) -> list[str | None]:
        """The ids of the memories that are the same as what has these keys, in order; the oldest of several."""

    def page(
        self,
        project: str,
        where: Filter,
        after: int,
        limit: int,
        *,
        full: bool,
        newest_first: bool = False,
        contains: str = "",
    ) -> Page:
        """At most `limit` memories behind position `after` (0: the first) that pass the filter, by their writes.

        Only those that hold `contains` in their title, their tags or what is searched of their payload, letters of A to
        Z in either case: to find them texts are read, and a page may end before it is full, with another one behind it.
        """

    def first_passing(self, project: str, where: Filter, limit: int) -> tuple[tuple[str, ...], int]:
        """The ids of the first memories that pass, at most so many, by their writes; how many pass at all."""

    def stars(self, project: str, after: int, limit: int) -> Stars:
        """At most `limit` memories behind position `after` (0: the first) in the star map, by their writes.

        Memories stay where they are when others come, but for the times when there are twice as many, at first.
        """

    def stars_of(self, project: str, memory_ids: Sequence[str]) -> Stars:
        """These memories in the star map, by their writes; what does not exist is left out."""

    def memory_events(self, project: str, after: int, *, full: bool) -> EventPage:
        """What happened to memories behind the write `after`: of some writes, about a MiB of memories at once.

        Read at one moment. What a later write has undone is left out, so the last event of a memory tells what is,
        wherever one begins. An unknown project has seq 0.
        """

    def export(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> ExportPage:
        """The memories behind position `after` (0: the first), whole, in the order of their writes, some MiB at once.

        With them the ids of memories up to `after` that were removed, or written again, behind the write `after_seq`.
        """

    def read_learning(self, project: str, read: Callable[[LearningReader], Read]) -> Read:
        """What `read` returns of a project's learning; it is called once, and nothing changes while it reads.

        It holds what it reads and no iterator, which ends with it, and is quick: while it runs, no page is reused.
        """

    def settings(self, project: str) -> ProjectSettings:
        """What a project sets for itself; nothing of an unknown one."""

    def projects(self, after: str, limit: int) -> list[Project]:
        """At most `limit` projects whose names come behind `after`, in the order of their names' UTF-8 bytes."""

    def status(self) -> StoreStatus:
        """How full the store is."""

    def trouble(self) -> str:
        """Why the service cannot be relied on, for people; empty while it can. Asked for every second."""

    def close(self) -> None:
        """Finishes the queued writes and releases the directory."""
