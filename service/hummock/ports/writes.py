"""Writes: the changes of one request to one project, all or nothing; and claims to work that leads to writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

from hummock.core.embedding import Embedding
from hummock.core.errors import Unavailable
from hummock.core.learning import Profile
from hummock.core.memory import Memory, MemoryKind, Origin, Terms
from hummock.core.project import ProjectInfo
from hummock.core.review import Quarantined, QuarantinedPage
from hummock.core.settings import ProjectSettings
from hummock.ports.learning import LearningUnit
from hummock.ports.sessions import SessionWork

Reply = TypeVar("Reply")

ALL_PROJECTS: Final = ""  # Takes the place of a project's name for work on the whole store; no project has this name.


class Work(StrEnum):
    """Kinds of background work. Long ones are claimed per project, the others for the whole store."""

    EMBED = "embed"
    LEARN = "learn"
    SCAN = "scan"
    EXPIRE = "expire"
    RETAIN = "retain"
    CLEAR = "clear"
    REANALYSE = "reanalyse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to do a kind of work in a project, or in all of them."""

    work: Work
    project: str  # A name, or ALL_PROJECTS.
    # Unique among all claims ever made. A write under the claim is refused once another claim has replaced it.
    fence: int
    holder: str = ""  # The lease of the service that took it; empty if there is only one service.


class ClaimLost(Unavailable):
    """A write was made under a claim that has run out: another service does that work, or may by now."""

    reason = "CLAIM_LOST"

    def __init__(self, claim: Claim) -> None:
        where = f"in project {claim.project}" if claim.project else "in all projects"
        super().__init__(f"this service has no claim to {claim.work} {where} any more; nothing was written")
        self.work = claim.work.value


class Claims(Protocol):
    """Claims, leases on background work that several services could do. Safe to call from several threads.

    Claims live as long as their service: one that dies, or does not renew its lease in time, loses them, and others can
    take over its work. Taking the same work twice gives a new claim and voids the old one, so within a service only one
    object takes each kind of work.
    """

    def take(self, work: Work, project: str) -> Claim | None:
        """A claim to the work in a project, or in ALL_PROJECTS; None while another service has it."""

    def release(self, claim: Claim) -> None:
        """Release the work for others. Does nothing if the claim was lost."""

    def holds(self, claim: Claim) -> bool:
        """Whether it is this service's still, as far as it knows; a write finds out for certain."""

    def follow(self, follower: Callable[[], None]) -> None:
        """Call the follower whenever another service has died and left work. The follower must return at once."""

    def close(self) -> None:
        """Leaves all that it has to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextKey:
    """Key by which an equal memory is found."""

    kind: MemoryKind  # Its kind.
    origin: Origin  # Its origin.
    identity: bytes  # `text.likeness.identity` of it, 16 bytes.
    # Hashes under which older versions stored it. A memory found by them must have that identity.
    earlier: tuple[bytes, ...] = ()
    create_time: float | None = None  # In Unix seconds, if only a memory of that time is equal; else None.


class UnitOfWork(Protocol):
    """The changes of one write request to one project: all of them happen, or none."""

    def get(self, memory_id: str) -> Memory | None:
        """The memory as this unit of work sees it, with its payload."""

    def find_by_text(self, key: TextKey) -> str | None:
        """Return the id of the memory that is equal by this key; the oldest of several."""

    def put(
        self,
        memory: Memory,
        key: TextKey | None,
        terms: Terms,
        embeddings: Sequence[Embedding],
        session_position: int | None = None,
        profile: Profile | None = None,
    ) -> None:
        """Store a memory with its payload; one with its id is replaced. With a key of None it is never found by text.

        A position of None appends it to its session, or keeps the place of the one that it replaces. Its profile stays,
        unless it was an ENTRY and no longer is; `profile` is for a new memory. Without embeddings it is found only by
        words, and `Store.pending` returns it until `embed` adds them.
        """

    def embed(self, memory_id: str, fingerprint: bytes, embeddings: Sequence[Embedding]) -> bool:
        """Add embeddings to a memory that was stored without them; nothing else changes.

        Returns False and does nothing if it is gone, has another fingerprint or waits for none.
        """

    def delete(self, memory_id: str, *, keeps_vectors: bool = True) -> bool:
        """Delete a memory and its profile. Returns False if it does not exist.

        With `keeps_vectors` its embeddings may be kept for an equal text (`Store.vectors`).
        """

    def info(self) -> ProjectInfo:
        """The project's information."""

    def set_info(self, info: ProjectInfo) -> None:
        """Replaces the project's information."""

    @property
    def learning(self) -> LearningUnit:
        """The project's learning."""

    @property
    def sessions(self) -> SessionWork:
        """The sessions of the project."""

    @property
    def review(self) -> ReviewWork:
        """The project's memories held for review."""

    def settings(self) -> ProjectSettings:
        """The project's own settings."""

    def set_settings(self, settings: ProjectSettings) -> None:
        """Replace the project's own settings."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookups:
    """Keys that a write is likely to look up; if a look-up takes a round trip, all are fetched at once."""

    ids: Sequence[str] = ()  # Ids of memories.
    texts: Sequence[TextKey] = ()  # Keys of texts.
    session_ids: Sequence[str] = ()  # Sessions of the memories that it may store.
    # Returns the terms of those memories; runs on the store's writer thread, if at all.
    terms: Callable[[], Sequence[Terms]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(Generic[Reply]):
    """One write."""

    request_id: str  # UUID; empty when repeats of the request are new writes.
    fingerprint: bytes  # Hash of the request; the same request_id with another one raises RequestIdReused.
    # A frozen dataclass or struct of plain values (str, int, float, bool, bytes, tuples and enums of them), so that the
    # reply can be kept for repeats: by the names of its fields, none of them `array_like`.
    reply_type: type[Reply]
    # Makes the changes on the store's writer thread. An exception aborts only this request. It runs again if a shared
    # commit failed, so it must change nothing but the unit of work.
    apply: Callable[[UnitOfWork], Reply]
    creates: bool = True  # Whether a missing project is created; otherwise ProjectNotFound is raised.
    is_bulk: bool = False  # Whether it is one of many, and lets interactive writes go first.
    claim: Claim | None = None  # Claim that guards it, if no caller asked for it.
    lookups: Lookups | None = None  # Likely look-ups. It may look up more, or less.


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
    """Reads of memories held for review. Each sees every write acknowledged before it began."""

    def get(self, project: str, ids: Sequence[str], /) -> list[Quarantined | None]:
        """Return the memories held under these ids, in order; None if there is none."""

    def page(self, project: str, after: str, limit: int, /) -> QuarantinedPage:
        """Return at most `limit` held memories after an id (empty: the beginning), by the bytes of their ids."""


class ReviewWork(Protocol):
    """Memories held for review within a write: changes, and reads that see them."""

    def get(self, memory_id: str, /) -> Quarantined | None:
        """Return the memory held under an id."""

    def put(self, held: Quarantined, /) -> None:
        """Hold a memory, replacing one held under its id. No read of memories finds it."""

    def delete(self, memory_id: str, /) -> bool:
        """Delete the memory held under an id. Returns False if there is none."""
