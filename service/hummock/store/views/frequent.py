"""What an index is asked of its terms before their postings are read: how much they can give, and who holds them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.store.limits import FREQUENT_ONE_IN
from hummock_kernels.frequent import greatest_shares, presence_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequentTerms:
    """Of one inverted index.

    Attributes:
        greatest: (terms,) float32, the greatest share of its gain that each term gives to a memory.
        mean_length: Of the memories, for which these shares hold.
        numbers: (frequent,) int64, the terms that many memories hold, ascending.
        presence: (frequent, words) uint64, who holds each, 64 ordinals a word.
        before: (frequent, words) int32, how many do before each word.
    """

    greatest: NDArray[np.float32]
    mean_length: float
    numbers: NDArray[np.int64]
    presence: NDArray[np.uint64]
    before: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        index: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]],
        lengths: NDArray[np.float32],
        k1: float,
        b: float,
    ) -> FrequentTerms:
        """Of an index, given the lengths of all memories in it."""
        indptr, post_doc, _ = index
        mean_length = float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0
        least = max(1, len(lengths) // FREQUENT_ONE_IN)
        numbers = np.flatnonzero(np.diff(indptr) >= least)
        presence, before = presence_of(indptr, post_doc, numbers, len(lengths))
        greatest = greatest_shares(*index, lengths, mean_length, k1, b)
        return cls(greatest=greatest, mean_length=mean_length, numbers=numbers, presence=presence, before=before)

    def shares(self, terms: NDArray[np.uint32], mean_length: float) -> NDArray[np.float32]:
        """The greatest share of each of these terms, for another mean length as well; 1 where nothing is known."""
        if not len(self.greatest) or mean_length <= 0:
            return np.ones(len(terms), np.float32)
        known = self.greatest[np.minimum(terms, len(self.greatest) - 1)]
        # Where memories are longer on average counts saturate later, but at most by as much later.
        growth = max(1.0, mean_length / self.mean_length) if self.mean_length > 0 else 1.0
        shares: NDArray[np.float32] = np.minimum(known * np.float32(growth), np.float32(1))
        return shares

    def rows(self, terms: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The row of each of these terms in `presence`, -1 for those that are not frequent."""
        if not len(self.numbers):
            return np.full(len(terms), -1, np.int64)
        at = np.minimum(np.searchsorted(self.numbers, terms), len(self.numbers) - 1)
        found: NDArray[np.int64] = np.where(self.numbers[at] == terms, at, -1)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.greatest.nbytes + self.numbers.nbytes + self.presence.nbytes + self.before.nbytes
