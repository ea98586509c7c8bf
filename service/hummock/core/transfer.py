"""Projects on their way out of a store, and into one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.core.errors import InvalidRequest
from hummock.core.learning import LoggedEvent
from hummock.core.memory import Draft, Memory
from hummock.core.project import ProjectInfo
from hummock.core.session import Session, SessionMessage
from hummock.core.settings import ProjectSettings


class ExportedMemory(Struct, frozen=True, kw_only=True, eq=False):
    """A memory with its payload and all other stored data; `embeddings` of its chunks are empty if not requested.

    `session_position` is its place among the memories of its session; -1 without one.
    """

    memory: Memory
    session_position: int
    embeddings: tuple[Embedding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportPage:
    """Some memories in write order.

    Attributes:
        removed_ids: Ids of memories before this page that were removed, or rewritten after it.
        next_after: Continues after the page; None on the last one.
        seq: Number of writes that the page includes.
        is_reset: Whether removals are no longer known.
    """

    memories: tuple[ExportedMemory, ...]
    removed_ids: tuple[str, ...]
    next_after: int | None
    seq: int
    is_reset: bool = False


class GivenChunk(Struct, frozen=True, kw_only=True, eq=False):
    """A chunk's imported vectors: (n,) float32, and the bytes of int8 token vectors."""

    values: NDArray[np.float32]
    tokens: bytes


class GivenMemory(Struct, frozen=True, kw_only=True, eq=False):
    """A memory to import; its draft has an id. An unknown update time (Unix seconds) is None.

    A `session_position` of None appends it to its session. Without chunks, of the space `emb_space`, it is embedded.
    """

    draft: Draft
    update_time: float | None = None
    session_position: int | None = None
    emb_space: str = ""
    chunks: tuple[GivenChunk, ...] = ()


class GivenRemoval(Struct, frozen=True, kw_only=True):
    """The id of a memory that is to be removed."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenProject:
    """Facts on the project itself."""

    info: ProjectInfo
    settings: ProjectSettings


class GivenMessage(Struct, frozen=True, kw_only=True):
    """A message of a session, which has come before."""

    session_id: str
    message: SessionMessage


class GivenEvent(Struct, frozen=True, kw_only=True):
    """An event of the learning log, and the time of the one before it in Unix seconds; None of the first one."""

    logged: LoggedEvent
    previous_time: float | None = None


Given = GivenMemory | GivenRemoval | GivenProject | Session | GivenMessage | GivenEvent
"""A part of a project that is taken in."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Imported:
    """Result of importing some parts: the project's seq, counts, and the errors by place.

    All counts are of memories, except `sessions`, `messages` and `events`, which count new ones, and `left_events`,
    which could not be imported.
    """

    seq: int
    created: int
    updated: int
    unchanged: int
    removed: int
    embedded: int
    sessions: int
    messages: int
    expired: int
    events: int
    left_events: int
    failures: tuple[tuple[int, InvalidRequest], ...]
