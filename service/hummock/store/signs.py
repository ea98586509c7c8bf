"""The sign bits of a project's vector rows, for views that are large enough to need them.

A row's bits are of that row alone, so a view answers the same after any number of appends and rebuilds. After a restart
it does too, but where removed rows alone had made it large enough: then every row is scored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock_kernels.signbit import nearest_signs, sign_bits

_STEP = 0.67
"""Of the query's root mean square: the values for which one sign more or less counts 1, 2 and 3 lie so far apart."""

_HEAVIEST = 3


def nearest_rows(
    bits: NDArray[np.uint64],
    row_doc: NDArray[np.int32],
    allowed: NDArray[np.uint8],
    query: NDArray[np.float32],
    keep: int,
) -> NDArray[np.int64]:
    """At most `keep` rows of allowed memories, ascending, that are near the query as far as their signs tell.

    Args:
        bits: (rows, words) of `sign_bits`.
        row_doc: (rows,) the memory of each.
        allowed: (memories,) nonzero for those that may be found.
        query: (dim,) finite.
        keep: Upper bound on the result.
    """
    return nearest_signs(bits, row_doc, allowed, packed_query(query), keep)


def packed_query(query: NDArray[np.float32]) -> NDArray[np.uint64]:
    """(3, words) uint64: the query's signs and the two bits of the weight of each dim, 0 to 3."""
    spread = np.sqrt(np.mean(query * query)) * _STEP
    weight = np.minimum(np.rint(np.abs(query) / max(spread, np.finfo(np.float32).tiny)), _HEAVIEST).astype(np.uint16)
    # A bit of a weight is moved to where `sign_bits` looks for a sign.
    planes = np.stack([query.astype(np.float16).view(np.uint16), weight << 15, weight >> 1 << 15])
    return sign_bits(planes)
