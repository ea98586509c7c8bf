"""A part of a project's star map: memories as points of a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
