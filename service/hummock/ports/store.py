"""Where memories, sessions and what was learnt are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from hummock.core.candidates import Gathered, GroupQuery, Standing
from hummock.core.embedding import Embedding
from hummock.core.errors import StoreUnreachable
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


class Recallable(Protocol):
    """What a recall reads of all projects. Safe to call from several threads; a read never waits for a write."""

    def candidates(self, project: str, queries: Sequence[GroupQuery], min_seq: int, seen_seq: int = 0) -> Gathered:
        """What each query finds, read at one moment. An unknown project has nothing, at seq 0.

        What was written behind `seen_seq` need not be among it: above 0 it is what `generation` gave when the caller's
        own caller had come, so that it need not be asked for again.

        Raises: SeqNotReached.
        """

    def damaged(self, project: str) -> int:
        """How many memories of a project are known to be damaged, and are left out of what is read of it."""

    def rarest(self, project: str, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """Those of the terms that the fewest memories hold, at most so many, in the order given.

        Terms that no memory holds come last, and of equal ones the first comes first.
        """

    def holders(self, project: str, terms: Sequence[str], seen_seq: int = 0) -> tuple[int, ...]:
        """How many memories hold each of the terms, in the order given; `seen_seq` as in `candidates`."""

    def held_behind(self, project: str, prefix: str, most: int, seen_seq: int = 0) -> Mapping[str, int]:
        """The terms that begin so and how many memories hold each, of the first `most` in the order of their bytes.

        `seen_seq` as in `candidates`.

        Terms that no memory holds any more are among those that are counted, and not among those that are given.
        """

    def holds_any(self, project: str, terms: Sequence[str]) -> bool:
        """Whether a memory of the project holds, or once held, one of these terms. Costs next to nothing."""

    def foreign(self, project: str, kinds: Collection[MemoryKind], mark: int) -> int:
        """How many memories of these kinds are, or may be, in the language that bridges of this mark are for.

        See `Bridge.foreign_mark`. Where it is 0 a query finds nothing by such a bridge. Costs next to nothing.
        """

    def given_names(self, project: str) -> GivenNames:
        """What the project calls things: its domains, and entries with learned keywords.

        The very same object until one of those changes, and then at next to no cost.
        """

    def load(self, project: str, docs: Sequence[int], *, full: bool, seen_seq: int = 0) -> list[Memory | None]:
        """The memories of these numbers, in order; None where one was removed since.

        At 0 they are as they are now; `seen_seq` above 0 is one at which they were found since the caller's own caller
        had come, and what was read at it will do.
        """

    def superseded_by(self, project: str, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The ids of the memories that replace each of these, in the order of their writes, where there are any."""

    def neighbours(
        self, project: str, docs: Sequence[int], count: int, *, full: bool, most_bytes: int
    ) -> list[Neighbours]:
        """At most `count` memories on either side of each of these numbers; none beside one that was removed since.

        Fragments of code stand beside the others of their file, by line; all else beside the turns of its session. From
        the first number on, and outwards beside each, they are read until all memories that are named, and all that
        are given as often as they are given, would have more than `most_bytes` as they are stored.
        """

    def inline_generation(self, project: str) -> Generation | None:
        """The generation, if a search need not wait for anything and takes a few milliseconds at most.

        None where the project is not in memory as it is now, where it is large, and where there is no such project.
        """

    def generation(self, project: str) -> Generation:
        """A project's newest generation, without loading its memories; zeros for an unknown one.

        It counts every write that is done, never goes back, and no read that begins after it sees an older one.
        """


class Readable(Recallable, Protocol):
    """What a rendering reads of all projects. Safe to call from several threads; a read never waits for a write."""

    @property
    def sessions(self) -> Sessions:
        """Reads of sessions and messages."""

    def project(self, name: str) -> Project | None:
        """A project, or None."""

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none. Raises: SeqNotReached."""


class LastSeen(Readable, Protocol):
    """What a service has in memory of a store that it may be unable to reach; nothing here asks the store.

    Each read is of the state of the project that was seen last, and raises StoreUnreachable where nothing of it is in
    memory, or too little to answer at all. What is missing of memories is as if they were removed.
    """

    def away(self) -> StoreUnreachable | None:
        """Why the store cannot be reached; None while it can, as far as is known."""

    def seen(self, project: str) -> tuple[int, float]:
        """The seq that was seen last, and for how many seconds at most it may not be the newest."""


class Store(Readable, Protocol):
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

    def standing(self, project: str, query: GroupQuery, memory_id: str) -> Standing | None:
        """Where one memory stands among all that pass the query's filter; None where the project has no such memory.

        Exact, whatever the query's pool, and as slow as that: for explaining, not for recalling.
        """

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
