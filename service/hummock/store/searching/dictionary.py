"""The numbers of the terms that readers ask for, in memory: queries use the same words again and again."""

from __future__ import annotations

from collections.abc import Sequence

import lmdb

from hummock.store import keys
from hummock.store.environment import Tables
from hummock.store.searching.filters import TermNumbers

MOST_TERMS = 32_768
"""Of all projects together: some 6 MB."""


class Dictionary:
    """Terms' numbers by project. A term's number never changes, so any transaction, and any time, will do for any view.

    Safe to call from several threads: what two of them look up is the same, and one that is counted twice goes earlier.
    """

    def __init__(self, tables: Tables, most_terms: int = MOST_TERMS) -> None:
        """Keeps at most so many, and some of each thread; then it begins again."""
        self._tables = tables
        self._most_terms = most_terms
        self._known: dict[int, dict[str, int]] = {}
        self._held = 0

    def of(self, txn: lmdb.Transaction[bytes], project: int) -> TermNumbers:
        """A project's, by its number; what is not known yet is read, what nothing has ever held is asked for again."""
        known = self._known.setdefault(project, {})

        def numbers_of(terms: Sequence[str]) -> list[int | None]:
            found = [known.get(term) for term in terms]
            return [
                self._read(txn, project, term) if number is None else number
                for term, number in zip(terms, found, strict=True)
            ]

        return numbers_of

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
