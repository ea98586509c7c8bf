"""What a fragment of code gains and loses by its file: others of it speak for it, and one of each comes first.

A question about code is answered by a place, and a place has more than one fragment. Where several of a file resemble
the question it is rather there than where one does. A file's head, which has no symbol, tells in prose what its
functions do: it resembles more questions than it answers. Where the numbers come from: docs/decisions/046.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.recall import Plan
from hummock.recall.fuse import Fused

SUPPORT: Final = 0.05
"""How much of the relevance of each of the best others of its file a fragment gains."""

SUPPORTERS: Final = 3
"""How many others count: a long file has many that resemble anything a little."""

SECOND_LOSS: Final = 0.05
"""What all but the best fragment of a file lose, of a relevance in [0, 1]: another file may have the answer."""

HEAD_FACTOR: Final = 0.85
"""Of what has no symbol where another fragment of its file has one."""

_BY_NAME = FoundBy.DOMAIN | FoundBy.HOLDER


def by_files(fused: Fused, plan: Plan) -> Fused:
    """A group with its fragments of code in another order; the best of them keeps its relevance, all else its own.

    What is looked up by name stays as it is, and so does the order of one path alone, or of substrings.

    Args:
        fused: Best first.
        plan: What was asked for.
    """
    found = fused.candidates
    rows = fused.row
    places = np.flatnonzero(found.file[rows])
    if not plan.neighbours or plan.substrings or len(places) < 2 or (found.found_by & _BY_NAME).any():
        return fused
    own = fused.relevance[places]
    gained = _gained(own, found, rows[places])
    best = gained.max()
    if best <= 0:
        return fused
    relevance = fused.relevance.copy()
    relevance[places] = gained * (own.max() / best)
    shown = fused.score * (relevance / np.maximum(fused.relevance, np.finfo(np.float32).tiny))
    order = np.argsort(-relevance, kind="stable")
    return replace(
        fused,
        row=rows[order],
        joined=fused.joined[order],
        similarity=fused.similarity[order],
        relevance=relevance[order],
        score=shown[order],
        log_decay=fused.log_decay[order],
    )


def _gained(own: NDArray[np.float32], found: Candidates, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """What the relevance of fragments becomes, (m,) not negative; they come best first."""
    file = found.file[rows]
    # From here on file by file, each best first.
    order = np.argsort(file, kind="stable")
    file, value, is_named = file[order], own[order], found.name_hash[rows[order]] != 0
    is_start = np.empty(len(file), np.bool_)
    is_start[0] = True
    np.not_equal(file[1:], file[:-1], out=is_start[1:])
    starts, of_file = np.flatnonzero(is_start), np.cumsum(is_start) - 1
    place = np.arange(len(file)) - starts[of_file]
    best = np.add.reduceat(np.where(place < SUPPORTERS, value, 0), starts)
    with_next = np.add.reduceat(np.where(place <= SUPPORTERS, value, 0), starts)
    others = np.where(place < SUPPORTERS, with_next[of_file] - value, best[of_file])
    is_head = ~is_named & np.logical_or.reduceat(is_named, starts)[of_file]
    gained = (value + SUPPORT * others) * np.where(is_head, HEAD_FACTOR, 1.0)
    is_second = gained < np.maximum.reduceat(gained, starts)[of_file]
    result = np.empty(len(own), np.float32)
    result[order] = np.maximum(gained - SECOND_LOSS * is_second, 0)
    return result
