"""Which memory stands before and behind another one in its session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock_kernels.turns import FREE, add_turns, neighbours

_FEWEST_SLOTS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnIndex:
    """A hash table of the turns of some columns; older columns share it with newer ones.

    Attributes:
        slots: A power of two of them, at most half of them taken.
        taken: (1,) int64, how many are.
    """

    slots: NDArray[np.int32]
    taken: NDArray[np.int64]

    @classmethod
    def of(cls, session: NDArray[np.uint64], session_position: NDArray[np.int32]) -> TurnIndex:
        """A table of all turns, with room for as many again."""
        turns = int(np.count_nonzero(session_position >= 0))
        slots = np.full(max(_FEWEST_SLOTS, 1 << (4 * turns).bit_length()), FREE, np.int32)
        return cls(slots=slots, taken=np.array([add_turns(slots, session, session_position, 0)], np.int64))

    def extended(self, session: NDArray[np.uint64], session_position: NDArray[np.int32], first: int) -> TurnIndex:
        """With the turns from ordinal `first` on; only the table of the newest columns is extended."""
        added = int(np.count_nonzero(session_position[first:] >= 0))
        if not added:
            return self
        if 2 * (int(self.taken[0]) + added) > len(self.slots):
            return TurnIndex.of(session, session_position)
        self.taken[0] += add_turns(self.slots, session, session_position, first)
        return self

    def neighbours(
        self,
        session: NDArray[np.uint64],
        session_position: NDArray[np.int32],
        alive: NDArray[np.uint8],
        ordinals: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """(n,) ordinals -> (n, 2), the turns before and after each; -1 where there is none, or it was removed."""
        return neighbours(self.slots, session, session_position, alive, ordinals)

    @property
    def has_any(self) -> bool:
        """Whether there is any turn at all."""
        return bool(self.taken[0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.slots.nbytes
