"""Counts of terms that change with every write, without a copy of all of them at each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.store.views.growing import Growing
from hummock_kernels.bm25 import paged_counts

_PAGE_TERMS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TermCounts:
    """A number for each term. It never changes: `changed` makes another one, which shares the pages that stay.

    Attributes:
        pages: (pages, 64) int32; those behind what this holder knows belong to whoever changes the newest one.
        place: (terms / 64,) int32, the page of each run of 64 terms. Page 0 is all zeros.
    """

    pages: Growing[np.int32]
    place: NDArray[np.int32]

    @classmethod
    def of(cls, counts: NDArray[np.int32]) -> TermCounts:
        """The counts of the first terms; all others have none."""
        runs = -(-len(counts) // _PAGE_TERMS)
        pages = np.zeros((1 + runs, _PAGE_TERMS), np.int32)
        pages[1:].reshape(-1)[: len(counts)] = counts
        return cls(pages=Growing.of(pages), place=np.arange(1, 1 + runs, dtype=np.int32))

    def at(self, terms: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The counts of these terms."""
        return paged_counts(self.pages.buffer, self.place, terms)

    def changed(self, terms: NDArray[np.uint32], by: int) -> TermCounts:
        """With `by` added for every occurrence of a term. Takes time by the terms given, on average.

        Only the newest of a line of counts may be changed, by one thread at a time.
        """
        if not len(terms):
            return self
        run, column = np.divmod(terms, np.uint32(_PAGE_TERMS))
        place = np.zeros(max(len(self.place), int(run.max()) + 1), np.int32)
        place[: len(self.place)] = self.place
        is_touched = np.zeros(len(place), np.bool_)
        is_touched[run] = True
        runs = np.flatnonzero(is_touched)
        newer = self.pages.buffer[place[runs]]
        place[runs] = np.arange(len(runs), dtype=np.int32)
        np.add.at(newer, (place[run], column), np.int32(by))
        place[runs] += np.int32(self.pages.size)
        pages = self.pages.extended(newer)
        if pages.size > 2 * len(place) + _PAGE_TERMS:
            # More than half of the pages are older counts': those that are not are copied.
            return TermCounts(pages=pages, place=place).copied()
        return TermCounts(pages=pages, place=place)

    def copied(self) -> TermCounts:
        """The same counts in pages of their own."""
        return TermCounts.of(self.pages.buffer[self.place].reshape(-1))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.pages.nbytes + self.place.nbytes
