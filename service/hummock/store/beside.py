"""What stands before and behind a memory: in its session, or in its file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hummock.core import facets
from hummock.core.memory import MemoryKind
from hummock.store import codec
from hummock.store.filters import TermNumbers, holding
from hummock.store.view import ProjectView

ReadPayload = Callable[[int], codec.PayloadRecord | None]
"""A document's payload; None when it was removed since."""


def docs_beside(
    view: ProjectView, numbers_of: TermNumbers, read: ReadPayload, doc: int, count: int
) -> tuple[list[int], list[int]]:
    """At most so many documents before one and behind it, in their order; none where the view does not know it.

    Fragments of code have the others of their file, by line; all else the turns of its session, up to one that was
    removed.
    """
    found = view.columns.ordinals(np.array([doc], np.int64))
    if not len(found) or count <= 0:
        return [], []
    if view.columns.kind.values[found[0]] == MemoryKind.CODE_FRAGMENT:
        return _in_file(view, numbers_of, read, doc, count)
    before, behind = (_in_session(view, int(found[0]), step, count) for step in (0, 1))
    return before[::-1], behind


def _in_session(view: ProjectView, ordinal: int, step: int, count: int) -> list[int]:
    """Documents from an ordinal on, nearest first; step 0 goes back, 1 goes on."""
    docs: list[int] = []
    at = np.array([ordinal], np.int64)
    for _ in range(count):
        at = np.ascontiguousarray(view.columns.neighbours(at)[:, step])
        if at[0] < 0:
            break
        docs.append(int(view.columns.doc.values[at[0]]))
    return docs


def _in_file(
    view: ProjectView, numbers_of: TermNumbers, read: ReadPayload, doc: int, count: int
) -> tuple[list[int], list[int]]:
    own = _fragment(read(doc))
    if own is None:
        return [], []
    columns = view.columns
    # The facet is also that of longer paths which end in this one.
    holders = holding(view, [facets.path(own.path)], numbers_of) & columns.alive.values
    others = [(other, _fragment(read(other))) for other in columns.doc.values[np.flatnonzero(holders)].tolist()]
    lines = sorted((piece.start_line, other) for other, piece in others if piece is not None and piece.path == own.path)
    docs = [other for _, other in lines]
    place = docs.index(doc)
    return docs[max(0, place - count) : place], docs[place + 1 : place + 1 + count]


def _fragment(payload: codec.PayloadRecord | None) -> codec.CodeFragmentRecord | None:
    return payload.detail if payload is not None and isinstance(payload.detail, codec.CodeFragmentRecord) else None
