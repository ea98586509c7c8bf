"""Where memories are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hummock.core.candidates import Gathered, GroupQuery, Standing
from hummock.core.embedding import Embedding
from hummock.core.memory import Filter, Memory, MemoryKind, Origin
from hummock.core.memory_events import EventPage
from hummock.core.project import Project, ProjectInfo
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.core.status import StoreStatus
from hummock.core.terms import Terms
from hummock.core.transfer import KeptPage
from hummock.ports.learning import LearningReader, LearningUnit
from hummock.ports.sessions import Sessions, SessionWork

Read = TypeVar("Read")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextKey:
    """What makes two memories the same one: equal keys in one project are stored once.

    `content_hash` is the memory's own, or where more than the text counts a hash of all that does.
    """

    kind: MemoryKind
    origin: Origin
    content_hash: bytes


class UnitOfWork(Protocol):
    """The changes of one write request to one project: all of them happen, or none."""

    def get(self, memory_id: str) -> Memory | None:
        """The memory as this unit of work sees it, with its payload."""

    def find_by_text(self, key: TextKey) -> str | None:
        """The id of the memory that was put with this key; the oldest of several."""

    def put(
        self,
        memory: Memory,
        key: TextKey | None,
        terms: Terms,
        embeddings: Sequence[Embedding],
        session_position: int | None = None,
    ) -> None:
        """Stores a memory (it has a payload); one with its id is replaced. A key of None is never found by text.

        None puts it behind the memories of its session, or where the one that it replaces was. What was learnt of it
        stays, unless it was an ENTRY and is none any more.
        """

    def delete(self, memory_id: str) -> bool:
        """Removes a memory, and what was learnt of it. False when there is none."""

    def info(self) -> ProjectInfo:
        """The project's information."""

    def set_info(self, info: ProjectInfo) -> None:
        """Replaces the project's information."""

    @property
    def learning(self) -> LearningUnit:
        """What the project has learnt of its memories."""

    @property
    def sessions(self) -> SessionWork:
        """The sessions of the project."""

    def settings(self) -> ProjectSettings:
        """What the project sets for itself."""

    def set_settings(self, settings: ProjectSettings) -> None:
        """Replaces what the project sets for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(Generic[Reply]):
    """One write.

    Attributes:
        request_id: UUID; empty when repeats of the request are new writes.
        fingerprint: Hash of the request; the same request_id with another one raises RequestIdReused.
        reply_type: A frozen dataclass of plain values (str, int, float, bool, bytes, tuples and enums of them),
            so that the reply can be kept for repeats.
        apply: Makes the changes on the store's writer thread. What it raises aborts this request alone. It runs again
            when a commit that it shared with others failed, so it changes nothing but the unit of work.
    """

    request_id: str
    fingerprint: bytes
    reply_type: type[Reply]
    apply: Callable[[UnitOfWork], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Generic[Reply]):
    """A durable write: the project's seq after it, and what `apply` returned (or had returned the first time)."""

    seq: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some memories in the order of their writes; `next_after` continues behind them, None on the last page."""

    memories: tuple[Memory, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stands before a memory and behind it, in its session or file, in that order.

    `is_cut` means that something of it was left out for want of room.
    """

    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How far a project has come: writes accepted, and changes after which a recall could answer differently.

    `settings` are those of that moment; a change of them is one of these changes.
    """

    seq: int
    content_seq: int
    settings: ProjectSettings = NO_SETTINGS


class Recallable(Protocol):
    """What a recall reads of all projects. Safe to call from several threads; a read never waits for a write."""

    def candidates(self, project: str, queries: Sequence[GroupQuery], min_seq: int) -> Gathered:
        """What each query finds, read at one moment. An unknown project has nothing, at seq 0.

        Raises: SeqNotReached.
        """

    def load(self, project: str, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The memories of these numbers, in order; None where one was removed since."""

    def beside(self, project: str, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Beside]:
        """At most `count` memories on either side of each of these numbers; none beside one that was removed since.

        Fragments of code stand beside the others of their file, by line; all else beside the turns of its session. From
        the first number on, and outwards beside each, they are read until all memories that are named, and all that
        are given as often as they are given, would have more than `most_bytes` as they are stored.
        """

    def at_hand(self, project: str) -> Generation | None:
        """The same as `generation`, where a search need not wait for anything and takes a few milliseconds at most.

        None where the project is not in memory as it is now, where it is large, and where there is no such project.
        """

    def generation(self, project: str) -> Generation:
        """A project's newest generation, without loading its memories; zeros for an unknown one.

        It counts every write that is done, never goes back, and no read that begins after it sees an older one.
        """


class Store(Recallable, Protocol):
    """The memories of all projects. Safe to call from several threads; a read never waits for a write."""

    @property
    def sessions(self) -> Sessions:
        """Reads of sessions and messages."""

    def write(self, project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        """Queues a write; creates the project. Done when it is durable and every later read sees it.

        Raises (from the future): RequestIdReused, StorageFull, and what `apply` raises.
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

    def standing(self, project: str, query: GroupQuery, memory_id: str) -> Standing | None:
        """Where one memory stands among all that pass the query's filter; None where the project has no such memory.

        Exact, whatever the query's pool, and as slow as that: for explaining, not for recalling.
        """

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none. Raises: SeqNotReached."""

    def find_by_text(self, project: str, keys: Sequence[TextKey]) -> list[str | None]:
        """The ids of the memories that were put with these keys, in order; the oldest of several."""

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

    def memory_events(self, project: str, after: int, *, full: bool) -> EventPage:
        """What happened to memories behind the write `after`: of some writes, about a MiB of memories at once.

        Read at one moment. What a later write has undone is left out, so the last event of a memory tells what is,
        wherever one begins. An unknown project has seq 0.
        """

    def kept(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> KeptPage:
        """The memories behind position `after` (0: the first), whole, in the order of their writes, some MiB at once.

        With them the ids of memories up to `after` that were removed, or written again, behind the write `after_seq`.
        """

    def read_learning(self, project: str, read: Callable[[LearningReader], Read]) -> Read:
        """What `read` returns of a project's learning; it is called once, and nothing changes while it reads.

        It holds what it reads and no iterator, which ends with it, and is quick: while it runs, no page is reused.
        """

    def project(self, name: str) -> Project | None:
        """A project, or None."""

    def projects(self, after: str, limit: int) -> list[Project]:
        """At most `limit` projects whose names come behind `after`, in the order of their names' UTF-8 bytes."""

    def status(self) -> StoreStatus:
        """How full the store is."""

    def close(self) -> None:
        """Finishes the queued writes and releases the directory."""
