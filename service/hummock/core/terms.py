"""The analysed terms of memories, as a store takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TermBatch:
    """The analysed terms of some memories.

    Attributes:
        indptr: (n + 1,) int64 from 0: memory i has the slice indptr[i]:indptr[i + 1] of the next two.
        key: (m,) uint64, not 0: what has one key is one term. A memory may have a term under several keys.
        counts: (m,) uint32, four saturating bytes, least significant first: how often it occurs in title, tags, body
            and learned keywords. A facet counts 0 everywhere.
        lengths: (n,) int64, occurrences of terms in all fields; facets do not count.
        spell: The terms at some places in `key`, in order.
    """

    indptr: NDArray[np.int64]
    key: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    lengths: NDArray[np.int64]
    spell: Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """The terms and facets of a memory, at its place in a batch."""

    batch: TermBatch
    place: int
