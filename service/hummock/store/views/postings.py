"""Words of a view: an inverted index with a small delta, exact counts, and bits for frequent terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hummock.store.limits import FREQUENT_ONE_IN
from hummock.store.views.forward_lists import ForwardLists, concatenated
from hummock.store.views.growing import Growing, TermCounts
from hummock_kernels.bm25 import Query, Saturation, bm25_scores, greatest_shares
from hummock_kernels.maxscore import best_by_bm25
from hummock_kernels.postings import (
    Delta,
    Index,
    Presence,
    invert,
    mark_term,
    merge_postings,
    presence_of,
)

K1 = 1.2
B = 0.75
FIELD_WEIGHTS = np.array([2.0, 1.5, 1.0, 0.5], np.float32)
"""Title, tags, body, learned keywords: what a memory says itself counts for more than what was said of it."""

NO_TERM = 0xFFFF_FFFF
"""Stands for a term that the project does not have."""

_TERMS_KEPT = 1024


class KeptTerms:
    """Numbers of the terms that one view was asked for last, those that it does not have among them.

    They take some 300 KB at most, which no budget counts. Safe to use from several threads: all of them find the same.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}

    def numbers(self, terms: Sequence[str], read: ReadNumbers) -> NDArray[np.uint32]:
        """The number of each, NO_TERM of one that the view does not have.

        Args:
            terms: Any.
            read: Gives the numbers of some, as a transaction knows them that began after the view was made.
        """
        kept = self._kept
        unread = [term for term in terms if term not in kept]
        if unread and len(kept) >= _TERMS_KEPT:
            # Others may still look into the one before.
            kept, unread = {}, list(terms)
            self._kept = kept
        if unread:
            numbers = read(unread)
            kept |= zip(unread, [NO_TERM if number is None else number for number in numbers], strict=True)
        return np.array([kept[term] for term in terms], np.uint32)


ReadNumbers = Callable[[Sequence[str]], Sequence[int | None]]


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
    def of(cls, parts: Sequence[ForwardLists], lengths: NDArray[np.float32], *, inverted: bool) -> Postings:
        """Postings of the memories of all parts, with their lengths: all are in the base, or all in the delta."""
        terms = max((_terms_of(part.term) for part in parts), default=0)
        if not inverted:
            lists = concatenated(parts)
            none = np.empty(0, np.int32)
            index = Index(np.zeros(1, np.int64), none, none.view(np.float32))
            df = TermCounts.of(np.bincount(lists.term, minlength=terms).astype(np.int32))
            return cls._of(index, FrequentTerms.of(index, lengths[:0]), 0, lists, df)
        index = invert([(part.indptr, part.term, part.counts) for part in parts], FIELD_WEIGHTS, terms)
        df = TermCounts.of(np.diff(index.indptr).astype(np.int32))
        return cls._of(index, FrequentTerms.of(index, lengths), len(lengths), ForwardLists.none(), df)

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
        delta = (self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values)
        newer = invert([delta], FIELD_WEIGHTS, terms)
        merged = merge_postings(self._index, newer, self.base, np.where(kept, numbers, np.int32(-1)))
        if renumbered:
            lengths = lengths[kept]
        return self._of(merged, FrequentTerms.of(merged, lengths), len(lengths), ForwardLists.none(), self.df.copied())

    def behind(self, base: Postings) -> Postings:
        """These on a newer base, whose memories are the first ones of these in the same places."""
        first = base.base - self.base
        starts = self.fwd_indptr.values[first:]
        delta = ForwardLists(
            indptr=starts - starts[0],
            term=self.fwd_term.values[starts[0] :].copy(),
            counts=self.fwd_counts.values[starts[0] :].copy(),
        )
        return self._of(base._index, base.frequent, base.base, delta, self.df)

    def asked(
        self,
        terms: NDArray[np.uint32],
        lengths: NDArray[np.float32],
        live: int,
        mean_length: float,
        weights: NDArray[np.float32] | None = None,
    ) -> AskedTerms:
        """These terms, to be asked who holds them.

        Args:
            terms: At most 32; NO_TERM keeps the place of one that nothing holds.
            lengths: Of every ordinal.
            live: Memories that are not removed.
            mean_length: Of those.
            weights: Of each term, not negative; None is 1 of all.
        """
        df = self.df.at(terms).astype(np.float64)
        idf = np.log1p((live - df + 0.5) / (df + 0.5)).astype(np.float32)
        of_none = np.float32(np.log1p((live + 0.5) / 0.5))
        if weights is not None:
            idf *= weights
        return AskedTerms(
            index=self._index,
            delta=self._delta,
            presence=self.frequent.presence,
            query=Query(terms, idf, self.frequent.rows(terms), self.frequent.shares(terms, mean_length)),
            rarity=idf / of_none,
            saturation=Saturation(lengths, mean_length, K1, B),
        )

    def mark(self, term: int, out: NDArray[np.uint8]) -> None:
        """Sets `out` to 1 at every ordinal that holds the term."""
        mark_term(self._index, self._delta, term, out)

    @property
    def _index(self) -> Index:
        return Index(self.indptr, self.post_doc, self.post_weight)

    @property
    def _delta(self) -> Delta:
        lists = (self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values)
        return Delta(self.base, *lists, FIELD_WEIGHTS)

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
        index: The base.
        delta: What is newer.
        presence: Who holds the base's frequent terms.
        query: The terms.
        rarity: How rare each is, 1 for one that nothing holds.
        saturation: What they give.
    """

    index: Index
    delta: Delta
    presence: Presence
    query: Query
    rarity: NDArray[np.float32]
    saturation: Saturation

    def best(self, allowed: NDArray[np.uint8], k: int) -> NDArray[np.int64]:
        """At most k of the allowed ordinals with the highest scores, best first, ties by the smaller ordinal."""
        return best_by_bm25(self.index, self.delta, self.presence, self.query, self.saturation, allowed, k)

    def scores(self, ordinals: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
        """The score of each of these ordinals, which ascend, and which terms it holds: bit i is the i-th."""
        return bm25_scores(self.index, self.delta, self.presence, self.query, self.saturation, ordinals)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequentTerms:
    """Terms that many memories of one inverted index hold.

    Attributes:
        greatest: (terms,) float32, the greatest share of its gain that each term gives to a memory.
        mean_length: Mean length of the memories, for which these shares hold.
        numbers: (frequent,) int64, the terms that many memories hold, ascending.
        presence: Memories that hold each of these terms.
    """

    greatest: NDArray[np.float32]
    mean_length: float
    numbers: NDArray[np.int64]
    presence: Presence

    @classmethod
    def of(cls, index: Index, lengths: NDArray[np.float32]) -> FrequentTerms:
        """Find the frequent terms of an index, given the lengths of all memories in it."""
        mean_length = float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0
        least = max(1, len(lengths) // FREQUENT_ONE_IN)
        numbers = np.flatnonzero(np.diff(index.indptr) >= least)
        presence = presence_of(index, numbers, len(lengths))
        greatest = greatest_shares(index, Saturation(lengths, mean_length, K1, B))
        return cls(greatest=greatest, mean_length=mean_length, numbers=numbers, presence=presence)

    def shares(self, terms: NDArray[np.uint32], mean_length: float) -> NDArray[np.float32]:
        """The greatest share of each of these terms, for another mean length as well; 1 where nothing is known."""
        if not len(self.greatest) or mean_length <= 0:
            return np.ones(len(terms), np.float32)
        known = self.greatest[np.minimum(terms, len(self.greatest) - 1)]
        # Where memories are longer on average counts saturate later, but at most by as much later.
        growth = max(1.0, mean_length / self.mean_length) if self.mean_length > 0 else 1.0
        if growth == 1.0:
            return known
        shares: NDArray[np.float32] = np.minimum(known * np.float32(growth), np.float32(1))
        return shares

    def rows(self, terms: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The row of each of these terms in `presence`, -1 for those that are not frequent."""
        if not len(self.numbers):
            return np.full(len(terms), -1, np.int64)
        at = np.minimum(self.numbers.searchsorted(terms), len(self.numbers) - 1)
        found: NDArray[np.int64] = np.where(self.numbers[at] == terms, at, -1)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.greatest.nbytes + self.numbers.nbytes + sum(part.nbytes for part in self.presence)


def _terms_of(term: NDArray[np.uint32]) -> int:
    """One more than the greatest of these terms."""
    return int(term.max()) + 1 if len(term) else 0
