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
    """A memory with its payload and all else that the store has of it.

    Attributes:
        session_position: Its place among the memories of its session; -1 without one.
        embeddings: Of its chunks; empty where they were not asked for.
    """

    memory: Memory
    session_position: int
    embeddings: tuple[Embedding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportPage:
    """Some memories in the order of their writes.

    Attributes:
        removed_ids: Of memories before this page that are gone, or written anew behind it.
        next_after: Continues behind the page; None on the last one.
        seq: Writes that the page knows of.
        is_reset: Whether what was removed is no longer known.
    """

    memories: tuple[ExportedMemory, ...]
    removed_ids: tuple[str, ...]
    next_after: int | None
    seq: int
    is_reset: bool = False


class GivenChunk(Struct, frozen=True, kw_only=True, eq=False):
    """A chunk's vectors as they came: (n,) float32, and the bytes of int8 token vectors."""

    values: NDArray[np.float32]
    tokens: bytes


class GivenMemory(Struct, frozen=True, kw_only=True, eq=False):
    """A memory that is taken in.

    Attributes:
        draft: Has an id.
        update_time: Unix seconds; None when not known.
        session_position: None puts it behind the memories of its session.
        emb_space: Of the chunks.
        chunks: Empty when it must be embedded.
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
    """Result of some parts: the project's seq, counts, and the errors by place.

    All counts are of memories, but for `sessions`, `messages` and `events`, which count those that were not there, and
    `left_events`, which could not be taken in.
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
