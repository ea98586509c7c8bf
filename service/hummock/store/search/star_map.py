"""The star map of a project, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hummock.core.stars import Stars
from hummock.store.views.stored import Outdated, StoredProject
from hummock.store.views.view import ProjectView


def stars_behind(view: ProjectView, stored: StoredProject, after: int, limit: int) -> Stars:
    """At most so many memories behind position `after`, a document's number; 0 is before the first.

    `stored` is the same project, in a transaction that began after the view was made. Raises: Outdated.
    """
    columns = view.columns
    first = int(np.searchsorted(columns.doc, after, side="right"))
    there = first + np.flatnonzero(columns.alive[first:])
    some = there[:limit]
    return _stars(view, stored, some, int(columns.doc[some[-1]]) if len(there) > limit else None)


def stars_of(view: ProjectView, stored: StoredProject, docs: Sequence[int]) -> Stars:
    """The memories of these documents. `stored` as for `stars_behind`. Raises: Outdated: the view lacks one."""
    ordinals = view.columns.ordinals(np.unique(np.array(docs, np.int64)))
    if len(ordinals) < len(set(docs)):
        raise Outdated
    return _stars(view, stored, ordinals, None)


def _stars(view: ProjectView, stored: StoredProject, ordinals: NDArray[np.int64], next_after: int | None) -> Stars:
    columns = view.columns
    layout_id, places, is_placed = view.star_places.at(columns, view.chunks, ordinals)
    sessions, session_ids = _sessions(view, stored, ordinals)
    return Stars(
        ids=tuple([columns.ids[ordinal] for ordinal in ordinals.tolist()]),
        places=places,
        is_placed=is_placed,
        kinds=columns.kind[ordinals],
        origins=columns.origin[ordinals],
        update_times=columns.update_time[ordinals],
        sessions=sessions,
        session_ids=session_ids,
        layout_id=layout_id,
        next_after=next_after,
    )


def _sessions(
    view: ProjectView, stored: StoredProject, ordinals: NDArray[np.int64]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Which session each is of, -1 of none; and the sessions, whose names are read from the first memory of each."""
    hashes, firsts, places = np.unique(view.columns.session[ordinals], return_index=True, return_inverse=True)
    # The hash of no session is 0, and so the first.
    without = int(len(hashes) > 0 and hashes[0] == 0)
    docs = view.columns.doc[ordinals[firsts[without:]]]
    return (places - without).astype(np.int32), tuple(_session_of(stored, doc) for doc in docs.tolist())


def _session_of(stored: StoredProject, doc: int) -> str:
    records = stored.records(doc, full=False)
    if not records[0]:
        raise Outdated
    return stored.decoded(records).session_id
