"""Term index of a view: an inverted index with a small delta, exact counts, and bitmaps of frequent terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hummock.store.growing import Growing, TermCounts
from hummock.store.limits import FREQUENT_ONE_IN
from hummock.store.tables.forward_lists import ForwardLists, concatenated
from hummock_kernels.bm25 import Query, Saturation, bm25_scores, greatest_shares, weigh_terms
from hummock_kernels.maxscore import best_by_bm25
from hummock_kernels.postings import Delta, Index, Presence, invert, mark_term, merge_postings, presence_of

K1 = 1.2
B = 0.75
FIELD_WEIGHTS = np.array([2.0, 1.5, 1.0, 0.5], np.float32)
"""Title, tags, body, learned keywords: a memory's own text counts for more than learned keywords."""

NO_TERM = 0xFFFF_FFFF  # Number of a term that the project does not have.

_TERMS_KEPT = 1024
NO_WEIGHTS: NDArray[np.float32] = np.empty(0, np.float32)


class KeptTerms:
    """Cached numbers of the terms looked up recently in one view, including unknown ones.

    They take some 300 KB at most, outside the memory budget. Thread-safe: all threads read the same values.
    """

    __slots__ = ("_kept", "last")

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}
        # The last terms with their weights and their look-up: those of a question, its translation and its corrections.
        self.last: tuple[tuple[Sequence[str], NDArray[np.float32] | None, QueryTerms], ...] = ()

    def numbers(self, terms: Sequence[str], read: ReadNumbers) -> NDArray[np.uint32]:
        """The number of each term, NO_TERM for unknown ones; `read` reads in a transaction after the view."""
        kept = self._kept
        unread = [term for term in terms if term not in kept]
        if unread and len(kept) >= _TERMS_KEPT:
            # Other threads may still read the old dictionary.
            kept, unread = {}, list(terms)
            self._kept = kept
        if unread:
            numbers = read(unread)
            kept |= zip(unread, [NO_TERM if number is None else number for number in numbers], strict=True)
        return np.array([kept[term] for term in terms], np.uint32)


ReadNumbers = Callable[[Sequence[str]], Sequence[int | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """Index from terms to ordinals."""

    index: Index  # The base: ordinals below `base`, ascending within a term, and counts weighted by field and summed.
    base: int  # The first ordinal of the delta.
    frequent: FrequentTerms  # Statistics and bitmaps of the base's terms.
    fwd_indptr: Growing[np.int64]  # (memories in the delta + 1,) int64 from 0: their slices of the next two.
    fwd_term: Growing[np.uint32]  # uint32.
    fwd_counts: Growing[np.uint32]  # uint32, packed.
    df: TermCounts  # Number of present memories that contain each term.

    @classmethod
    def of(cls, parts: Sequence[ForwardLists], lengths: NDArray[np.float32], *, inverted: bool) -> Postings:
        """Postings of all memories, given their lengths: all in the base if `inverted`, otherwise all in the delta."""
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
        return cls(
            index=index,
            frequent=frequent,
            base=base,
            fwd_indptr=Growing.of(delta.indptr),
            fwd_term=Growing.of(delta.term),
            fwd_counts=Growing.of(delta.counts),
            df=df,
        )

    @property
    def delta(self) -> int:
        """Number of memories in the delta."""
        return self.fwd_indptr.size - 1

    def extended(self, lists: ForwardLists) -> Postings:
        """The postings with newer memories."""
        return replace(
            self,
            fwd_indptr=self.fwd_indptr.extended(lists.indptr[1:] + self.fwd_term.size),
            fwd_term=self.fwd_term.extended(lists.term),
            fwd_counts=self.fwd_counts.extended(lists.counts),
            df=self.df.changed(lists.term, 1),
        )

    def without(self, terms: NDArray[np.uint32]) -> Postings:
        """The postings with memories removed; `terms` are the concatenated terms of these."""
        return replace(self, df=self.df.changed(terms, -1))

    def inverted(self, alive: NDArray[np.uint8], lengths: NDArray[np.float32], *, renumbered: bool) -> Postings:
        """Postings with all present memories in the base, at new ordinals if `renumbered`, otherwise at the old."""
        kept = alive.view(np.bool_)
        numbers = np.cumsum(kept, dtype=np.int32) - 1 if renumbered else np.arange(len(alive), dtype=np.int32)
        terms = max(len(self.index.indptr) - 1, _terms_of(self.fwd_term.values))
        delta = (self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values)
        newer = invert([delta], FIELD_WEIGHTS, terms)
        merged = merge_postings(self.index, newer, self.base, np.where(kept, numbers, np.int32(-1)))
        if renumbered:
            lengths = lengths[kept]
        return self._of(merged, FrequentTerms.of(merged, lengths), len(lengths), ForwardLists.none(), self.df.copied())

    def behind(self, base: Postings) -> Postings:
        """These postings on a newer base that covers their first memories at the same ordinals."""
        first = base.base - self.base
        starts = self.fwd_indptr.values[first:]
        delta = ForwardLists(
            indptr=starts - starts[0],
            term=self.fwd_term.values[starts[0] :].copy(),
            counts=self.fwd_counts.values[starts[0] :].copy(),
        )
        return self._of(base.index, base.frequent, base.base, delta, self.df)

    def asked(
        self,
        terms: NDArray[np.uint32],
        lengths: NDArray[np.float32],
        live: int,
        mean_length: float,
        weights: NDArray[np.float32] | None = None,
    ) -> QueryTerms:
        """A BM25F query of at most 32 terms; NO_TERM for an unknown one.

        `lengths` has every ordinal's; `live` memories are not removed, `mean_length` is theirs. Weights are at least 0;
        None is 1 for all terms.
        """
        frequent, weights = self.frequent, NO_WEIGHTS if weights is None else weights
        greatest = frequent.greatest if mean_length > 0 else NO_WEIGHTS
        # With a greater mean length counts saturate later, but by at most the same factor.
        growth = max(1.0, mean_length / frequent.mean_length) if frequent.mean_length > 0 else 1.0
        pages, place = self.df.pages.buffer, self.df.place
        idf, rows, shares, rarity = weigh_terms(pages, place, frequent.numbers, greatest, growth, terms, weights, live)
        return QueryTerms(
            index=self.index,
            delta=self.delta_lists,
            presence=frequent.presence,
            query=Query(terms, idf, rows, shares),
            rarity=rarity,
            saturation=Saturation(lengths, mean_length, K1, B),
        )

    def mark(self, term: int, out: NDArray[np.uint8]) -> None:
        """Set `out` to 1 at every ordinal that contains the term."""
        mark_term(self.index, self.delta_lists, term, out)

    def mark_any(self, terms: NDArray[np.uint32], out: NDArray[np.uint8]) -> None:
        """Set `out` to 1 at every ordinal that contains any of the terms, (n,) uint32, of which there may be many."""
        indptr = self.index.indptr
        for term in terms[terms < len(indptr) - 1].tolist():
            out[self.index.doc[indptr[term] : indptr[term + 1]]] = 1
        places = np.flatnonzero(np.isin(self.fwd_term.values, terms))
        out[self.base - 1 + np.searchsorted(self.fwd_indptr.values, places, side="right")] = 1

    @property
    def delta_lists(self) -> Delta:
        """The terms of the memories in the delta."""
        lists = (self.fwd_indptr.values, self.fwd_term.values, self.fwd_counts.values)
        return Delta(self.base, *lists, FIELD_WEIGHTS)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        base = sum([part.nbytes for part in self.index]) + self.df.nbytes + self.frequent.nbytes
        return base + self.fwd_indptr.nbytes + self.fwd_term.nbytes + self.fwd_counts.nbytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryTerms:
    """BM25F scores of a query's terms. Removed memories score too."""

    index: Index  # The base.
    delta: Delta  # The newer memories.
    presence: Presence  # Bitmaps of the base's frequent terms.
    query: Query  # The terms.
    rarity: NDArray[np.float32]  # Rarity of each term, 1 for one that no memory contains.
    saturation: Saturation  # Parameters of the scores.

    @property
    def unheld(self) -> list[int]:
        """Places of the terms that no memory contains; of a query without weights."""
        return [place for place, rarity in enumerate(self.rarity.tolist()) if rarity == 1]

    def best(self, allowed: NDArray[np.uint8], k: int) -> NDArray[np.int64]:
        """At most k of the allowed ordinals with the highest scores, best first, ties by the smaller ordinal."""
        return best_by_bm25(self.index, self.delta, self.presence, self.query, self.saturation, allowed, k)

    def scores(self, ordinals: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
        """The score of each of these ascending ordinals, and a mask of its terms: bit i is the i-th."""
        return bm25_scores(self.index, self.delta, self.presence, self.query, self.saturation, ordinals)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrequentTerms:
    """Frequent terms of one inverted index, and score bounds of all its terms."""

    greatest: NDArray[np.float32]  # (terms,) float32, the greatest share of its gain that each term gives to a memory.
    mean_length: float  # Mean length of the memories, for which these shares are valid.
    numbers: NDArray[np.int64]  # (frequent,) int64, the frequent terms, ascending.
    presence: Presence  # Bitmaps of the memories that contain each of these terms.

    @classmethod
    def of(cls, index: Index, lengths: NDArray[np.float32]) -> FrequentTerms:
        """Find the frequent terms of an index, given the lengths of all memories in it."""
        mean_length = float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0
        least = max(1, len(lengths) // FREQUENT_ONE_IN)
        numbers = np.flatnonzero(np.diff(index.indptr) >= least)
        presence = presence_of(index, numbers, len(lengths))
        greatest = greatest_shares(index, Saturation(lengths, mean_length, K1, B))
        return cls(greatest=greatest, mean_length=mean_length, numbers=numbers, presence=presence)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.greatest.nbytes + self.numbers.nbytes + sum(part.nbytes for part in self.presence)


def _terms_of(term: NDArray[np.uint32]) -> int:
    return int(term.max()) + 1 if len(term) else 0
