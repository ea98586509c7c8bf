"""The star map of a project, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hummock.core.project import Stars
from hummock.ports.store import Outdated
from hummock.store.views.stored import StoredProject
from hummock.store.views.view import ProjectView


def stars_behind(view: ProjectView, stored: StoredProject, after: int, limit: int) -> Stars:
    """At most `limit` memories after position `after`, a document number; 0 is before the first.

    `stored` is the same project in a transaction later than the view. Raises: Outdated.
    """
    docs = view.columns.doc
    first = int(np.searchsorted(docs, after, side="right"))
    there = first + np.flatnonzero(view.columns.alive[first:])
    return _stars(view, stored, there[:limit], int(docs[there[limit - 1]]) if len(there) > limit else None)


def stars_of(view: ProjectView, stored: StoredProject, docs: Sequence[int]) -> Stars:
    """The memories of these documents. `stored` as for `stars_behind`. Raises: Outdated: the view lacks one."""
    ordinals = view.columns.ordinals(np.unique(np.array(docs, np.int64)))
    if len(ordinals) < len(set(docs)):
        raise Outdated
    return _stars(view, stored, ordinals, None)


def _stars(view: ProjectView, stored: StoredProject, ordinals: NDArray[np.int64], next_after: int | None) -> Stars:
    columns = view.columns
    layout_id, places, is_placed = view.star_places.at(columns, view.chunks, ordinals)
    # A view has only session hashes, 0 for none; the id comes from the first memory of each session.
    sessions, names = columns.session[ordinals], {0: ""}
    hashes, firsts = np.unique(sessions, return_index=True)
    for session, doc in zip(hashes.tolist(), columns.doc[ordinals[firsts]].tolist(), strict=True):
        if session:
            records = stored.records(doc, full=False)
            if not records[0]:
                raise Outdated
            names[session] = stored.decoded(records).session_id
    return Stars(
        ids=[columns.ids[ordinal] for ordinal in ordinals.tolist()],
        x=places[:, 0].tolist(),
        y=places[:, 1].tolist(),
        is_placed=is_placed.tolist(),
        kinds=columns.kind[ordinals].tolist(),
        origins=columns.origin[ordinals].tolist(),
        update_times=columns.update_time[ordinals].astype(np.int64).tolist(),
        sessions=[names[session] for session in sessions.tolist()],
        layout_id=layout_id,
        next_after=next_after,
    )
