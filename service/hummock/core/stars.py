"""A part of a project's star map: memories as points of a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stars:
    """Memories in the order of their writes, column by column.

    Attributes:
        ids: Of the memories.
        places: (n, 2) float32, x and y, at most 1 from the middle; 1.1 to 1.2 from it of those that have no place yet.
        is_placed: (n,) bool, whether a vector says where the memory stands.
        kinds: (n,) uint8.
        origins: (n,) uint8.
        update_times: (n,) float64 Unix seconds.
        sessions: (n,) int32, where each one's session stands in `session_ids`; -1 of one without.
        session_ids: Each once.
        layout_id: The same where the same memory has the same place; empty where no memory has a vector.
        next_after: Continues behind these, None on the last part.
    """

    ids: tuple[str, ...]
    places: NDArray[np.float32]
    is_placed: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    origins: NDArray[np.uint8]
    update_times: NDArray[np.float64]
    sessions: NDArray[np.int32]
    session_ids: tuple[str, ...] = ()
    layout_id: str = ""
    next_after: int | None = None

    @classmethod
    def none(cls) -> Stars:
        """An empty map, for a project that does not exist."""
        return cls(
            ids=(),
            places=np.empty((0, 2), np.float32),
            is_placed=np.empty(0, np.bool_),
            kinds=np.empty(0, np.uint8),
            origins=np.empty(0, np.uint8),
            update_times=np.empty(0, np.float64),
            sessions=np.empty(0, np.int32),
        )
