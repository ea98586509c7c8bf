"""Which numbers terms have in their projects: what the writer remembers of them, and what readers do."""

from __future__ import annotations

from collections.abc import Sequence

import lmdb

from hummock.store.lmdb import keys
from hummock.store.lmdb.environment import Tables
from hummock.store.lru import Lru
from hummock.store.views.forward_lists import TermDictionary

MOST_TERMS = 32_768
"""Of all projects together: some 6 MB."""


class TermDictionaries:
    """Those of the projects written to last, within a budget of memory. The writer's alone."""

    def __init__(self, budget_bytes: int) -> None:
        self._by_project: dict[str, TermDictionary] = {}
        self._recent = Lru(budget_bytes)
        # Whose sizes may have changed, so that a group costs the same however many there are.
        self._used: set[str] = set()

    def of(self, project: str) -> TermDictionary:
        """The project's, which may be empty."""
        dictionary = self._by_project.get(project)
        if dictionary is None:
            dictionary = self._by_project[project] = TermDictionary()
            self._recent.put(project, 0)
        self._recent.use(project)
        self._used.add(project)
        return dictionary

    def forget(self, project: str) -> None:
        """Drops the project's, since a write that was undone may have added to it."""
        self._by_project.pop(project, None)
        self._recent.drop(project)

    def clear(self) -> None:
        """Drops all."""
        for project in list(self._by_project):
            self.forget(project)

    def keep_within_budget(self) -> None:
        """Drops those that were used longest ago."""
        for project in self._used & self._by_project.keys():
            self._recent.put(project, self._by_project[project].nbytes)
        self._used.clear()
        while (oldest := self._recent.excess(keep=0)) is not None:
            self.forget(oldest)


class TermNumbers:
    """Terms' numbers by project. A term's number never changes, so any transaction, and any time, will do for any view.

    Safe to call from several threads: what two of them look up is the same, and one that is counted twice goes earlier.
    """

    def __init__(self, tables: Tables, most_terms: int = MOST_TERMS) -> None:
        """Keeps at most so many, and some of each thread; then it begins again."""
        self._tables = tables
        self._most_terms = most_terms
        self._known: dict[int, dict[str, int]] = {}
        self._held = 0

    def numbers_of(self, txn: lmdb.Transaction[bytes], project: int, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; what is not known yet is read, what nothing has ever held is asked again."""
        known = self._known.setdefault(project, {})
        found = [known.get(term) for term in terms]
        return [
            self._read(txn, project, term) if number is None else number
            for term, number in zip(terms, found, strict=True)
        ]

    def _read(self, txn: lmdb.Transaction[bytes], project: int, term: str) -> int | None:
        value = txn.get(keys.name_key(project, term), db=self._tables.term)
        if value is None:
            return None
        number = int.from_bytes(value, "little")
        if self._held >= self._most_terms:
            self._known, self._held = {}, 0
        self._known.setdefault(project, {})[term] = number
        self._held += 1
        return number
