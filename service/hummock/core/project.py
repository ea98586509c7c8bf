"""Projects, the unit of isolation, and the service that keeps them, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
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

    The origin of each is MANUAL or INDEXER; None if it is unset, or was set before origins were recorded.
    """

    tech_stack: tuple[str, ...] = ()
    path: str = ""
    tech_stack_origin: Origin | None = None
    path_origin: Origin | None = None

    def said(
        self, origin: Origin, *, tech_stack: tuple[str, ...] | None = None, path: str | None = None
    ) -> ProjectInfo:
        """Set the facts that are not None; the indexer does not replace facts of other origins."""
        info = self
        if tech_stack is not None and _may_say(origin, self.tech_stack_origin, is_said=bool(self.tech_stack)):
            info = replace(info, tech_stack=tech_stack, tech_stack_origin=origin if tech_stack else None)
        if path is not None and _may_say(origin, self.path_origin, is_said=bool(self.path)):
            info = replace(info, path=path, path_origin=origin if path else None)
        return info


def _may_say(origin: Origin, earlier: Origin | None, *, is_said: bool) -> bool:
    return origin is not Origin.INDEXER or not is_said or earlier is Origin.INDEXER


class GraphState(IntEnum):
    """What became of the graph by which a project is searched by vector."""

    NONE = 1
    BUILDING = 2
    KEPT = 3
    DROPPED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """What became of a project's graph; `reason` is for people, empty where it is proven.

    Attributes:
        rows: Vectors of the graph that was built last.
        recall: Share of the nearest 50 memories that it finds, in [0, 1].
        time_share: Its time as a share of that of sign bits.
    """

    state: GraphState = GraphState.NONE
    reason: str = ""
    rows: int = 0
    recall: float = 0.0
    time_share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The current state of a project; its create time is in Unix seconds.

    Attributes:
        seq: Writes accepted.
        content_seq: Changes only when a recall could answer differently.
        emb_space: Id of the space of its vectors.
        kinds: Number of memories by kind, without empty kinds.
        pending_count: Memories that wait for vectors.
        feedback: Feedback so far; zeros if it was not read.
        graph: Report on its graph; None if it was not read, or there is no place for one.
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
    graph: GraphReport | None = None

    @property
    def memory_count(self) -> int:
        """Memories of all kinds."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedProject:
    """Receipt of a deleted project's contents, stored to answer repeated requests.

    `ids_digest` covers all its memories and sessions; empty if it had none.
    """

    memory_count: int
    session_count: int
    message_count: int
    event_count: int = 0
    held_count: int = 0
    ids_digest: str = ""


def ids_digest(ids: Iterable[bytes]) -> str:
    """Hash sorted ids (SHA-256 in hexadecimal), each after its length in four bytes, big-endian; empty without any."""
    hashed, is_any = sha256(), False
    for raw in ids:
        hashed.update(len(raw).to_bytes(4, "big") + raw)
        is_any = True
    return hashed.hexdigest() if is_any else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """Size of a store. Bytes of the directory in use and allowed; bytes of the indexes in memory.

    `pending_count` memories wait for vectors. `write_fault` is the reason why writes are refused, empty while they are
    accepted. `damaged_count` counts damaged records read since it was opened. `clock_ahead_s` is the lead of the clock
    over the time used for removal, 0 while the clock is trusted.
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

    `model` is the language model's name, empty without one; the counts up to the tokens are as in `ports.LlmUsage`.
    Turns that wait are learnt from; dropped ones were replaced by newer ones before that.
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
    """Progress of embedding memories that were stored without vectors; `pending` wait for them now.

    `rate` are memories embedded per second lately, in all projects; 0 while none waits. Since the service began the
    model has `failed` on some, `embedded` others, and others got the stored vectors of an equal text (`reused`).
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
    """Names in a project: groups of at least two names of one thing each, its main name first."""

    groups: tuple[tuple[str, ...], ...] = ()


NO_NAMES = GivenNames()
"""The names in a project that does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stars:
    """Memories in the order of their writes, a value of each in every column but the last two.

    Attributes:
        x: To the right of the middle. Placed memories are at most 1 from the middle, others 1.1 to 1.2.
        y: Above the middle.
        is_placed: Whether the memory's vector decides the place.
        update_times: Unix seconds.
        sessions: Session ids; empty for a memory without one.
        layout_id: Places compare where it is equal; empty where no memory has a vector.
        next_after: Position of the next part, None on the last one.
    """

    ids: Sequence[str] = ()
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    is_placed: Sequence[bool] = ()
    kinds: Sequence[int] = ()
    origins: Sequence[int] = ()
    update_times: Sequence[int] = ()
    sessions: Sequence[str] = ()
    layout_id: str = ""
    next_after: int | None = None
