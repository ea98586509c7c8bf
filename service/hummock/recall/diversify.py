"""Hits that fit the query and differ from each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.recall.fuse import Fused
from hummock_kernels.mmr import mmr


def diversify(fused: Fused, relevance_weight: float, near_twin_bar: float, keep: int) -> NDArray[np.int64]:
    """Rows of `fused` in the order picked, at most `keep`.

    Near-twins of a picked one come last, then the others by maximal marginal relevance (S2-05, 1.1-7).

    Args:
        fused: Best first.
        relevance_weight: In [0, 1]; 1 ignores difference.
        near_twin_bar: Cosine from which two are near-twins; above 1 there are none.
        keep: Upper bound on the result.
    """
    vectors = np.ascontiguousarray(fused.candidates.vector, dtype=np.float32)
    relevance = np.ascontiguousarray(fused.relevance, dtype=np.float32)
    return mmr(vectors, relevance, relevance_weight, near_twin_bar, keep)


def near_twins(vectors: NDArray[np.float32], near_twin_bar: float) -> NDArray[np.bool_]:
    """Which of these says nearly the same as one before it: (n, dim) unit or zero vectors -> (n,)."""
    close = np.tril(vectors @ vectors.T >= near_twin_bar, k=-1)
    return np.asarray(close.any(axis=1), dtype=np.bool_)
