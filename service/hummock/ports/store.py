"""Port of the store of memories, sessions and learning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from hummock.core.candidates import Gathered, GroupQuery, SessionWindow, Standing
from hummock.core.embedding import Embedding
from hummock.core.memory import EventPage, Filter, Memory, MemoryKind
from hummock.core.project import DeletedProject, GivenNames, GraphReport, Project, Stars, StoreStatus
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.core.transfer import ExportPage
from hummock.ports.learning import LearningReader
from hummock.ports.sessions import Sessions
from hummock.ports.writes import Claims, ProjectRemoval, Reply, Review, TextKey, WriteRequest, Written

Read = TypeVar("Read")


class Outdated(Exception):
    """A write has removed data that a snapshot needs: the work is repeated with a newer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some memories in write order; `next_after` continues after them, None on the last page."""

    memories: tuple[Memory, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The memories before and after a memory in its session or file, in order.

    `is_cut` means that some were left out for lack of room. `text_hashes` are those of `Candidates`, by id.
    """

    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()
    is_cut: bool = False
    text_hashes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What belongs to a turn of a conversation, with payloads.

    Attributes:
        question: The question that the turn answers; None if it stands by itself.
        replies: The turns after it up to the answer, if it asks, and further while these ask.
        answer_id: Id of the reply that answers it; empty without replies.
    """

    question: Memory | None = None
    replies: tuple[Memory, ...] = ()
    answer_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Which older notes may be about the same: at most `count`, so much like it and told so much earlier."""

    least_cosine: float
    least_age_s: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A note that tells a change: its number, and those of older notes that may be about the same.

    `older` has their cosines to it, best first.
    """

    doc: int
    older: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """Notes that tell a change, in write order; `next_after` continues after them, None on the last page."""

    changes: tuple[Change, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Version of a project: writes accepted, and changes after which a recall could answer differently.

    `settings` are those of that moment; a change of them is one of these changes. `expired_at` is the latest expiry, in
    Unix seconds, of memories that have expired and are not yet removed; 0 if there are none.
    """

    seq: int
    content_seq: int
    settings: ProjectSettings = NO_SETTINGS
    expired_at: float = 0.0


class LookedUp(NamedTuple):
    """A project's own settings, its memories with some ids, without payloads, and those with some texts.

    `holders` has the id of the memory that is equal by each key, the oldest of several. Both are in the order of what
    was looked up, with None where there is none.
    """

    settings: ProjectSettings
    memories: list[Memory | None]
    holders: list[str | None]


Embedded = tuple[int, tuple[Embedding, ...]]
"""A memory's number and the embeddings of its chunks."""


class Missing(NamedTuple):
    """Memories that have vectors in use and none of another space.

    Attributes:
        docs: Their numbers, ascending.
        scanned: How many memories with vectors were looked at.
        last: The last number looked at, after which the next look begins.
    """

    docs: tuple[int, ...]
    scanned: int
    last: int


class SpaceBeside(Protocol):
    """Vectors of a space that is not in use yet, beside those in use. Safe to call from several threads."""

    def missing(self, project: str, after: int) -> Missing:
        """The memories of a project after this number that lack vectors; none where there is no such project."""

    def put(self, project: str, embedded: Sequence[Embedded]) -> None:
        """Store vectors, durably; those of memories that were removed are left out. Raises: StorageFull."""


class Snapshot(Protocol):
    """One project at one moment, valid until the work that it was opened for ends. Not thread-safe.

    A project that does not exist has nothing, at seq 0.

    Attributes:
        seq: Writes that the project has accepted.
        content_seq: Changes after which a recall could answer differently.
        settings: The project's own settings.
        expired_at: When the last memory ended that has expired and is not yet removed, in Unix seconds; 0 without one.
        stale_s: None, unless the store cannot be reached and this is the last known state; then the most seconds by
            which it may be outdated. Memories not loaded then count as removed.
    """

    seq: int
    content_seq: int
    settings: ProjectSettings
    expired_at: float
    stale_s: float | None

    @property
    def entries_version(self) -> tuple[int, int]:
        """The seq after the newest write that stored or removed an entry, and the newest event that changed a keyword.

        May be later than the snapshot's seq: then an entry was written meanwhile.
        """

    def search(self, queries: Sequence[GroupQuery]) -> Gathered:
        """The candidates of each query."""

    def standing(self, query: GroupQuery, memory_id: str) -> Standing | None:
        """The place of one memory among all that pass the query's filter; None where there is no such memory.

        Exact, whatever the query's pool, and as slow as that: for explaining, not for recalling.
        """

    def rarest(self, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """Return the terms that the fewest memories hold, at most `most`, in the given order.

        Terms that no memory holds come last; ties go to the earlier one.
        """

    def holders(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Number of memories that hold each of the terms, in the order given."""

    def unheld(self, terms: Sequence[str]) -> list[int]:
        """Places of the terms, at most 32, that no memory holds; a search for the same object has looked them up."""

    def terms_with_prefix(self, prefix: str, most: int) -> Mapping[str, int]:
        """Return the terms that begin with the prefix, with the number of memories that hold each.

        Only the first `most` in byte order are counted; terms that no memory holds any more are left out.
        """

    def holds_any(self, terms: Sequence[str]) -> bool:
        """Whether a memory holds, or once held, one of the terms. Costs next to nothing."""

    def foreign(self, kinds: Collection[MemoryKind], mark: int) -> int:
        """Count the memories of these kinds that are, or may be, in the language of bridges with this mark.

        See `Bridge.foreign_mark`. If it is 0, such a bridge finds nothing. Cheap.
        """

    def given_names(self) -> GivenNames:
        """Return the names of the project's domains, and of its entries with learned keywords.

        The same object, at almost no cost, until one of those changes.
        """

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The memories of these numbers, in order; None for one that was removed after the snapshot was taken."""

    def superseded_by(self, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The ids of the memories that replace each of these, in the order of their writes, where there are any."""

    def neighbours(self, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Neighbours]:
        """Return at most `count` memories on either side of each of these numbers.

        Neighbours of a fragment of code are the others of its file, by line; of any other memory the turns of its
        session. They are read from the first number on, outwards from each, until the named memories and all returned
        ones, repeats included, would exceed `most_bytes` as stored.
        """

    @property
    def has_turns(self) -> bool:
        """Whether any memory is a turn of a session, or once was one."""

    def last_said(self, session_id: str, most: int) -> list[Memory]:
        """The last turns of a session's user, at most so many, newest first, with payloads."""

    def replies_to(self, text_hashes: Collection[int], where: Filter, window: SessionWindow | None) -> list[Memory]:
        """Return the replies to the newest turns with one of these texts (`echo_hashes`), with payloads.

        The newest turn's come first; filter and window are as in `exchanges`.
        """

    def exchanges(self, memory_ids: Sequence[str], where: Filter, window: SessionWindow | None) -> list[Exchange]:
        """Return what belongs to each of these turns: the question that it answers, and the replies to it.

        Only what passes the filter, lies outside the window and is not replaced. Memories that are no turns have
        nothing. Costs next to nothing in a project without turns.
        """

    def damaged(self) -> int:
        """Number of memories known to be damaged, which reads leave out."""

    def get(self, memory_ids: Sequence[str]) -> list[Memory | None]:
        """The memories with these ids, with their payloads, in order; None where there is none."""

    def page(
        self, where: Filter, after: int, limit: int, *, full: bool, newest_first: bool = False, contains: str = ""
    ) -> Page:
        """Return a page of the memories that pass the filter; see `Store.page`."""

    def first_passing(self, where: Filter, limit: int) -> tuple[tuple[str, ...], int]:
        """The ids of the first memories that pass, at most so many, by their writes; how many pass at all."""

    def stars(self, after: int, limit: int) -> Stars:
        """Return at most `limit` memories after position `after` (0: the first) in the star map, in write order.

        Memories keep their places when others are added, except, at first, whenever the number has doubled.
        """

    def stars_of(self, memory_ids: Sequence[str]) -> Stars:
        """These memories in the star map, by their writes; what does not exist is left out."""

    def pinned(self, where: Filter, most: int) -> list[Memory]:
        """Return the pinned memories of prompts with this filter, with their payloads, newest write first.

        At most `most`. Of the filter the speakers, session_ids, tags, metadata, writers and excluded_ids count; a
        memory without a speaker, or without a session, passes the conditions on those. Replaced ones are left out.
        Costs nothing if none is pinned.
        """

    def changes(self, after: int, most: int, alike: Alike) -> ChangePage:
        """Return at most `most` notes after position `after` (0: the first) that tell a change and have vectors.

        Replaced ones are left out, also among the older ones, which are notes by the same person that ask nothing. What
        a writer says that nobody vouches for is only compared with what that writer has said.
        """

    def learning(self) -> LearningReader:
        """What the project has learnt; the same object each time."""

    def project(self) -> Project | None:
        """The project; None where there is none."""

    def require(self, min_seq: int) -> None:
        """Raises: SeqNotReached: the project has not accepted so many writes."""


class Reads(Protocol):
    """Consistent reads of single projects. Safe to call from several threads; never waits for a write."""

    @property
    def sessions(self) -> Sessions:
        """Reads of sessions and messages."""

    def read(
        self, project: str, work: Callable[[Snapshot], Read], *, min_seq: int = 0, allow_stale: bool = False
    ) -> Read:
        """Run the work on a snapshot that includes everything acknowledged before the call; returns its result.

        The work only reads. It is repeated with a newer snapshot if a write has removed data that it needs.

        Args:
            project: Its name.
            work: Gets the snapshot, and must not keep it.
            min_seq: Writes that the project must have accepted.
            allow_stale: Uses the last known state if the store cannot be reached.

        Raises: SeqNotReached; StoreUnreachable; Unavailable: it is changed continually; what the work raises.
        """

    def read_at_once(self, project: str, work: Callable[[Snapshot], Read | None]) -> Read | None:
        """Run the work as `read` does, if a search blocks on nothing and takes a few milliseconds at most.

        None if the project's current index is not in memory, if it is large, or if the project does not exist.
        """


class Store(Reads, Protocol):
    """The memories of all projects. Safe to call from several threads; a read never waits for a write.

    Memories that have expired by the store's clock are hidden from all reads and writes, except from counts.
    """

    @property
    def review(self) -> Review:
        """Reads of memories held for review."""

    @property
    def claims(self) -> Claims:
        """Claims to background work."""

    def write(self, project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        """Queues a write; creates the project, if it may. Done when it is durable and every later read sees it.

        Raises (from the future): RequestIdReused, StorageFull, ProjectNotFound, ClaimLost, and what `apply` raises.
        """

    def remove_project(self, project: str, request: ProjectRemoval) -> Future[Written[DeletedProject]]:
        """Queue the removal of a project. The future is done when it is durable and no later read finds the project.

        Its contents are cleared alongside other writes, also by a later process. A later project of the same name is
        another one, whose seq, content_seq and numbers continue from those of this one.

        Raises (from the future): ProjectNotFound, RequestIdReused.
        """

    def earlier(
        self, project: str, request_id: str, fingerprint: bytes, reply_type: type[Reply]
    ) -> Written[Reply] | None:
        """Return the reply to the write with this request_id, so that a repeat need not be prepared.

        None if there was none, if it is forgotten, and for an empty request_id; `write` also answers repeats.

        Raises: RequestIdReused.
        """

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call the follower for every later write, with its project and the seq after it, once every read sees it.

        The follower runs on the writer's thread, so it must return at once and not raise. A repeated request is
        reported again, with the seq of the first time.
        """

    def expired(self, limit: int) -> list[tuple[str, str]]:
        """Return (project, id) of at most `limit` memories that had expired at `settled_now` and are not removed.

        The earliest expiry comes first. They are deleted like others.
        """

    def settled_now(self) -> float:
        """Unix seconds to use when something is removed for good.

        A jump of the wall clock takes effect ten minutes later, unless it was reverted by then.
        """

    def project(self, name: str) -> Project | None:
        """A project, or None."""

    def generation(self, project: str) -> Generation:
        """Return a project's newest generation without loading its memories; zeros for an unknown project.

        It includes every finished write, never decreases, and no later read sees an older one.
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
        """Return the vectors stored with each digest, in any project; None if there are none.

        Vectors are kept for a while after the last memory with their digest is removed.
        """

    def look_up(self, project: str, memory_ids: Sequence[str], keys: Sequence[TextKey]) -> LookedUp:
        """What a write would look up; reads at several moments, so that only the write itself can rely on it."""

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
        """Return at most `limit` memories after position `after` (0: the first) that pass the filter, in write order.

        Only those with `contains` in their title, tags or searched payload, ignoring the case of A to Z. That reads the
        texts, so a page may end before it is full while another follows.
        """

    def memory_events(self, project: str, after: int, *, full: bool) -> EventPage:
        """Return memory events after the write `after`, about a MiB of memories at a time.

        Read at one moment. Events undone by a later write are left out, so the last event of a memory gives its current
        state from any start. An unknown project has seq 0.
        """

    def export(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> ExportPage:
        """Return complete memories after position `after` (0: the first), in write order, some MiB at a time.

        Includes the ids of memories up to `after` that were removed or rewritten after the write `after_seq`.
        """

    def read_learning(self, project: str, read: Callable[[LearningReader], Read]) -> Read:
        """Call `read` once with a project's learning at one moment, and return its result.

        It must not return an iterator, which ends with it, and must be quick: while it runs, no page is reused.
        """

    def settings(self, project: str) -> ProjectSettings:
        """Return a project's own settings; none of an unknown project."""

    def graph(self, project: str) -> GraphReport | None:
        """Report on the graph of a project; None if the project is not in memory, or has no place for one."""

    def projects(self, after: str, limit: int) -> list[Project]:
        """Return at most `limit` projects whose names come after `after`, ordered by UTF-8 bytes."""

    def status(self) -> StoreStatus:
        """Return the size and state of the store."""

    def trouble(self) -> str:
        """Why the service cannot be relied on, for people; empty while it can. Asked for every second."""

    def close(self) -> None:
        """Finishes the queued writes and releases the directory."""
