"""The last turns of a session, which whoever asks has before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.candidates import SessionWindow
from hummock.core.memory import Origin
from hummock.store.searching.filters import Flags, TermNumbers, holding
from hummock.store.views.view import ProjectView


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastTurns:
    """The memories of some turns.

    Attributes:
        ordinals: (n,) int64.
        turns_ago: (n,) int64, 1 for the last turn.
    """

    ordinals: NDArray[np.int64]
    turns_ago: NDArray[np.int64]

    def leave_out(self, allowed: Flags) -> int:
        """Clears the flags of these memories; how many of them were set."""
        passing = int(np.count_nonzero(allowed[self.ordinals]))
        allowed[self.ordinals] = 0
        return passing

    def turn_of(self, ordinal: int) -> int:
        """How many turns ago it was said; 0 of a memory that is none of these."""
        return int(self.turns_ago[self.ordinals == ordinal].sum())


_NONE = LastTurns(ordinals=np.empty(0, np.int64), turns_ago=np.empty(0, np.int64))


def last_turns(view: ProjectView, window: SessionWindow | None, numbers_of: TermNumbers) -> LastTurns:
    """What was said in a window. A turn begins with each memory of origin USER_INPUT; other origins are in none."""
    if window is None:
        return _NONE
    columns = view.columns
    said = np.flatnonzero(holding(view, [facets.session(window.session_id)], numbers_of) & columns.alive.values)
    origins = columns.origin.values[said]
    said = said[(origins == Origin.USER_INPUT) | (origins == Origin.AI_OUTPUT)]
    positions = columns.session_position.values[said]
    users = np.sort(positions[columns.origin.values[said] == Origin.USER_INPUT])
    turns_ago = 1 + len(users) - np.searchsorted(users, positions, side="right")
    is_inside = turns_ago <= window.turns
    return LastTurns(ordinals=said[is_inside], turns_ago=turns_ago[is_inside])
