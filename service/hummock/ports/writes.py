"""Writes: what one request changes in one project, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hummock.core.embedding import Embedding
from hummock.core.learning import Profile
from hummock.core.memory import Memory, MemoryKind, Origin, Terms
from hummock.core.project import ProjectInfo
from hummock.core.review import Quarantined, QuarantinedPage
from hummock.core.settings import ProjectSettings
from hummock.ports.claims import Claim
from hummock.ports.learning import LearningUnit
from hummock.ports.sessions import SessionWork

Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextKey:
    """By what a memory is found when it is told again.

    Attributes:
        kind: Its kind.
        origin: Its origin.
        identity: `text.likeness.identity` of it, 16 bytes.
        earlier: Hashes under which older versions have stored it. What is found by them has to have that identity.
        create_time: In Unix seconds, where only a memory of that time is the same; else None.
    """

    kind: MemoryKind
    origin: Origin
    identity: bytes
    earlier: tuple[bytes, ...] = ()
    create_time: float | None = None


class UnitOfWork(Protocol):
    """The changes of one write request to one project: all of them happen, or none."""

    def get(self, memory_id: str) -> Memory | None:
        """The memory as this unit of work sees it, with its payload."""

    def find_by_text(self, key: TextKey) -> str | None:
        """The id of the memory that is the same as what has this key; the oldest of several."""

    def put(
        self,
        memory: Memory,
        key: TextKey | None,
        terms: Terms,
        embeddings: Sequence[Embedding],
        session_position: int | None = None,
        profile: Profile | None = None,
    ) -> None:
        """Stores a memory (it has a payload); one with its id is replaced. A key of None is never found by text.

        None puts it behind the memories of its session, or where the one that it replaces was. What was learnt of it
        stays, unless it was an ENTRY and is none any more; `profile` is what was learnt of one that is not there yet.
        Without embeddings it is found by its words alone, and is
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


class Review(Protocol):
    """Reads of what is held for review. Each sees every write that was acknowledged before it began."""

    def get(self, project: str, ids: Sequence[str], /) -> list[Quarantined | None]:
        """What is held under these ids, in order; None where nothing is."""

    def page(self, project: str, after: str, limit: int, /) -> QuarantinedPage:
        """At most `limit` of what is held behind an id (empty: the beginning), by the bytes of their ids."""


class ReviewWork(Protocol):
    """The changes that a write makes to what is held for review, and what it sees of it."""

    def get(self, memory_id: str, /) -> Quarantined | None:
        """What is held under an id."""

    def put(self, held: Quarantined, /) -> None:
        """Holds a memory; what was held under its id is replaced. No read of memories finds it."""

    def delete(self, memory_id: str, /) -> bool:
        """Removes what is held under an id. False where nothing is."""
