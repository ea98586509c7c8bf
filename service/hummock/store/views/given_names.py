"""Cached names of a project: aliases of its domains, and titles and learned keywords of its entries."""

from __future__ import annotations

from threading import Lock

import numpy as np

from hummock.core.memory import DomainKnowledge, MemoryKind
from hummock.core.project import GivenNames
from hummock.store.views.columns import Columns
from hummock.store.views.stored import StoredProject

NAMING_KINDS = (MemoryKind.DOMAIN_KNOWLEDGE, MemoryKind.ENTRY)
"""Kinds of memories that have names: domains have aliases, entries have titles and learned keywords."""

MOST_NAMED = 1000
"""Upper bound on memories read of each kind."""


class LazyGivenNames:
    """The names of a project, read on the first query in another language; shared by views with the same names.

    Thread-safe.
    """

    __slots__ = ("_names", "_reading")

    def __init__(self) -> None:
        self._names: GivenNames | None = None
        self._reading = Lock()

    @property
    def known(self) -> GivenNames | None:
        """The names, or None if not read yet."""
        return self._names

    def get(self, columns: Columns, stored: StoredProject) -> GivenNames:
        """The names. The transaction must be later than the view; memories removed in between are skipped."""
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
