"""What becomes of memories, told to those who watch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hummock.core.memory import Memory


class MemoryEventType(IntEnum):
    """What became of a memory."""

    CREATED = 1
    UPDATED = 2
    DELETED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvent:
    """What became of one memory in the write `seq`; `memory` is as it is now, None when it was removed."""

    type: MemoryEventType
    memory_id: str
    memory: Memory | None
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Events behind a position.

    Attributes:
        events: In the order of their writes, of each memory the last one.
        seq: All writes up to it are told of, and none behind it.
        is_newest: Whether there was no write behind seq.
        is_reset: Whether the position is out of reach: then nothing is told, and seq is the newest write.
    """

    events: tuple[MemoryEvent, ...]
    seq: int
    is_newest: bool = True
    is_reset: bool = False
