"""Nearest-vector search by a project's graph, if it has one that was proven for such questions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hummock.store.search.filters import Flags
from hummock.store.search.nearest import Ordinals, Plan, Vector, best_of_rows, plan_for
from hummock.store.views.graph_slot import HeldGraph
from hummock.store.views.view import ProjectView


class ByGraph(NamedTuple):
    """Memories found by a graph, best first, and the share of the nearest 50 that it is proven to find."""

    ordinals: Ordinals
    recall: float


PROVEN_K = 50  # Results at which a graph is proven.

_FEWEST_PASSING = 0.5  # Smallest share of memories that pass a filter: below it sign bits are as fast and find more.
_TAIL_ROWS = 400  # Rows of a tail that are scored exactly, at least.
_TAIL_PER_RESULT = 4
_TAIL_SHARE = 100


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
