"""Where memories, sessions and what was learnt are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hummock.core.candidates import Gathered, GroupQuery, Standing
from hummock.core.claims import Claim
from hummock.core.embedding import Embedding
from hummock.core.errors import StoreUnreachable
from hummock.core.learning import (
    Entry,
    LearningChanges,
    LearningEvent,
    LearningState,
    LoggedEvent,
    Profile,
    Reference,
    Usage,
)
from hummock.core.memory import EventPage, Filter, Memory, MemoryKind, Origin, Terms
from hummock.core.project import DeletedProject, GivenNames, Project, ProjectInfo, StoreStatus
from hummock.core.review import Held, HeldPage
from hummock.core.session import MessagePage, Session, SessionMessage, SessionPage
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.core.stars import Stars
from hummock.core.transfer import ExportPage
from hummock.ports.claims import Claims


class Sessions(Protocol):
    """Reads of the sessions of all projects. Each sees every write that was acknowledged before it began."""

    def get(self, project: str, session_id: str) -> Session:
        """One session. Raises: SessionNotFound."""

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> SessionPage:
        """At most `limit` sessions, of those that are archived or those that are not, the one that moved last first.

        A session moves when it is created and with every message. Behind `next_behind` of the page before; None is the
        beginning.
        """

    def all(self, project: str) -> tuple[Session, ...]:
        """All sessions at one moment: the archived ones first, and of either kind what moved last at the end."""

    def message(self, project: str, session_id: str, message_id: str) -> SessionMessage | None:
        """One message; None where the session has none with this id. Raises: SessionNotFound."""

    def before(self, project: str, session_id: str, position: int | None, limit: int, most_bytes: int) -> MessagePage:
        """At most `limit` messages directly before a position (None: the newest), in the order of time.

        The page ends before the message that would make it larger than `most_bytes` as stored; one comes at least.

        Raises: SessionNotFound.
        """

    def behind(
        self, project: str, session_id: str, position: int, most_bytes: int, number: int | None = None
    ) -> tuple[SessionMessage, ...]:
        """The messages directly behind a position, in the order of time, as far as `most_bytes` go; one at least.

        Args:
            project: Of the session.
            session_id: The session.
            position: 0 is the beginning.
            most_bytes: Of the messages as stored.
            number: The session's, where none but that one is meant; None is whichever has the id.

        Raises: SessionNotFound.
        """


class SessionWork(Protocol):
    """The changes that a write makes to the sessions of its project, and what it sees of them."""

    def get(self, session_id: str) -> Session | None:
        """A session."""

    def active(self) -> Session | None:
        """Of the sessions that are not archived the one that moved last."""

    def message(self, session_id: str, message_id: str) -> SessionMessage | None:
        """A message of a session that is there."""

    def create(self, session: Session) -> None:
        """Stores a session whose id is free; it has moved last."""

    def change(self, session: Session) -> None:
        """Replaces a session's values; its place in the order stays."""

    def append(self, session: Session, message: SessionMessage) -> SessionMessage:
        """Stores a message behind the newest one and replaces the session's values; the session has moved last.

        Returns:
            The message with its position. The session's message_count counts up by itself.
        """

    def learnt(self, session_id: str, message: SessionMessage) -> None:
        """Replaces a message that is there by one that differs in its memory alone."""

    def delete(self, session_id: str) -> None:
        """Makes a session that is there disappear; its messages are left to `clear`."""

    def clear(self, limit: int) -> bool:
        """Removes at most `limit` messages of sessions that were deleted; whether some are left."""


class Review(Protocol):
    """Reads of what is held for review. Each sees every write that was acknowledged before it began."""

    def get(self, project: str, ids: Sequence[str], /) -> list[Held | None]:
        """What is held under these ids, in order; None where nothing is."""

    def page(self, project: str, after: str, limit: int, /) -> HeldPage:
        """At most `limit` of what is held behind an id (empty: the beginning), by the bytes of their ids."""


class ReviewWork(Protocol):
    """The changes that a write makes to what is held for review, and what it sees of it."""

    def get(self, memory_id: str, /) -> Held | None:
        """What is held under an id."""

    def put(self, held: Held, /) -> None:
        """Holds a memory; what was held under its id is replaced. No read of memories finds it."""

    def delete(self, memory_id: str, /) -> bool:
        """Removes what is held under an id. False where nothing is."""


class LearningView(Protocol):
    """What folding an event reads. All of it is as of one moment."""

    def state(self) -> LearningState:
        """What concerns the whole project."""

    def turn(self, scope: str) -> int | None:
        """The scope's newest turn; None for one that has had none."""

    def used(self, scope: str, memory_id: str) -> Usage | None:
        """How the scope has used a memory; None when it never did."""

    def profile(self, memory_id: str) -> Profile | None:
        """What was learnt of a memory; None when it was never analysed and has no keywords."""


class LearningRows(LearningView, Protocol):
    """All that a project has learnt."""

    def usage(self, scope: str) -> dict[str, Usage]:
        """All that the scope has used, by memory id, in the order of their UTF-8 bytes."""

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        """All profiles with their memory ids, in the order of their UTF-8 bytes."""

    def scopes(self) -> Iterator[tuple[str, int]]:
        """All scopes that have had a turn, with their newest; in no particular order."""


class LearningReader(LearningRows, Protocol):
    """A project's learning with its log. An unknown project has learnt nothing."""

    def entries_seq(self) -> int:
        """The project's seq after the newest write that stored or removed an entry; 0 when none did."""

    def events(self, after: int, limit: int) -> list[LoggedEvent]:
        """The events behind the one of number `after` (0: the first), up to `limit` further; oldest first.

        Numbers have no gaps but for what is damaged, which is left out.
        """


class LearningUnit(LearningRows, Protocol):
    """The learning of a unit of work: what it reads, it has written itself or found when it began."""

    def append(self, event: LearningEvent, changes: LearningChanges) -> None:
        """Logs an event and stores what it changes; `changes.state.events` is its number.

        `log.record` is the way to do it: it folds the event.
        """

    def events(self, after: int, limit: int) -> list[LoggedEvent]:
        """The events behind the one of number `after` (0: the first), up to `limit` further; oldest first.

        Numbers have no gaps but for what is damaged, which is left out.
        """

    def rewrite(self, number: int, event: LearningEvent) -> None:
        """Puts another event in the place of one that is logged; its time stays, and so does all that it changed."""

    def drop_scope(self, scope: str) -> None:
        """Removes the turn and the usage of a scope that no event names any more."""


class FindReferences(Protocol):
    """Finds the entries of a project that a text refers to. Safe to call from several threads."""

    def __call__(
        self, project: str, text: str, entries: Sequence[Entry], min_similarity: float, /
    ) -> Sequence[Reference]:
        """Those that are at least so similar, the most similar first, equal ones by id; each once.

        As long as a project's entries stay what they are, it is given the very same sequence of them.
        """


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
        stays, unless it was an ENTRY and is none any more. Without embeddings it is found by its words alone, and is
        among what `Store.pending` gives until `embed` brings them.
        """

    def embed(self, memory_id: str, fingerprint: bytes, embeddings: Sequence[Embedding]) -> bool:
        """Gives a memory that was put without embeddings those that it waits for; nothing else of it changes.

        False, and nothing happens, where it is gone, has another fingerprint or waits for none.
        """

    def delete(self, memory_id: str, *, keeps_vectors: bool = True) -> bool:
        """Removes a memory, and what was learnt of it. False when there is none.

        What it was embedded as may be kept for its text to come again (`Store.vectors`), unless it must not.
        """

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

    @property
    def review(self) -> ReviewWork:
        """What the project holds for review."""

    def settings(self) -> ProjectSettings:
        """What the project sets for itself."""

    def set_settings(self, settings: ProjectSettings) -> None:
        """Replaces what the project sets for itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookups:
    """What a write is likely to look up; where that takes a round trip, all of it is fetched with the first.

    Attributes:
        ids: Of memories.
        texts: Keys of texts.
        session_ids: Of the memories that it may store.
        terms: Gives the terms of those; it runs on the store's writer thread, if at all.
    """

    ids: Sequence[str] = ()
    texts: Sequence[TextKey] = ()
    session_ids: Sequence[str] = ()
    terms: Callable[[], Sequence[Terms]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(Generic[Reply]):
    """One write.

    Attributes:
        request_id: UUID; empty when repeats of the request are new writes.
        fingerprint: Hash of the request; the same request_id with another one raises RequestIdReused.
        reply_type: A frozen dataclass or struct of plain values (str, int, float, bool, bytes, tuples and enums of
            them), so that the reply can be kept for repeats: by the names of its fields, none of them `array_like`.
        apply: Makes the changes on the store's writer thread. What it raises aborts this request alone. It runs again
            when a commit that it shared with others failed, so it changes nothing but the unit of work.
        creates: Whether a project that is not there is made; otherwise ProjectNotFound is raised.
        is_bulk: Whether it is one of many, and lets what others wait for go first.
        claim: Under which it is made, where nobody calls for it.
        lookups: What it is likely to look up. It may look up more, or less.
    """

    request_id: str
    fingerprint: bytes
    reply_type: type[Reply]
    apply: Callable[[UnitOfWork], Reply]
    creates: bool = True
    is_bulk: bool = False
    claim: Claim | None = None
    lookups: Lookups | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRemoval:
    """The removal of a project; `request_id` and `fingerprint` as in `WriteRequest`, among all such removals."""

    request_id: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Generic[Reply]):
    """A durable write: the project's seq after it, and what `apply` returned (or had returned the first time).

    `is_repeat` says that the request_id had been written before, and that nothing has happened now.
    """

    seq: int
    reply: Reply
    is_repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some memories in the order of their writes; `next_after` continues behind them, None on the last page."""

    memories: tuple[Memory, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """What stands before a memory and behind it, in its session or file, in that order.

    `is_cut` means that something of it was left out for want of room.
    """

    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()
    is_cut: bool = False


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
        """The same as `generation`, where a search need not wait for anything and takes a few milliseconds at most.

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
        """Projects and ids of at most `limit` memories that have expired and are still to be removed.

        The one that ended first comes first. They are deleted as others are.
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
