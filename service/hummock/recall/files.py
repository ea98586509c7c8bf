"""Adjusts fragments of code by their file: others of the file support them, and the best of each file comes first.

A question about code is answered by a place, and a place has more than one fragment. If several fragments of a file
resemble the question, the answer is more likely there. A file's head, which has no symbol, describes in prose what its
functions do: it resembles more questions than it answers. Source of the numbers: docs/decisions/046.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hummock.core.candidates import FoundBy
from hummock.core.recall import Plan
from hummock.recall.fuse import Fused
from hummock_kernels.files import FileShares, order_by_files

SUPPORT: Final = 0.05
"""Share of the relevance of each of the best other fragments of its file that a fragment gains."""

SUPPORTERS: Final = 3
"""Most other fragments that count: a long file has many that resemble anything a little."""

SECOND_LOSS: Final = 0.05
"""Loss of all but the best fragment of a file, of a relevance in [0, 1]: another file may have the answer."""

HEAD_FACTOR: Final = 0.85
"""Factor for a fragment without a symbol, if another fragment of its file has one."""

_SHARES: Final = FileShares(SUPPORT, SUPPORTERS, HEAD_FACTOR, SECOND_LOSS)
_BY_NAME: Final = np.uint8(FoundBy.DOMAIN | FoundBy.HOLDER)


def by_files(fused: Fused, plan: Plan) -> Fused:
    """Reorder the fragments of code by file; the best keeps its relevance, and other memories are unchanged.

    Results of a look-up by name, of a single path and of substrings keep their order.

    Args:
        fused: Best first.
        plan: What was asked for.
    """
    found = fused.candidates
    if not plan.neighbours or plan.substrings or (found.found_by & _BY_NAME).any():
        return fused
    order, relevance, score = order_by_files(
        fused.row, fused.relevance, fused.score, found.file, found.name_hash, _SHARES
    )
    if not len(order):
        return fused
    return fused.take(order, relevance=relevance, score=score)
