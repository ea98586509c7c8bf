"""Numbers of terms in their projects, as cached by the writer and by readers."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.store.lru import Lru
from hummock.store.tables import keys
from hummock.store.tables.engine import Tables, Transaction
from hummock.store.views.forward_lists import TermDictionary

MOST_TERMS = 32_768
"""Most terms that are cached for all projects together: some 6 MB."""


class TermDictionaries:
    """Those of the projects written to last, within a budget of memory. The writer's alone."""

    def __init__(self, budget_bytes: int) -> None:
        self._by_project: dict[str, TermDictionary] = {}
        self._numbers: dict[str, int] = {}
        self._recent = Lru(budget_bytes)
        # Whose sizes may have changed, so that a group costs the same however many there are.
        self._used: set[str] = set()

    def of(self, project: str, number: int) -> TermDictionary:
        """The project's, which may be empty; one of its name that had another number was another project."""
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
        """Drops the project's, since a write that was undone may have added to it."""
        self._by_project.pop(project, None)
        self._numbers.pop(project, None)
        self._recent.drop(project)

    def size_of(self, project: str) -> int:
        """Number of the project's terms that are cached."""
        return len(self._by_project.get(project, ()))

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

    def numbers_of(self, txn: Transaction, project: int, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; what is not known yet is read, what nothing has ever held is asked again."""
        known = self._known.get(project, {})
        unknown = [term for term in terms if term not in known]
        found = self._read(txn, project, unknown) if unknown else {}
        return [known[term] if term in known else found.get(term) for term in terms]

    def knows_any(self, project: int, terms: Sequence[str]) -> bool:
        """Whether one of the terms has been found to have a number."""
        return not self._known.get(project, {}).keys().isdisjoint(terms)

    def known(self, project: int, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms that were looked up lately, in order; None for all others. Nothing is read."""
        known = self._known.get(project, {})
        return [known.get(term) for term in terms]

    def has_any(self, txn: Transaction, project: int, terms: Sequence[str]) -> bool:
        """Whether one of the terms has a number; nothing is read where that is known of one."""
        return self.knows_any(project, terms) or bool(self._read(txn, project, terms))

    def _read(self, txn: Transaction, project: int, terms: Sequence[str]) -> dict[str, int]:
        """The numbers of those that have one."""
        asked = dict(zip(keys.name_keys(project, terms), terms, strict=True))
        with txn.cursor(self._tables.term) as cursor:
            # One call: most of what is asked is not there, and a call takes longer than a look.
            read = {asked[key]: int.from_bytes(value, "little") for key, value in cursor.getmulti(list(asked))}
        if read:
            if self._held >= self._most_terms:
                self._known, self._held = {}, 0
            self._known.setdefault(project, {}).update(read)
            self._held += len(read)
        return read
