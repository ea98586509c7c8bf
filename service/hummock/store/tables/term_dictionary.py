"""Caches of term numbers by project, for the writer and for readers."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.store.lru import Lru
from hummock.store.tables import keys
from hummock.store.tables.engine import Tables, Transaction
from hummock.store.tables.forward_lists import TermDictionary

MOST_TERMS = 32_768  # Upper bound on cached terms for all projects together: some 6 MB.


class TermDictionaries:
    """Dictionaries of the recently written projects, within a memory budget. Used by the writer only."""

    def __init__(self, budget_bytes: int) -> None:
        self._by_project: dict[str, TermDictionary] = {}
        self._numbers: dict[str, int] = {}
        self._recent = Lru(budget_bytes)
        # Projects whose sizes may have changed, so that a group's cost does not depend on the number of projects.
        self._used: set[str] = set()

    def of(self, project: str, number: int) -> TermDictionary:
        """The project's dictionary, possibly empty; one with another number belonged to an earlier project."""
        if self._numbers.get(project, number) != number:
            self.forget(project)
        self._numbers[project] = number
        dictionary = self._by_project.get(project)
        if dictionary is None:
            dictionary = self._by_project[project] = TermDictionary()
            self._recent.put(project, 0)
        self._recent.use(project)
        self._used.add(project)
        return dictionary

    def forget(self, project: str) -> None:
        """Drop the project's dictionary, for example after an undone write may have added to it."""
        self._by_project.pop(project, None)
        self._numbers.pop(project, None)
        self._recent.drop(project)

    def size_of(self, project: str) -> int:
        """Number of the project's terms that are cached."""
        return len(self._by_project.get(project, ()))

    def clear(self) -> None:
        """Drop all dictionaries."""
        for project in list(self._by_project):
            self.forget(project)

    def keep_within_budget(self) -> None:
        """Drop the least recently used dictionaries above the budget."""
        for project in self._used & self._by_project.keys():
            self._recent.put(project, self._by_project[project].nbytes)
        self._used.clear()
        while (oldest := self._recent.excess(keep=0)) is not None:
            self.forget(oldest)


class TermNumbers:
    """Term numbers by project, which never change. Thread-safe: counting twice only empties the cache earlier."""

    def __init__(self, tables: Tables, most_terms: int = MOST_TERMS) -> None:
        """Caches about `most_terms` terms; then it starts again empty."""
        self._tables = tables
        self._most_terms = most_terms
        self._known: dict[int, dict[str, int]] = {}
        self._held = 0

    def numbers_of(self, txn: Transaction, project: int, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; uncached ones are read, and unknown terms are read again each time."""
        known = self._known.get(project, {})
        unknown = [term for term in terms if term not in known]
        found = self._read(txn, project, unknown) if unknown else {}
        return [known[term] if term in known else found.get(term) for term in terms]

    def knows_any(self, project: int, terms: Sequence[str]) -> bool:
        """Whether one of the terms is cached."""
        return not self._known.get(project, {}).keys().isdisjoint(terms)

    def known(self, project: int, terms: Sequence[str]) -> list[int | None]:
        """The cached numbers of terms, in order; None for all others. Reads nothing."""
        known = self._known.get(project, {})
        return [known.get(term) for term in terms]

    def has_any(self, txn: Transaction, project: int, terms: Sequence[str]) -> bool:
        """Whether one of the terms has a number; reads nothing if one is cached."""
        return self.knows_any(project, terms) or bool(self._read(txn, project, terms))

    def _read(self, txn: Transaction, project: int, terms: Sequence[str]) -> dict[str, int]:
        asked = dict(zip(keys.name_keys(project, terms), terms, strict=True))
        with txn.cursor(self._tables.term) as cursor:
            # One call: most of these terms do not exist, and a call takes longer than a look-up.
            read = {asked[key]: int.from_bytes(value, "little") for key, value in cursor.getmulti(list(asked))}
        if read:
            if self._held >= self._most_terms:
                self._known, self._held = {}, 0
            self._known.setdefault(project, {}).update(read)
            self._held += len(read)
        return read
