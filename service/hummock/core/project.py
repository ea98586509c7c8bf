"""Projects, the unit of isolation, and the service that keeps them, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from hummock.core.embedding import EmbeddingSpace
from hummock.core.learning import FeedbackCounts
from hummock.core.memory import MemoryKind, Origin

MAX_PROJECT_BYTES = 400
"""Longest name of a project, in bytes of UTF-8."""


class ProjectInfo(Struct, frozen=True, kw_only=True):
    """Facts on a project for a prompt; `path` is shown and never opened.

    Who said each is MANUAL or INDEXER, and None while nobody said anything, or of what was said before it was noted.
    """

    tech_stack: tuple[str, ...] = ()
    path: str = ""
    tech_stack_origin: Origin | None = None
    path_origin: Origin | None = None

    def said(
        self, origin: Origin, *, tech_stack: tuple[str, ...] | None = None, path: str | None = None
    ) -> ProjectInfo:
        """With what is not None, but for what the indexer says where somebody else has said something."""
        info = self
        if tech_stack is not None and _may_say(origin, self.tech_stack_origin, is_said=bool(self.tech_stack)):
            info = replace(info, tech_stack=tech_stack, tech_stack_origin=origin if tech_stack else None)
        if path is not None and _may_say(origin, self.path_origin, is_said=bool(self.path)):
            info = replace(info, path=path, path_origin=origin if path else None)
        return info


def _may_say(origin: Origin, earlier: Origin | None, *, is_said: bool) -> bool:
    return origin is not Origin.INDEXER or not is_said or earlier is Origin.INDEXER


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as it is.

    Attributes:
        create_time: Unix seconds.
        seq: Writes accepted.
        content_seq: Moves only when a recall could answer differently.
        emb_space: Id of the space of its vectors.
        kinds: Memories by kind, kinds without a memory left out.
        pending_count: Memories whose vectors are still to be made.
        feedback: What it has said so far; zeros where nobody looked.
    """

    name: str
    info: ProjectInfo
    create_time: float
    seq: int
    content_seq: int
    emb_space: str
    kinds: Mapping[MemoryKind, int]
    pending_count: int = 0
    feedback: FeedbackCounts = field(default_factory=FeedbackCounts)

    @property
    def memory_count(self) -> int:
        """Memories of all kinds."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedProject:
    """Contents of a project when it was deleted: a receipt, which is kept for repeats.

    `ids_digest` is that of all its memories and sessions, and empty where it had none.
    """

    memory_count: int
    session_count: int
    message_count: int
    event_count: int = 0
    held_count: int = 0
    ids_digest: str = ""


def ids_digest(ids: Iterable[bytes]) -> str:
    """SHA-256 over sorted ids, each behind its length (four bytes, big-endian); in hexadecimal, empty without any."""
    hashed, is_any = sha256(), False
    for raw in ids:
        hashed.update(len(raw).to_bytes(4, "big") + raw)
        is_any = True
    return hashed.hexdigest() if is_any else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """Size of a store. Bytes of the directory in use and allowed; bytes of the indexes in memory.

    `pending_count` of its memories wait for their vectors. `write_fault` says why writes are refused, and is empty
    while they are stored. `damaged_count` counts records that were read since it was opened and are not what was
    written. `clock_ahead_s` is by how much the clock is ahead of the time that removal goes by, 0 while it is believed.
    """

    directory: str
    used_bytes: int
    quota_bytes: int
    project_count: int
    loaded_project_count: int
    loaded_bytes: int
    pending_count: int = 0
    write_fault: str = ""
    damaged_count: int = 0
    clock_ahead_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerStatus:
    """Progress of learning keywords since the service began.

    Attributes:
        model: The language model's name; empty where there is none, and the counts of it are 0.
        requests: Sent to it, repeated ones included.
        replies: Of these, those that were answered with something usable.
        prompt_tokens: That it counted in questions, if it counts.
        completion_tokens: That it counted in answers.
        waiting_turns: Turns that are to be learnt from.
        dropped_turns: Turns that never were, because newer ones came first.
    """

    model: str = ""
    requests: int = 0
    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waiting_turns: int = 0
    dropped_turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingStatus:
    """Progress of embedding memories that were stored without vectors.

    Attributes:
        pending: Memories that wait for their vectors.
        rate: Memories that lately got theirs in a second, in all projects; 0 while none waits.
        failed: Of those that wait, how many the model failed on since the service began.
        embedded: Memories that the model has read since then, of those that waited.
        reused: Those whose vectors were there already, for an equal text.
    """

    pending: int
    rate: float
    failed: int = 0
    embedded: int = 0
    reused: int = 0

    def time_left_s(self, pending: int) -> float | None:
        """Seconds that so many will take; None where that is not known, and for none."""
        return pending / self.rate if pending and self.rate else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """Version, configuration and sizes of a service; `advice` names improvements, empty when there are none."""

    version: str
    uptime_s: float
    space: EmbeddingSpace
    advice: str
    store: StoreStatus
    learner: LearnerStatus
    embedding: EmbeddingStatus


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenNames:
    """Names in a project.

    Attributes:
        groups: Names of one thing each, two at least, that which it is called by before its others.
    """

    groups: tuple[tuple[str, ...], ...] = ()


NO_NAMES = GivenNames()
"""The names in a project that does not exist."""
