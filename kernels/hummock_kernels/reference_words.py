"""Twins of the kernels for keyword search and its index; re-exported by `reference`."""

import itertools
from collections.abc import Sequence

import numpy as np

from hummock_kernels._types import Counts, Docs, Flags, Indices, Vector, Words
from hummock_kernels.bm25 import Query, Saturation
from hummock_kernels.postings import Delta, Index, Presence


def bm25_scores(
    index: Index, delta: Delta, _: Presence, query: Query, saturation: Saturation, docs: Indices
) -> tuple[Vector, Words]:
    """Twin of `bm25.bm25_scores`; it needs no `Presence`."""
    halved_at = _halved_at(saturation)
    scores = np.zeros(len(halved_at), np.float32)
    matched = np.zeros(len(halved_at), np.uint32)
    for position, (term, idf) in enumerate(zip(query.term.tolist(), query.idf, strict=True)):
        newer = [(doc, _weighted_count(counts, delta.field_weights)) for doc, counts in _newer(delta, term)]
        for doc, weight in _postings(index, term) + newer:
            if weight > 0:
                scores[doc] += idf * (np.float32(saturation.k1) + np.float32(1)) * weight / (weight + halved_at[doc])
                matched[doc] |= np.uint32(1 << position) if position < 32 else np.uint32(0)
    return scores[docs], matched[docs]


def _halved_at(saturation: Saturation) -> Vector:
    """Weighted count at which a document gets half of a term's gain."""
    length, *numbers = saturation
    one, mean, k1, b = (np.float32(number) for number in (1, *numbers))
    halved_at: Vector = k1 * (one - b) + (k1 * b / mean if mean > 0 else np.float32(0)) * length
    return halved_at


def best_by_bm25(
    index: Index, delta: Delta, presence: Presence, query: Query, saturation: Saturation, allowed: Flags, k: int
) -> Indices:
    """Twin of `maxscore.best_by_bm25`, which scores all."""
    scores, _ = bm25_scores(index, delta, presence, query, saturation, np.arange(len(allowed)))
    order = np.argsort(-scores, kind="stable")
    found: Indices = order[(allowed[order] != 0) & (scores[order] > 0)]
    return found[: max(k, 0)]


def presence_of(index: Index, terms: Indices, docs: int) -> Presence:
    """Twin of `postings.presence_of`."""
    held = np.zeros((len(terms), docs // 64 + 1, 64), np.uint64)
    for row, term in enumerate(terms.tolist()):
        held[row].reshape(-1)[[doc for doc, _ in _postings(index, term)]] = 1
    counts = held.sum(axis=2).astype(np.int32)
    bits = (held << np.arange(64, dtype=np.uint64)).sum(axis=2)
    return Presence(bits, (counts.cumsum(axis=1) - counts).astype(np.int32))


def greatest_shares(index: Index, saturation: Saturation) -> Vector:
    """Twin of `bm25.greatest_shares`."""
    halved_at = _halved_at(saturation)
    shares = [
        [weight / (weight + halved_at[doc]) for doc, weight in _postings(index, term) if weight]
        for term in range(len(index.indptr) - 1)
    ]
    return np.array([max(of_term, default=0) for of_term in shares], np.float32)


def paged_counts(pages: Counts, place: Docs, terms: Words) -> Counts:
    """Twin of `postings.paged_counts`."""
    numbers = pages[place].reshape(-1)
    return np.array([numbers[term] if term < len(numbers) else 0 for term in terms.tolist()], np.int32)


def _weighted_count(counts: int, field_weights: Vector) -> np.float32:
    total = np.float32(0)
    for weight, count in zip(field_weights, counts.to_bytes(4, "little"), strict=True):
        total += weight * np.float32(count)
    return total


def _postings(index: Index, term: int) -> list[tuple[int, np.float32]]:
    if term >= len(index.indptr) - 1:
        return []
    part = slice(index.indptr[term], index.indptr[term + 1])
    return list(zip(index.doc[part].tolist(), index.weight[part], strict=True))


def _newer(delta: Delta, term: int) -> list[tuple[int, int]]:
    """Documents of the delta that contain the term, and their counts."""
    return [
        (delta.base + d, int(delta.counts[p]))
        for d, places in enumerate(_slices(delta.indptr))
        for p in places
        if delta.term[p] == term
    ]


def _slices(indptr: Indices) -> Sequence[range]:
    return [range(start, end) for start, end in itertools.pairwise(indptr.tolist())]


def count_postings(indptr: Indices, term: Words, begin: Indices) -> None:
    """Twin of `postings.count_postings`."""
    held = [term[p] for places in _slices(indptr) for p in places if term[p] < len(begin) - 1]
    begin[1:] += np.bincount(np.array(held, np.int64), minlength=len(begin) - 1)


def put_postings(
    indptr: Indices,
    term: Words,
    counts: Words,
    field_weights: Vector,
    first: int,
    free: Indices,
    doc: Docs,
    weight: Vector,
) -> None:
    """Twin of `postings.put_postings`."""
    for d, places in enumerate(_slices(indptr)):
        for p in places:
            if term[p] < len(free) - 1:
                doc[free[term[p]]] = first + d
                weight[free[term[p]]] = _weighted_count(int(counts[p]), field_weights)
                free[term[p]] += 1


def invert(indptr: Indices, term: Words, counts: Words, field_weights: Vector, terms: int) -> Index:
    """Twin of `postings.invert`, of one part."""
    postings = sorted(
        (int(term[p]), d, int(counts[p])) for d, places in enumerate(_slices(indptr)) for p in places if term[p] < terms
    )
    sizes = np.bincount(np.array([number for number, _, _ in postings], np.int64), minlength=terms)
    return Index(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([doc for _, doc, _ in postings], np.int32),
        np.array([_weighted_count(packed, field_weights) for _, _, packed in postings], np.float32),
    )


def merge_postings(older: Index, newer: Index, base: int, place: Docs) -> Index:
    """Twin of `postings.merge_postings`."""
    merged: list[tuple[int, np.float32]] = []
    sizes = [0]
    for term in range(len(newer.indptr) - 1):
        both = [*_postings(older, term), *((base + doc, weight) for doc, weight in _postings(newer, term))]
        merged += [(int(place[doc]), weight) for doc, weight in both if place[doc] >= 0]
        sizes.append(len(merged))
    return Index(
        np.array(sizes, np.int64),
        np.array([doc for doc, _ in merged], np.int32),
        np.array([weight for _, weight in merged], np.float32),
    )


def mark_term(index: Index, delta: Delta, term: int, out: Flags) -> None:
    """Twin of `postings.mark_term`."""
    for doc, _ in (*_postings(index, term), *_newer(delta, term)):
        out[doc] = 1
