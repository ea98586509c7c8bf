"""Look-up of the turns next to a turn of a session.

Turns are in an open-addressed hash table of places, keyed by session and position. Readers check each place against
their own columns, so a table may contain turns unknown to them: added or removed since.
"""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import (
    I32_1D,
    I64,
    I64_1D,
    OUT_I32_1D,
    OUT_I64_2D,
    U8_1D,
    U64_1D,
    Docs,
    Flags,
    Indices,
    Longs,
)

_SPREAD = 0x9E3779

FREE = -1
"""Value of an empty slot of the table."""


@helper()
def _slot(session: np.uint64, position: int, slot_count: int) -> int:
    """First slot to search for a turn; `slot_count` is a power of two."""
    # Sessions are hashes already; an odd factor maps consecutive positions to different slots.
    return (int(session & np.uint64(0x7FFFFFFF)) + int(position) * _SPREAD) & (slot_count - 1)


@kernel(I64(OUT_I32_1D, U64_1D, I32_1D, I64))
def add_turns(slots: Docs, session: Longs, position: Docs, first: int) -> int:
    """Put the turns from place `first` on into the table; returns the number of slots newly occupied.

    Args:
        slots: Places, or FREE; length a power of two, not all occupied.
        session: (n,) the session of each place; 0 without one.
        position: (n,) its position in the session; below 0 without one.
        first: Places before it are in the table.
    """
    taken = 0
    for place in range(first, session.shape[0]):
        if session[place] == 0 or position[place] < 0:
            continue
        slot = _slot(session[place], position[place], slots.shape[0])
        # A later place than this one is left over from an aborted attempt.
        while slots[slot] != FREE and slots[slot] < place:
            slot = (slot + 1) & (slots.shape[0] - 1)
        taken += slots[slot] == FREE
        slots[slot] = place
    return taken


@helper()
def _find(slots: Docs, session: Longs, position: Docs, alive: Flags, wanted: np.uint64, at: int) -> int:
    slot = _slot(wanted, at, slots.shape[0])
    while slots[slot] != FREE:
        place = slots[slot]
        if place < session.shape[0] and alive[place] and session[place] == wanted and position[place] == at:
            return int(place)
        slot = (slot + 1) & (slots.shape[0] - 1)
    return -1


@helper()
def turns_beside(slots: Docs, session: Longs, position: Docs, alive: Flags, places: Indices) -> Indices:
    """Find the turns before and after each of these; see `neighbours`."""
    out = np.full((places.shape[0], 2), -1, np.int64)
    for i in range(places.shape[0]):
        place = places[i]
        if session[place] == 0 or position[place] < 0:
            continue
        if position[place] > 0:
            out[i, 0] = _find(slots, session, position, alive, session[place], position[place] - 1)
        out[i, 1] = _find(slots, session, position, alive, session[place], position[place] + 1)
    return out


@kernel(OUT_I64_2D(I32_1D, U64_1D, I32_1D, U8_1D, I64_1D))
def neighbours(slots: Docs, session: Longs, position: Docs, alive: Flags, places: Indices) -> Indices:
    """Places of the turns before and after each of these, (m,) -> (m, 2) int64, -1 where there is none.

    Args:
        slots: Filled by `add_turns`.
        session: (n,) the session of each place; 0 without one.
        position: (n,) its position in the session; below 0 without one.
        alive: (n,) 0 for turns that are removed.
        places: Below n.
    """
    return turns_beside(slots, session, position, alive, places)
