"""The inverted index of one view: a base that is built now and then, and the newer memories' forward lists.

How many memories hold a term is exact at every seq, so that a restart scores the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hummock.store.counts import TermCounts
from hummock.store.growing import Growing
from hummock.store.terms import ForwardLists
from hummock_kernels.bm25 import bm25_scores, invert, mark_term
from hummock_kernels.merge import merge_postings

K1 = 1.2
B = 0.75
FIELD_WEIGHTS = np.array([2.0, 1.5, 1.0, 0.5], np.float32)
"""Title, tags, body, learned keywords: what a memory says itself counts for more than what was said of it."""

NO_TERM = 0xFFFF_FFFF
"""Stands for a term that the project does not have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """Terms to ordinals.

    Attributes:
        indptr: (terms + 1,) int64: term t has the slice indptr[t]:indptr[t + 1] of the next two.
        post_doc: int32 ordinals below `base`, ascending within a term.
        post_weight: float32, counts weighted by field and summed.
        base: The first ordinal of the delta.
        fwd_indptr: int64 from 0, one more than the delta has memories: their slices of the next two.
        fwd_term: uint32.
        fwd_counts: uint32, packed.
        df: Memories that hold each term and are not removed.
    """

    indptr: NDArray[np.int64]
    post_doc: NDArray[np.int32]
    post_weight: NDArray[np.float32]
    base: int
    fwd_indptr: Growing[np.int64]
    fwd_term: Growing[np.uint32]
    fwd_counts: Growing[np.uint32]
    df: TermCounts

    @classmethod
    def of(cls, lists: ForwardLists, *, inverted: bool) -> Postings:
        """Of these memories: all of them in the base, or in the delta."""
        terms = _terms_of(lists.term)
        if not inverted:
            none = np.empty(0, np.int32)
            df = TermCounts.of(np.bincount(lists.term, minlength=terms).astype(np.int32))
            return cls._of(np.zeros(1, np.int64), none, none.view(np.float32), 0, lists, df)
        indptr, post_doc, post_weight = invert(lists.indptr, lists.term, lists.counts, FIELD_WEIGHTS, terms)
        df = TermCounts.of(np.diff(indptr).astype(np.int32))
        return cls._of(indptr, post_doc, post_weight, len(lists), ForwardLists.none(), df)

    @classmethod
    def _of(
        cls,
        indptr: NDArray[np.int64],
        post_doc: NDArray[np.int32],
        post_weight: NDArray[np.float32],
        base: int,
        delta: ForwardLists,
        df: TermCounts,
    ) -> Postings:
        return cls(
            indptr=indptr,
            post_doc=post_doc,
            post_weight=post_weight,
            base=base,
            fwd_indptr=Growing.of(delta.indptr),
            fwd_term=Growing.of(delta.term),
            fwd_counts=Growing.of(delta.counts),
            df=df,
        )

    @property
    def delta(self) -> int:
        """Memories that are newer than the base."""
        return self.fwd_indptr.size - 1

    def extended(self, lists: ForwardLists) -> Postings:
        """With newer memories."""
        return replace(
            self,
            fwd_indptr=self.fwd_indptr.extended(lists.indptr[1:] + self.fwd_term.size),
            fwd_term=self.fwd_term.extended(lists.term),
            fwd_counts=self.fwd_counts.extended(lists.counts),
            df=self.df.changed(lists.term, 1),
        )

    def without(self, terms: NDArray[np.uint32]) -> Postings:
        """With memories removed; `terms` are those that they held, one after the other."""
        return replace(self, df=self.df.changed(terms, -1))

    def inverted(self, alive: NDArray[np.uint8], *, renumbered: bool) -> Postings:
        """One base of all memories that are alive: in new places when they are renumbered, else where they were."""
        kept = alive.view(np.bool_)
        numbers = np.cumsum(kept, dtype=np.int32) - 1 if renumbered else np.arange(len(alive), dtype=np.int32)
        terms = max(len(self.indptr) - 1, _terms_of(self.fwd_term.values))
        newer = invert(self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values, FIELD_WEIGHTS, terms)
        base = (self.indptr, self.post_doc, self.post_weight)
        merged = merge_postings(*base, *newer, self.base, np.where(kept, numbers, np.int32(-1)))
        size = int(np.count_nonzero(kept)) if renumbered else len(alive)
        return self._of(*merged, size, ForwardLists.none(), self.df.copied())

    def behind(self, base: Postings) -> Postings:
        """These on a newer base, whose memories are the first ones of these in the same places."""
        first = base.base - self.base
        starts = self.fwd_indptr.values[first:]
        delta = ForwardLists(
            indptr=starts - starts[0],
            term=self.fwd_term.values[starts[0] :].copy(),
            counts=self.fwd_counts.values[starts[0] :].copy(),
        )
        return self._of(base.indptr, base.post_doc, base.post_weight, base.base, delta, self.df)

    def scores(
        self, terms: NDArray[np.uint32], lengths: NDArray[np.float32], live: int, mean_length: float
    ) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
        """BM25F of every ordinal and which of the terms it holds (bit i is terms[i]); removed ones score too.

        Args:
            terms: At most 32; NO_TERM keeps the place of one that nothing holds.
            lengths: Of every ordinal.
            live: Memories that are not removed.
            mean_length: Of those.
        """
        return bm25_scores(
            self.indptr,
            self.post_doc,
            self.post_weight,
            self.fwd_indptr.values,
            self.fwd_term.values,
            self.fwd_counts.values,
            self.base,
            terms,
            self._idf(terms, live),
            FIELD_WEIGHTS,
            lengths,
            mean_length,
            K1,
            B,
        )

    def mark(self, term: int, out: NDArray[np.uint8]) -> None:
        """Sets `out` to 1 at every ordinal that holds the term."""
        mark_term(
            self.indptr,
            self.post_doc,
            self.fwd_indptr.values,
            self.fwd_term.values,
            self.base,
            term,
            out,
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        base = self.indptr.nbytes + self.post_doc.nbytes + self.post_weight.nbytes + self.df.nbytes
        return base + self.fwd_indptr.nbytes + self.fwd_term.nbytes + self.fwd_counts.nbytes

    def _idf(self, terms: NDArray[np.uint32], live: int) -> NDArray[np.float32]:
        df = self.df.at(terms).astype(np.float64)
        return np.log1p((live - df + 0.5) / (df + 0.5)).astype(np.float32)


def _terms_of(term: NDArray[np.uint32]) -> int:
    """One more than the greatest of these terms."""
    return int(term.max()) + 1 if len(term) else 0
