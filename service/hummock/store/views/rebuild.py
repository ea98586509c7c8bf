"""Views made anew beside those who read and write: all memories in the inverted index, the removed ones gone.

What is made answers the same, to the bit. Where few memories are removed they keep their places, and the new view
shares all arrays with the old one but its index and its sign bits; where many are, all of it is copied without them.
"""

from __future__ import annotations

from dataclasses import replace

import lmdb
import numpy as np

from hummock.store.environment import Environment
from hummock.store.limits import StoreLimits
from hummock.store.views.signs import SignBits
from hummock.store.views.view import ProjectView, catch_up


def is_rebuild_due(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether too much of the view is removed, or outside the inverted index, or its sign bits are missing."""
    return has_many_dead(view, limits) or view.postings.delta > limits.delta_docs or _lacks_signs(view)


def has_many_dead(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether so much of the view is removed that it is better copied without."""
    dead = len(view.columns) - view.columns.live
    return dead >= limits.dead_docs and dead > limits.dead_share * len(view.columns)


def rebuilt(view: ProjectView, limits: StoreLimits) -> ProjectView:
    """The same memories, indexed; of the same line as the view only when all of them have kept their places."""
    return _compacted(view) if has_many_dead(view, limits) else _indexed(view)


def caught_up(
    made: ProjectView,
    newest: ProjectView,
    environment: Environment,
    txn: lmdb.Transaction[bytes],
    limits: StoreLimits,
) -> ProjectView:
    """What was rebuilt, after all writes that the transaction sees.

    Args:
        made: By `rebuilt`.
        newest: What readers have, of the line that `made` was made of.
        environment: Of the store.
        txn: Sees every write that `newest` knows of.
        limits: Of the store.
    """
    if made.line is newest.line:
        return _joined(made, newest)
    return catch_up(made, environment, txn, limits)


def _indexed(view: ProjectView) -> ProjectView:
    return replace(
        view,
        postings=view.postings.inverted(view.columns.alive.values, view.columns.length.values, renumbered=False),
        signs=SignBits.of(view.vectors.values) if _lacks_signs(view) else view.signs,
    )


def _joined(made: ProjectView, newest: ProjectView) -> ProjectView:
    """The newest view with the index of an older one of its line."""
    signs = newest.signs
    if signs is None and made.signs is not None:
        signs = made.signs.extended(newest.vectors.values[made.signs.size :])
    return replace(newest, postings=newest.postings.behind(made.postings), signs=signs)


def _compacted(view: ProjectView) -> ProjectView:
    """It shares nothing that grows, so both may be caught up from here."""
    alive = view.columns.alive.values
    kept = np.flatnonzero(alive[view.row_doc.values])
    places = np.cumsum(alive, dtype=np.int32) - 1
    vectors = view.vectors.taken(kept)
    row_doc = view.row_doc.taken(kept)
    row_doc.values[:] = places[row_doc.values]
    return replace(
        view,
        line=object(),
        columns=view.columns.compacted(),
        vectors=vectors,
        signs=SignBits.of(vectors.values) if vectors.size >= view.plans.sign_rows else None,
        row_doc=row_doc,
        postings=view.postings.inverted(alive, view.columns.length.values, renumbered=True),
    )


def _lacks_signs(view: ProjectView) -> bool:
    return view.signs is None and view.vectors.size >= view.plans.sign_rows
