"""Projects: the unit of isolation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hummock.core.memory import MemoryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInfo:
    """What a prompt says of a project; `path` is shown and never opened."""

    tech_stack: tuple[str, ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as it is.

    Attributes:
        create_time: Unix seconds.
        seq: Writes accepted.
        content_seq: Moves only when a recall could answer differently.
        emb_space: Id of the space of its vectors.
        kinds: Memories by kind, kinds without a memory left out.
    """

    name: str
    info: ProjectInfo
    create_time: float
    seq: int
    content_seq: int
    emb_space: str
    kinds: Mapping[MemoryKind, int]

    @property
    def memory_count(self) -> int:
        """Memories of all kinds."""
        return sum(self.kinds.values())
