"""The inverted index of one view: a base that is built now and then, and the newer memories' forward lists.

How many memories hold a term is exact at every seq, so that a restart scores the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hummock.store.growing import Growing
from hummock.store.terms import ForwardLists
from hummock_kernels.bm25 import bm25_scores, invert, mark_term

K1 = 1.2
B = 0.75
FIELD_WEIGHTS = np.array([2.0, 1.5, 1.0, 1.5], np.float32)
"""Title, tags, body, learned keywords."""

NO_TERM = 0xFFFF_FFFF
"""Stands for a term that the project does not have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """Terms to ordinals.

    Attributes:
        indptr: (terms + 1,) int64: term t has the slice indptr[t]:indptr[t + 1] of the next two.
        post_doc: int32 ordinals below `base`, ascending within a term.
        post_counts: uint32, packed (`terms.py`).
        base: The first ordinal of the delta.
        fwd_indptr: int64 from 0, one more than the delta has memories: their slices of the next two.
        fwd_term: uint32.
        fwd_counts: uint32, packed.
        df: (terms,) int32, memories that hold each term and are not removed.
    """

    indptr: NDArray[np.int64]
    post_doc: NDArray[np.int32]
    post_counts: NDArray[np.uint32]
    base: int
    fwd_indptr: Growing[np.int64]
    fwd_term: Growing[np.uint32]
    fwd_counts: Growing[np.uint32]
    df: NDArray[np.int32]

    @classmethod
    def empty(cls) -> Postings:
        """No memories."""
        return _based(
            np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint32), base=0, df=np.empty(0, np.int32)
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
            df=_counted(self.df, lists.term, 1),
        )

    def without(self, terms: NDArray[np.uint32]) -> Postings:
        """With memories removed; `terms` are those that they held, one after the other."""
        return replace(self, df=_counted(self.df, terms, -1))

    def compacted(self, alive: NDArray[np.uint8]) -> Postings:
        """One base of all memories that are alive, in new places: their order among each other stays."""
        delta_indptr, delta_doc, delta_counts = self._inverted_delta()
        term = np.concatenate([_term_of_each(self.indptr), _term_of_each(delta_indptr)])
        doc = np.concatenate([self.post_doc, delta_doc + np.int32(self.base)])
        counts = np.concatenate([self.post_counts, delta_counts])
        kept = np.flatnonzero(alive[doc])
        # Stable: the base's ordinals of a term come before the delta's.
        kept = kept[np.argsort(term[kept], kind="stable")]
        places = (np.cumsum(alive, dtype=np.int64) - 1).astype(np.int32)
        indptr = np.zeros(len(self.df) + 1, np.int64)
        np.cumsum(np.bincount(term[kept], minlength=len(self.df)), out=indptr[1:])
        return _based(indptr, places[doc[kept]], counts[kept], base=int(np.count_nonzero(alive)), df=self.df)

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
            self.post_counts,
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
        base = self.indptr.nbytes + self.post_doc.nbytes + self.post_counts.nbytes + self.df.nbytes
        return base + self.fwd_indptr.nbytes + self.fwd_term.nbytes + self.fwd_counts.nbytes

    def _idf(self, terms: NDArray[np.uint32], live: int) -> NDArray[np.float32]:
        known = terms < len(self.df)
        df = np.zeros(len(terms))
        df[known] = self.df[terms[known]]
        return np.log1p((live - df + 0.5) / (df + 0.5)).astype(np.float32)

    def _inverted_delta(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint32]]:
        return invert(self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values, len(self.df))


def _based(
    indptr: NDArray[np.int64],
    post_doc: NDArray[np.int32],
    post_counts: NDArray[np.uint32],
    *,
    base: int,
    df: NDArray[np.int32],
) -> Postings:
    return Postings(
        indptr=indptr,
        post_doc=post_doc,
        post_counts=post_counts,
        base=base,
        fwd_indptr=Growing.of(np.zeros(1, np.int64)),
        fwd_term=Growing.of(np.empty(0, np.uint32)),
        fwd_counts=Growing.of(np.empty(0, np.uint32)),
        df=df,
    )


def _term_of_each(indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _counted(df: NDArray[np.int32], terms: NDArray[np.uint32], by: int) -> NDArray[np.int32]:
    """A copy of df in which every occurrence of a term counts; older views keep theirs."""
    vocabulary = max(len(df), int(terms.max()) + 1 if len(terms) else 0)
    counted = np.zeros(vocabulary, np.int32)
    counted[: len(df)] = df
    np.add.at(counted, terms, np.int32(by))
    return counted
