"""What is learnt, changed and removed, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hummock.core.memory import Draft, Memory, Origin, Payload, QueryVector


class LearnStatus(IntEnum):
    """What became of a memory that was sent."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3
    DUPLICATE = 4
    QUOTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One memory to be stored, with its embedding if the caller has one."""

    draft: Draft
    vector: QueryVector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnCommand:
    """One Learn; `fingerprint` is a hash of the request without its request_id."""

    project: str
    request_id: str
    lessons: tuple[Lesson, ...]
    fingerprint: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnResult:
    """What became of one memory. `duplicate_of` is empty unless it is a duplicate; `id` is then the other's."""

    id: str
    status: LearnStatus
    duplicate_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What was stored: the project's seq after it, and one result a lesson, in order."""

    seq: int
    results: tuple[LearnResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """New values of a memory's fields; None keeps the old one.

    Attributes:
        content: Replaces the content of the payload, not its kind's own fields.
        event_time: Unix seconds; looked at only when `event_time_set`, so that None can clear it.
    """

    origin: Origin | None = None
    title: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    payload: Payload | None = None
    content: str | None = None
    session_id: str | None = None
    speaker: str | None = None
    event_time: float | None = None
    event_time_set: bool = False
    emotion_label: str | None = None
    trust: float | None = None
    supersedes: tuple[str, ...] | None = None
    source_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """A changed memory as it is now, and the project's seq after the change."""

    memory: Memory
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What was removed: the project's seq after it, how many, and the ids that did not exist."""

    seq: int
    deleted_count: int
    missing_ids: tuple[str, ...]
