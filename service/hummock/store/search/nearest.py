"""Nearest-vector search: by a scan, or by sign bits first."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from hummock.store.search.filters import Flags
from hummock.store.views.view import ProjectView
from hummock_kernels.cosine import scan, score_rows
from hummock_kernels.topk import top_k

Ordinals = NDArray[np.int64]
Vector = NDArray[np.float32]


class Plan(Enum):
    """Methods of nearest-vector search."""

    SCAN = auto()
    SIGNS = auto()


def plan_for(view: ProjectView, allowed_count: int) -> Plan:
    """The plan for a filter passed by `allowed_count` memories."""
    limits = view.plans
    is_large = _passing_rows(view, allowed_count) > limits.exact_rows
    return Plan.SIGNS if view.signs is not None and is_large else Plan.SCAN


def nearest(view: ProjectView, allowed: Flags, query: Vector, minimum: float, k: int) -> Ordinals:
    """The k memories with the best chunks, best first, ties by the smaller ordinal.

    SCAN is exact. SIGNS may replace one result in a hundred by a farther one, which a minimum may then drop; without
    a minimum both plans return min(k, matches) memories.

    Args:
        view: The view to search.
        allowed: (memories,) nonzero for those that may be found.
        query: (dim,) finite unit vector.
        minimum: Smallest cosine; minus infinity keeps all.
        k: 0 or less gives an empty result.
    """
    found = None
    if view.signs is not None:
        allowed_count = int(np.count_nonzero(allowed))
        if plan_for(view, allowed_count) is Plan.SIGNS:
            found = _by_signs(view, allowed, _passing_rows(view, allowed_count), query, minimum, k)
    return scan(view.chunks, allowed, query, minimum, k)[0] if found is None else found


def _by_signs(
    view: ProjectView, allowed: Flags, passing_rows: int, query: Vector, minimum: float, k: int
) -> Ordinals | None:
    """The best of a pool of rows, or None when the chunks of a few memories fill even the wider pool."""
    if view.signs is None:
        return None
    limits = view.plans
    pool = max(limits.pool_rows, limits.pool_per_result * k, passing_rows // limits.pool_share)
    for keep in (pool, limits.widening * pool):
        picks = view.signs.nearest(view.row_doc.values, allowed, query, keep)
        found, memories = _best(view, picks, query, minimum, k)
        if memories >= k or len(picks) < keep:
            return found
    return None


def _passing_rows(view: ProjectView, allowed_count: int) -> int:
    """Estimated number of rows of these memories."""
    return view.row_doc.size * allowed_count // max(len(view.columns), 1)


def _best(view: ProjectView, picks: NDArray[np.int64], query: Vector, minimum: float, k: int) -> tuple[Ordinals, int]:
    """The k best memories by these ascending rows, and the number of memories that the rows belong to."""
    if not len(picks):
        return np.empty(0, np.int64), 0
    owners = view.row_doc.values[picks]
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    # Rows that are not finite are ignored, as in a scan.
    best = np.fmax.reduceat(score_rows(view.vectors.values, query, picks), first)
    chosen = top_k(best, (best >= minimum).view(np.uint8), k)
    return owners[first[chosen]].astype(np.int64), len(first)
