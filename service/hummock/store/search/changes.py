"""Notes that tell a change, each with the older notes that it may replace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import MemoryKind
from hummock.core.replacing import Told, may_replace
from hummock.ports.store import Alike, Change, ChangePage
from hummock.store.search.nearest import nearest
from hummock.store.views.stored import StoredProject
from hummock.store.views.view import ProjectView
from hummock.text.questions import Trait
from hummock.text.told_days import when_said
from hummock_kernels.cosine import score_rows

_STATES = np.uint8(Trait.TELLS_CHANGE | Trait.ASKS)


def changes_behind(view: ProjectView, stored: StoredProject, after: int, most: int, alike: Alike) -> ChangePage:
    """At most `most` notes that tell a change after document number `after`; see `ports.Snapshot.changes`.

    `stored` is the same project in a transaction later than the view. Raises: Outdated.
    """
    columns = view.columns
    is_note = (columns.kind == MemoryKind.NOTE) & (columns.alive != 0) & (columns.chunk_count > 0)
    superseded = view.superseded(stored)
    if superseded is not None:
        is_note &= superseded.current != 0
    telling = np.flatnonzero(is_note & (columns.traits & _STATES == Trait.TELLS_CHANGE) & (columns.doc > after))
    told = when_said(columns.event_time, columns.create_time, columns.traits)
    states = is_note & (columns.traits & Trait.ASKS == 0)
    found = tuple(_change(view, states, told, int(ordinal), alike) for ordinal in telling[:most])
    return ChangePage(changes=found, next_after=found[-1].doc if len(telling) > most else None)


def _change(
    view: ProjectView, states: NDArray[np.bool_], told: NDArray[np.float64], ordinal: int, alike: Alike
) -> Change:
    """A note with the older ones like it, of notes that state something, (memories,), and their times."""
    columns, own = view.columns, slice(ordinal, ordinal + 1)
    all_told = Told(told, columns.origin, columns.speaker, columns.writer)
    newer = Told(*[column[own] for column in all_told])
    may_be = states & may_replace(newer, all_told, alike.least_age_s)
    vector = view.vectors.values[columns.chunk_start[ordinal]].view(np.float16).astype(np.float32)
    older = nearest(view, may_be.view(np.uint8), vector, alike.least_cosine, alike.count)
    cosines = score_rows(view.vectors.values, vector, columns.chunk_start[older])
    by_doc = dict(zip(columns.doc[older].tolist(), cosines.tolist(), strict=True))
    return Change(doc=int(columns.doc[ordinal]), older=by_doc)
