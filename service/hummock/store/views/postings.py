"""The inverted index of one view: a base that is built now and then, and the newer memories' forward lists.

How many memories hold a term is exact at every seq, so that a restart scores the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hummock.store.records.terms import ForwardLists
from hummock.store.views.counts import TermCounts
from hummock.store.views.frequent import FrequentTerms
from hummock.store.views.growing import Growing
from hummock_kernels.bm25 import best_by_bm25, bm25_scores, invert, mark_term
from hummock_kernels.merge import merge_postings

K1 = 1.2
B = 0.75
FIELD_WEIGHTS = np.array([2.0, 1.5, 1.0, 0.5], np.float32)
"""Title, tags, body, learned keywords: what a memory says itself counts for more than what was said of it."""

Index = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
"""Where the postings of each term begin, their ordinals and their weights (see `Postings`)."""

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
        frequent: What is known of the base's terms.
        fwd_indptr: int64 from 0, one more than the delta has memories: their slices of the next two.
        fwd_term: uint32.
        fwd_counts: uint32, packed.
        df: Memories that hold each term and are not removed.
    """

    indptr: NDArray[np.int64]
    post_doc: NDArray[np.int32]
    post_weight: NDArray[np.float32]
    base: int
    frequent: FrequentTerms
    fwd_indptr: Growing[np.int64]
    fwd_term: Growing[np.uint32]
    fwd_counts: Growing[np.uint32]
    df: TermCounts

    @classmethod
    def of(cls, lists: ForwardLists, lengths: NDArray[np.float32], *, inverted: bool) -> Postings:
        """Of these memories, whose lengths are given: all of them in the base, or in the delta."""
        terms = _terms_of(lists.term)
        if not inverted:
            none = np.empty(0, np.int32)
            index = (np.zeros(1, np.int64), none, none.view(np.float32))
            df = TermCounts.of(np.bincount(lists.term, minlength=terms).astype(np.int32))
            return cls._of(index, _known_of(index, lengths[:0]), 0, lists, df)
        index = invert(lists.indptr, lists.term, lists.counts, FIELD_WEIGHTS, terms)
        df = TermCounts.of(np.diff(index[0]).astype(np.int32))
        return cls._of(index, _known_of(index, lengths), len(lists), ForwardLists.none(), df)

    @classmethod
    def _of(cls, index: Index, frequent: FrequentTerms, base: int, delta: ForwardLists, df: TermCounts) -> Postings:
        indptr, post_doc, post_weight = index
        return cls(
            indptr=indptr,
            post_doc=post_doc,
            post_weight=post_weight,
            frequent=frequent,
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

    def inverted(self, alive: NDArray[np.uint8], lengths: NDArray[np.float32], *, renumbered: bool) -> Postings:
        """One base of all memories that are alive: in new places when they are renumbered, else where they were."""
        kept = alive.view(np.bool_)
        numbers = np.cumsum(kept, dtype=np.int32) - 1 if renumbered else np.arange(len(alive), dtype=np.int32)
        terms = max(len(self.indptr) - 1, _terms_of(self.fwd_term.values))
        newer = invert(self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values, FIELD_WEIGHTS, terms)
        base = (self.indptr, self.post_doc, self.post_weight)
        merged = merge_postings(*base, *newer, self.base, np.where(kept, numbers, np.int32(-1)))
        if renumbered:
            lengths = lengths[kept]
        return self._of(merged, _known_of(merged, lengths), len(lengths), ForwardLists.none(), self.df.copied())

    def behind(self, base: Postings) -> Postings:
        """These on a newer base, whose memories are the first ones of these in the same places."""
        first = base.base - self.base
        starts = self.fwd_indptr.values[first:]
        delta = ForwardLists(
            indptr=starts - starts[0],
            term=self.fwd_term.values[starts[0] :].copy(),
            counts=self.fwd_counts.values[starts[0] :].copy(),
        )
        return self._of((base.indptr, base.post_doc, base.post_weight), base.frequent, base.base, delta, self.df)

    def asked(
        self, terms: NDArray[np.uint32], lengths: NDArray[np.float32], live: int, mean_length: float
    ) -> AskedTerms:
        """These terms, to be asked who holds them.

        Args:
            terms: At most 32; NO_TERM keeps the place of one that nothing holds.
            lengths: Of every ordinal.
            live: Memories that are not removed.
            mean_length: Of those.
        """
        df = self.df.at(terms).astype(np.float64)
        idf = np.log1p((live - df + 0.5) / (df + 0.5)).astype(np.float32)
        index = (self.indptr, self.post_doc, self.post_weight)
        delta = (self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values, self.base)
        query = (terms, idf, FIELD_WEIGHTS, lengths, mean_length, K1, B)
        frequent = (self.frequent.rows(terms), self.frequent.presence, self.frequent.before)
        return AskedTerms(
            arguments=(*index, *delta, *query, *frequent), shares=self.frequent.shares(terms, mean_length)
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
        base += self.frequent.nbytes
        return base + self.fwd_indptr.nbytes + self.fwd_term.nbytes + self.fwd_counts.nbytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskedTerms:
    """BM25F of some terms. Memories that are removed score too.

    Attributes:
        arguments: Of both kernels.
        shares: The greatest share of its gain that each term gives to a memory of the base.
    """

    arguments: tuple[Any, ...]
    shares: NDArray[np.float32]

    def best(self, allowed: NDArray[np.uint8], k: int) -> NDArray[np.int64]:
        """At most k of the allowed ordinals, those that score most, best first, ties by the smaller ordinal."""
        return best_by_bm25(*(*self.arguments, self.shares, allowed, k))

    def scores(self, ordinals: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
        """The score of each of these ordinals, which ascend, and which terms it holds: bit i is the i-th."""
        return bm25_scores(*(*self.arguments, ordinals))


def _known_of(index: Index, lengths: NDArray[np.float32]) -> FrequentTerms:
    """What is known of the terms of an index, given the lengths of all memories in it."""
    return FrequentTerms.of(index, lengths, K1, B)


def _terms_of(term: NDArray[np.uint32]) -> int:
    """One more than the greatest of these terms."""
    return int(term.max()) + 1 if len(term) else 0
