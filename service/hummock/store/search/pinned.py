"""The pinned memories of a prompt: those in the scope that its filter names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.memory import Filter
from hummock.store.search.filters import holding, passing
from hummock.store.views.stored import StoredProject
from hummock.store.views.view import ProjectView


def pinned_docs(view: ProjectView, where: Filter, stored: StoredProject, most: int) -> list[int]:
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
