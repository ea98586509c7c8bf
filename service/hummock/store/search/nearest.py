"""Nearest-vector search: by a scan, or by sign bits first."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hummock.store.search.filters import Flags
from hummock.store.views.row_graph import HeldGraph
from hummock.store.views.view import ProjectView
from hummock_kernels.cosine import scan, score_rows
from hummock_kernels.signbit import take_lightest
from hummock_kernels.topk import top_k

Ordinals = NDArray[np.int64]
Vector = NDArray[np.float32]

_NO_ROWS: Ordinals = np.empty(0, np.int64)
_NO_SCORES: Vector = np.empty(0, np.float32)
PROVEN_K = 50  # Results at which a graph is proven.

_FEWEST_PASSING = 0.5  # Smallest share of memories that pass a filter: below it sign bits are as fast and find more.
_TAIL_ROWS = 400  # Rows of a tail that are scored exactly, at least.
_TAIL_PER_RESULT = 4
_TAIL_SHARE = 100


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
    """The best of a pool of rows, or None when the chunks of a few memories fill even the widest pool.

    The pool doubles until its second half holds none of the best and some more: how large it must be differs by the
    question more than by the size of the project.
    """
    if view.signs is None:
        return None
    limits = view.plans
    size = max(limits.pool_rows, limits.pool_per_result * k)
    most = max(limits.pool_growth * size, passing_rows // limits.pool_share)
    weights, left = view.signs.weighed(view.row_doc.values, allowed, query)
    rows, scores, found, bar = _NO_ROWS, _NO_SCORES, _NO_ROWS, np.inf
    is_enough = False
    while True:
        more = take_lightest(weights, left, size)
        of_more = score_rows(view.vectors.values, query, more)
        if is_enough and not (of_more >= bar).any():
            return found
        rows, scores = np.concatenate([rows, more]), np.concatenate([scores, of_more])
        found, bar, memories = _best(view, rows, scores, minimum, k)
        is_enough = memories >= k
        if len(more) < size or (is_enough and 2 * len(rows) > most):
            return found
        if 2 * len(rows) > limits.widening * most:
            return None
        size = len(rows)


def _passing_rows(view: ProjectView, allowed_count: int) -> int:
    """Estimated number of rows of these memories."""
    return view.row_doc.size * allowed_count // max(len(view.columns), 1)


def best_of_rows(view: ProjectView, rows: Ordinals, query: Vector, minimum: float, k: int) -> tuple[Ordinals, int]:
    """The k best memories by these rows, and the number of memories that the rows belong to."""
    found, _, memories = _best(view, rows, score_rows(view.vectors.values, query, rows), minimum, k)
    return found, memories


def _best(view: ProjectView, rows: Ordinals, scores: Vector, minimum: float, k: int) -> tuple[Ordinals, float, int]:
    """The k best memories by these rows and their scores, a score, and the number of the rows' memories.

    Rows that do not reach the score are far from the k best: it is that of a memory some ranks below, or the minimum.
    """
    if not len(rows):
        return _NO_ROWS, minimum, 0
    order = np.argsort(rows, kind="stable")
    owners = view.row_doc.values[rows[order]]
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    # Rows that are not finite are ignored, as in a scan.
    best = np.fmax.reduceat(scores[order], first)
    wanted = int(view.plans.pool_margin * k)
    chosen = top_k(best, (best >= minimum).view(np.uint8), wanted)
    bar = float(best[chosen[-1]]) if 0 < wanted <= len(chosen) else minimum
    return owners[first[chosen[: max(k, 0)]]].astype(np.int64), bar, len(first)


class ByGraph(NamedTuple):
    """Memories found by a graph, best first, and the share of the nearest 50 that it is proven to find."""

    ordinals: Ordinals
    recall: float


def by_graph(view: ProjectView, allowed: Flags, query: Vector, minimum: float, k: int) -> ByGraph | None:
    """The k memories with the best chunks as in `nearest`; None where sign bits or a scan must find them.

    That is where there is no graph for this view or such a question, where less than half of the memories pass, and
    where too few of what the graph finds pass.
    """
    if view.graph is None or k <= 0:
        return None
    passing = int(np.count_nonzero(allowed))
    share = passing / max(len(view.columns), 1)
    if share < _FEWEST_PASSING or plan_for(view, passing) is not Plan.SIGNS:
        return None
    held = view.graph.asked(view, query)
    if held is None or not held.graph.projection.fits(query):
        return None
    found = found_in(view, held, allowed, query, minimum, k, share)
    return None if found is None else ByGraph(found, held.recall)


def found_in(
    view: ProjectView, held: HeldGraph, allowed: Flags, query: Vector, minimum: float, k: int, share: float = 1.0
) -> Ordinals | None:
    """The k memories by this graph of the view, or None where too few pass; `share` of the memories are allowed."""
    width = int(held.width * max(1.0, k / PROVEN_K) / share)
    row_doc = view.row_doc.values
    picks = held.graph.nearest(query, width)
    picks = np.concatenate(
        [np.sort(picks[allowed[row_doc[picks]] != 0]), _tail(view, held.graph.size, allowed, query, k)]
    )
    found, memories = best_of_rows(view, picks, query, minimum, k)
    return found if memories >= k else None


def _tail(view: ProjectView, first: int, allowed: Flags, query: Vector, k: int) -> NDArray[np.int64]:
    """Rows behind those of the graph that are nearest by their signs, ascending."""
    behind = view.row_doc.size - first
    if not behind or view.signs is None:
        return np.empty(0, np.int64)
    keep = max(_TAIL_ROWS, _TAIL_PER_RESULT * k, behind // _TAIL_SHARE)
    return view.signs.nearest_behind(first, view.row_doc.values, allowed, query, keep)
