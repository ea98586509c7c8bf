"""Late interaction: how well a text's token vectors answer each token of a query."""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import I8_2D, I64_1D, OUT_F32_1D, Bytes, Indices, Shorts, Vector

# Token vectors are unit vectors times 127.
_SCALE = np.float32(1 / 127**2)


@helper()
def _dot(query: Shorts, q: int, tokens: Bytes, t: int) -> np.int32:
    # Casts after each step: Numba widens integer arithmetic to 64 bits, which halves the lanes. At 32 bits, with one
    # side already 16 wide, the loop becomes multiply-and-add of pairs (vpmaddwd).
    total = np.int32(0)
    for column in range(tokens.shape[1]):
        total = np.int32(total + np.int32(np.int32(query[q, column]) * np.int32(tokens[t, column])))
    return total


@helper()
def _best(query: Shorts, q: int, tokens: Bytes, start: int, end: int) -> np.int32:
    best = _dot(query, q, tokens, start)
    for t in range(start + 1, end):
        best = max(best, _dot(query, q, tokens, t))
    return best


@kernel(OUT_F32_1D(I8_2D, I8_2D, I64_1D))
def max_sims(query: Bytes, tokens: Bytes, start: Indices) -> Vector:
    """Mean, over a query's tokens, of the best cosine with any token of a candidate.

    (q, dim), (t, dim) and (n + 1,) -> (n,) float32 in [-1, 1], but for rounding. Candidate i has the tokens from
    start[i] to start[i + 1]; one without any gets NaN, and so do all when the query has none.

    Args:
        query: Unit vectors times 127, or zeros.
        tokens: The same, of all candidates.
        start: Ascending, from 0 to t.

    Source: Khattab & Zaharia, SIGIR 2020.
    """
    n = start.shape[0] - 1
    sims = np.full(n, np.nan, np.float32)
    wide = query.astype(np.int16)
    for i in range(n):
        if start[i] == start[i + 1] or query.shape[0] == 0:
            continue
        # Whole numbers until the end: the sum is exact and does not depend on its order.
        total = np.int64(0)
        for q in range(query.shape[0]):
            total += _best(wide, q, tokens, start[i], start[i + 1])
        sims[i] = np.float32(total) * _SCALE / np.float32(query.shape[0])
    return sims
