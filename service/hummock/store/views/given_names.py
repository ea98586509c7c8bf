"""Names in a project, read once: those of its domains, and those its entries were found to have."""

from __future__ import annotations

from threading import Lock

import numpy as np

from hummock.core.memory import DomainKnowledge, MemoryKind
from hummock.core.project import GivenNames
from hummock.store.views.columns import Columns
from hummock.store.views.stored import StoredProject

NAMING_KINDS = (MemoryKind.DOMAIN_KNOWLEDGE, MemoryKind.ENTRY)
"""Kinds of memories that are called by names: domains by their aliases, entries by titles and learned keywords."""

MOST_NAMED = 1000
"""Memories of either kind that are read."""


class LazyGivenNames:
    """The names of a project as some views know them, read when somebody first asks in another language.

    Safe to use from several threads.
    """

    __slots__ = ("_names", "_reading")

    def __init__(self) -> None:
        self._names: GivenNames | None = None
        self._reading = Lock()

    @property
    def known(self) -> GivenNames | None:
        """The names, where they were read."""
        return self._names

    def get(self, columns: Columns, stored: StoredProject) -> GivenNames:
        """The names. The transaction began after the view was made: what it has removed since says nothing."""
        with self._reading:
            if self._names is None:
                self._names = GivenNames(groups=(*_of_domains(columns, stored), *stored.called(MOST_NAMED)))
            return self._names


def _of_domains(columns: Columns, stored: StoredProject) -> list[tuple[str, ...]]:
    is_domain = (columns.kind == MemoryKind.DOMAIN_KNOWLEDGE) & (columns.alive != 0)
    docs = columns.doc[np.flatnonzero(is_domain)[:MOST_NAMED]].tolist()
    details = [payload.detail for payload in map(stored.payload, docs) if payload is not None]
    return [
        (detail.domain, *detail.aliases) for detail in details if isinstance(detail, DomainKnowledge) and detail.aliases
    ]
