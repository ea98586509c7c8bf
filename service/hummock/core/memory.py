"""Memories, their changes and events as values. Enum numbers are those of the contract and of the store.

`array_like` structs are stored as arrays of their fields: a new field goes to the end and has a default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest


class SecretPolicy(IntEnum):
    """OFF searches none, WARN reports findings and stores texts unchanged, REDACT replaces findings."""

    OFF = 1
    WARN = 2
    REDACT = 3


class SecretsFound(Struct, frozen=True, kw_only=True):
    """Number of secrets of one kind, at least 1, and whether they were replaced; never their text."""

    kind: str
    count: int
    redacted: bool


MAX_ID_BYTES = 256
_MOST_BYTES = 4
"""Most bytes of a character in UTF-8."""


Metadata = tuple[tuple[str, str], ...]
"""The caller's own facts: pairs of name and value, sorted by name, each name once."""


class MemoryKind(IntEnum):
    """Kind of a memory."""

    LEARNING_RECORD = 1
    DOMAIN_KNOWLEDGE = 2
    CODE_FRAGMENT = 3
    NOTE = 4
    ENTRY = 5


class Origin(IntEnum):
    """Source of a memory."""

    MANUAL = 1
    SUMMARY = 2
    USER_INPUT = 3
    AI_OUTPUT = 4
    INDEXER = 5


class MemoryIndex(Struct, array_like=True, frozen=True, kw_only=True):
    """The tip of a memory. Tags have no leading "#" and no duplicates."""

    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()


class LearningRecord(Struct, tag=1, array_like=True, frozen=True, kw_only=True):
    """A question, its answer and the files that the answer rests on."""

    question: str
    answer: str
    source_files: tuple[str, ...] = ()


class DomainKnowledge(Struct, tag=2, array_like=True, frozen=True, kw_only=True):
    """Knowledge of a domain; `key_files` are paths or ends of paths."""

    domain: str
    aliases: tuple[str, ...] = ()
    summary: str
    key_files: tuple[str, ...] = ()


class CodeFragment(Struct, tag=3, array_like=True, frozen=True, kw_only=True):
    """Location of a piece of code. Lines count from 1, `end_line` inclusive; 0 means not known."""

    path: str
    start_line: int = 0
    end_line: int = 0
    language: str = ""
    symbol: str = ""

    def __post_init__(self) -> None:
        if 0 < self.end_line < self.start_line:
            raise InvalidRequest("code_fragment.end_line", f"is {self.end_line}, before start_line {self.start_line}")


Detail = LearningRecord | DomainKnowledge | CodeFragment | None

_DETAIL_TYPES: dict[MemoryKind, tuple[str, type | None]] = {
    MemoryKind.LEARNING_RECORD: ("learning_record", LearningRecord),
    MemoryKind.DOMAIN_KNOWLEDGE: ("domain_knowledge", DomainKnowledge),
    MemoryKind.CODE_FRAGMENT: ("code_fragment", CodeFragment),
    MemoryKind.NOTE: ("", None),
    MemoryKind.ENTRY: ("", None),
}
_TEXTS_REQUIRED: dict[MemoryKind, tuple[str, ...]] = {
    MemoryKind.LEARNING_RECORD: ("question", "answer"),
    MemoryKind.DOMAIN_KNOWLEDGE: ("domain", "summary"),
    MemoryKind.CODE_FRAGMENT: ("path",),
}
_CONTENT_REQUIRED = frozenset({MemoryKind.CODE_FRAGMENT, MemoryKind.NOTE, MemoryKind.ENTRY})


class Payload(Struct, array_like=True, frozen=True, kw_only=True):
    """The body of a memory; `raw` is stored and never searched."""

    content: str = ""
    raw: str = ""
    detail: Detail = None


class Draft(Struct, frozen=True, kw_only=True):
    """A memory that is to be stored. Times are Unix seconds; None means not known (`create_time`: now).

    `id` is empty when the server shall make one. `writer` is the name of the token that it is sent with, and empty
    without one; `files` are paths below the repository's root; `time_zone` is that of its words for days, empty where
    the project's counts. Raises InvalidRequest when payload and kind do not fit.
    """

    id: str = ""
    kind: MemoryKind
    origin: Origin = Origin.MANUAL
    index: MemoryIndex = MemoryIndex()
    payload: Payload
    session_id: str = ""
    speaker: str = ""
    event_time: float | None = None
    emotion_label: str = ""
    trust: float = 1.0
    supersedes: tuple[str, ...] = ()
    create_time: float | None = None
    source_hash: str = ""
    metadata: Metadata = ()
    expire_time: float | None = None
    writer: str = ""
    pinned: bool = False
    distinct_from: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    time_zone: str = ""

    def __post_init__(self) -> None:
        if len(self.id) * _MOST_BYTES > MAX_ID_BYTES and len(self.id.encode()) > MAX_ID_BYTES:
            raise InvalidRequest("id", f"has {len(self.id.encode())} bytes; the limit is {MAX_ID_BYTES}")
        name, detail_type = _DETAIL_TYPES[self.kind]
        detail = self.payload.detail
        if detail_type is None:
            if detail is not None:
                raise InvalidRequest("detail", f"a {self.kind.name} has content only")
        elif not isinstance(detail, detail_type):
            raise InvalidRequest(name, f"is required for {self.kind.name}")
        if self.kind in _CONTENT_REQUIRED:
            self._require("content", self.payload.content)
        for part in _TEXTS_REQUIRED.get(self.kind, ()):
            self._require(f"{name}.{part}", getattr(detail, part))

    def _require(self, part: str, text: str) -> None:
        if not text or text.isspace():
            raise InvalidRequest(part, f"is required for {self.kind.name}, and not only white space")


class Memory(Struct, array_like=True, frozen=True, kw_only=True, dict=True, weakref=True):
    """A stored memory. Times are Unix seconds. `payload` is None in the index view.

    What is made of one and asked for again may be kept in its `__dict__`, which is neither stored nor compared.

    Attributes:
        content_hash: 16 bytes; equal for equal normalised texts.
        fingerprint: 16 bytes; equal if the drafts were equal in every field except the vector.
        token_count: Estimated tokens of the memory rendered in full.
        chunk_count: Number of its vectors.
        writer: Name of the token with which it was written; empty without one, or if it was not recorded.
        pinned: Whether it is in every prompt of its scope.
        distinct_from: Ids of older memories that it does not replace, as a person has decided.
        files: Paths of files that were changed when it was said, below the repository's root.
        time_zone: Time zone of its words for days: its own, or the project's when its text was stored; empty means UTC.
    """

    id: str
    kind: MemoryKind
    origin: Origin
    index: MemoryIndex
    session_id: str
    speaker: str
    event_time: float | None
    emotion_label: str
    trust: float
    supersedes: tuple[str, ...]
    source_hash: str
    create_time: float
    update_time: float
    content_hash: bytes
    fingerprint: bytes
    token_count: int
    chunk_count: int
    payload: Payload | None
    metadata: Metadata = ()
    expire_time: float | None = None
    writer: str = ""
    pinned: bool = False
    distinct_from: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    time_zone: str = ""

    def is_over(self, now: float) -> bool:
        """Whether it has expired, at `now` in Unix seconds."""
        return self.expire_time is not None and self.expire_time <= now


class Filter(Struct, frozen=True, kw_only=True):
    """Condition on memories; conditions of different fields must all hold, empty means no condition.

    `kinds`, `origins`, `session_ids`, `paths`, `speakers` and `writers` require any of their values, `tags` and
    `metadata` all. A path matches in full or as a suffix ("RepaymentService.java"); one that ends with "/" is a folder,
    and matches all below it. Times are Unix seconds, `created_before` and `event_before` exclusive; event times are
    those of `told_days.told_time`, and a memory without one passes neither. `pinned` lets only pinned ones pass.
    """

    kinds: frozenset[MemoryKind] = frozenset()
    origins: frozenset[Origin] = frozenset()
    tags: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    created_after: float | None = None
    created_before: float | None = None
    excluded_ids: tuple[str, ...] = ()
    event_after: float | None = None
    event_before: float | None = None
    metadata: Metadata = ()
    writers: tuple[str, ...] = ()
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryVector:
    """A vector of a request: (dim,) float32, finite, length 1, and the space that it claims.

    Equal if both are, bit by bit.
    """

    values: NDArray[np.float32]
    emb_space: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryVector) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[str, bytes]:
        return self.emb_space, self.values.tobytes()


class TermBatch(Struct, frozen=True, kw_only=True, eq=False):
    """The analysed terms of some memories.

    Attributes:
        indptr: (n + 1,) int64 from 0: memory i has the slice indptr[i]:indptr[i + 1] of the next two.
        key: (m,) uint64, not 0; equal keys are one term. A memory may have a term under several keys.
        counts: (m,) uint32, four saturating bytes, least significant first: occurrences in title, tags, body and
            learned keywords. A facet counts 0 everywhere.
        lengths: (n,) int64, occurrences of terms in all fields; facets do not count.
        spell: Returns the terms at some places in `key`, in order.
    """

    indptr: NDArray[np.int64]
    key: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    lengths: NDArray[np.int64]
    spell: Callable[[Sequence[int]], list[str]]


class Terms(Struct, frozen=True, kw_only=True, eq=False):
    """The terms and facets of a memory, at its place in a batch."""

    batch: TermBatch
    place: int


class LearnStatus(IntEnum):
    """Status of a memory that was sent."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3
    DUPLICATE = 4
    QUOTED = 5
    HELD = 6
    SMALL_TALK = 7


class Lesson(Struct, frozen=True, kw_only=True):
    """One memory to be stored, with its embedding if the caller has one."""

    draft: Draft
    vector: QueryVector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCommand:
    """A request that writes to one project.

    Attributes:
        request_id: UUID; empty when repeats of the request are new writes.
        fingerprint: Hash of the request without its request_id.
    """

    project: str
    request_id: str = ""
    fingerprint: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnCommand(WriteCommand):
    """One Learn.

    Attributes:
        is_deferred: Whether memories without a vector are embedded later.
        is_bulk: Whether it is one of many, and lets interactive work go first.
        deadline: How long the caller waits.
    """

    lessons: tuple[Lesson, ...]
    is_deferred: bool = False
    is_bulk: bool = False
    deadline: Deadline = NO_DEADLINE


class LearnResult(Struct, frozen=True, kw_only=True):
    """Result for one memory. `duplicate_of` is empty unless it is a duplicate; `id` is then the other's.

    `secrets` are those found in the text as sent, `held_for` the families of instructions for which it is held, if any.
    `pin_ignored` says that it was sent as pinned and is not, since it is unverified.
    """

    id: str
    status: LearnStatus
    duplicate_of: str = ""
    secrets: tuple[SecretsFound, ...] = ()
    held_for: tuple[str, ...] = ()
    pin_ignored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Result of a learn: the project's seq after it, one result a lesson in order, how many wait for their vectors."""

    seq: int
    results: tuple[LearnResult, ...]
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """New values of a memory's fields; None keeps the old one.

    Attributes:
        detail: The kind's own fields; used only with `detail_set`, so that None can clear them.
        event_time: Unix seconds; used only with `event_time_set`, so that None can clear it.
        expire_time: Likewise, when `expire_time_set`.
        writer: Name of the caller's token, as in `Draft`.
        is_unproven: Whether the caller lacks the index scope, so that INDEXER as origin is not trusted.
        lacks_admin: Whether the caller lacks the verb admin, so that it may not pin unverified memories.
    """

    origin: Origin | None = None
    title: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    content: str | None = None
    raw: str | None = None
    detail: Detail = None
    detail_set: bool = False
    session_id: str | None = None
    speaker: str | None = None
    event_time: float | None = None
    event_time_set: bool = False
    emotion_label: str | None = None
    trust: float | None = None
    supersedes: tuple[str, ...] | None = None
    source_hash: str | None = None
    metadata: Metadata | None = None
    files: tuple[str, ...] | None = None
    time_zone: str | None = None
    expire_time: float | None = None
    expire_time_set: bool = False
    pinned: bool | None = None
    writer: str = ""
    is_unproven: bool = False
    lacks_admin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """A changed memory as it is now, and the project's seq after the change."""

    memory: Memory
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Result of a removal: the project's seq after it, how many, ids that did not exist, and how many still pass."""

    seq: int
    deleted_count: int
    missing_ids: tuple[str, ...] = ()
    remaining_count: int = 0


class MemoryEventType(IntEnum):
    """Kind of an event of a memory."""

    CREATED = 1
    UPDATED = 2
    DELETED = 3


class MemoryEvent(Struct, frozen=True, kw_only=True):
    """Event of one memory in the write `seq`; `memory` is its current state, None if it was removed."""

    type: MemoryEventType
    memory_id: str
    memory: Memory | None
    seq: int


class EventPage(Struct, frozen=True, kw_only=True):
    """Events after a position.

    Attributes:
        events: In write order, the last one of each memory.
        seq: The page covers all writes up to it and none after it.
        is_newest: Whether there was no write after seq.
        is_reset: Whether the position is too old or unknown; then there are no events, and seq is the newest write.
    """

    events: tuple[MemoryEvent, ...]
    seq: int
    is_newest: bool = True
    is_reset: bool = False
