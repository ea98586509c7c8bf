"""Memories that a view lists without a question: pinned ones, parts of the star map, notes that tell a change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.project import Stars
from hummock.ports.store import Alike, Change, ChangePage, Outdated
from hummock.store.search.filters import holding, passing
from hummock.store.search.nearest import nearest
from hummock.store.tables.reads import TableProject
from hummock.store.views.view import ProjectView
from hummock.text.questions import Trait
from hummock.text.told_days import when_said
from hummock_kernels.cosine import score_rows

_STATES = np.uint8(Trait.TELLS_CHANGE | Trait.ASKS)


def stars_behind(view: ProjectView, stored: TableProject, after: int, limit: int) -> Stars:
    """At most `limit` memories after position `after`, a document number; 0 is before the first.

    `stored` is the same project in a transaction later than the view. Raises: Outdated.
    """
    docs = view.columns.doc
    first = int(np.searchsorted(docs, after, side="right"))
    there = first + np.flatnonzero(view.columns.alive[first:])
    return _stars(view, stored, there[:limit], int(docs[there[limit - 1]]) if len(there) > limit else None)


def stars_of(view: ProjectView, stored: TableProject, docs: Sequence[int]) -> Stars:
    """The memories of these documents. `stored` as for `stars_behind`. Raises: Outdated: the view lacks one."""
    ordinals = view.columns.ordinals(np.unique(np.array(docs, np.int64)))
    if len(ordinals) < len(set(docs)):
        raise Outdated
    return _stars(view, stored, ordinals, None)


def _stars(view: ProjectView, stored: TableProject, ordinals: NDArray[np.int64], next_after: int | None) -> Stars:
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


def pinned_docs(view: ProjectView, where: Filter, stored: TableProject, most: int) -> list[int]:
    """Document numbers of pinned memories, newest write first; see `ports.Snapshot.pinned`. Raises: Outdated.

    Kinds, origins, paths and times of a filter say what answers a question, so they do not count.
    """
    columns = view.columns
    strict = Filter(tags=where.tags, metadata=where.metadata, writers=where.writers, excluded_ids=where.excluded_ids)
    found = columns.pinned & (columns.alive if strict == Filter() else passing(view, strict, stored))
    if where.speakers:
        names = [facets.speaker(name) for name in where.speakers]
        found &= (columns.speaker == 0) | holding(view, names, stored)
    if where.session_ids:
        names = [facets.session(name) for name in where.session_ids]
        found &= (columns.session == 0) | holding(view, names, stored)
    superseded = view.superseded(stored)
    if superseded is not None:
        found &= superseded.current
    newest: NDArray[np.int64] = columns.doc[np.flatnonzero(found)][::-1]
    return [int(doc) for doc in newest[:most]]


def changes_behind(view: ProjectView, stored: TableProject, after: int, most: int, alike: Alike) -> ChangePage:
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
    columns = view.columns
    may_be = states & _may_be_replaced(view, told, ordinal, alike.least_age_s)
    vector = view.vectors.values[columns.chunk_start[ordinal]].view(np.float16).astype(np.float32)
    older = nearest(view, may_be.view(np.uint8), vector, alike.least_cosine, alike.count)
    cosines = score_rows(view.vectors.values, vector, columns.chunk_start[older])
    by_doc = dict(zip(columns.doc[older].tolist(), cosines.tolist(), strict=True))
    return Change(doc=int(columns.doc[ordinal]), older=by_doc)


def _may_be_replaced(
    view: ProjectView, told: NDArray[np.float64], ordinal: int, least_age_s: float
) -> NDArray[np.bool_]:
    """Which memories, (memories,), the one at `ordinal` may replace; for hits `replaced` of the kernels has the rule.

    They were told so much earlier, both by the user or both by the model, and by the same speaker if both have one.
    What a writer says that nobody vouches for replaces only what that writer has said.
    """
    columns = view.columns
    is_model = columns.origin == Origin.AI_OUTPUT
    speaker, writer = columns.speaker[ordinal], columns.writer[ordinal]
    may_be: NDArray[np.bool_] = (told <= told[ordinal] - least_age_s) & (is_model == is_model[ordinal])
    if speaker:
        may_be &= (columns.speaker == speaker) | (columns.speaker == 0)
    if writer:
        may_be &= columns.writer == writer
    return may_be
