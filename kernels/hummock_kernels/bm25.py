"""BM25F scores over an inverted index and a delta of newer documents.

Source: Robertson, Zaragoza & Taylor, CIKM 2004 (weighted fields); Robertson & Zaragoza, 2009.
"""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel, named
from hummock_kernels._processor import bit_count
from hummock_kernels._types import (
    F32,
    F32_1D,
    I32_1D,
    I32_2D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I64_1D,
    OUT_U32_1D,
    U32_1D,
    Counts,
    Docs,
    Doubles,
    Flags,
    Indices,
    Tuple,
    Vector,
    Words,
)
from hummock_kernels.postings import (
    DELTA,
    INDEX,
    PRESENCE,
    Delta,
    Index,
    Presence,
    counts_of,
    lower_bound,
    weighted_count,
)

_SKETCH_SIZE = 1024  # a power of two


class Query(NamedTuple):
    """The terms of a query.

    Attributes:
        term: (q,) term numbers; one given twice counts twice.
        idf: (q,) weight of each, not negative.
        row: (q,) the row of each in a `Presence`; -1 if it has none.
        greatest: (q,) upper bound on an indexed document's share of a term's gain (see `greatest_shares`).
    """

    term: Words
    idf: Vector
    row: Indices
    greatest: Vector


class Saturation(NamedTuple):
    """Saturation of term counts: the more often a term occurs, the less each further occurrence adds.

    Attributes:
        length: (all documents,) weighted length of each, delta included.
        mean_length: Mean of `length`; 0 switches length normalisation off.
        k1: Saturation, not negative.
        b: Share of length normalisation, in [0, 1].
    """

    length: Vector
    mean_length: float
    k1: float
    b: float


QUERY = named(Query, U32_1D, F32_1D, I64_1D, F32_1D)
SATURATION = named(Saturation, F32_1D, F32, F32, F32)


class Asked(NamedTuple):
    """A query prepared for an index.

    Attributes:
        gain: (q,) upper bound on the score of each term.
        row: See `Query`.
        at: (q,) start of each term's postings; without a row, of those not yet read.
        end: (q,) end of each term's postings.
        length: (all documents,) weighted length of each.
        floor: A term's weight is halved at floor + slope * length.
        slope: See `floor`.
    """

    gain: Vector
    row: Indices
    at: Indices
    end: Indices
    length: Vector
    floor: np.float32
    slope: np.float32


@helper()
def _floor_and_slope(saturation: Saturation) -> tuple[np.float32, np.float32]:
    k1, b, mean_length = saturation.k1, saturation.b, saturation.mean_length
    slope = np.float32(k1 * b / mean_length) if mean_length > 0 else np.float32(0)
    return np.float32(k1 * (np.float32(1) - b)), slope


@helper()
def ask(query: Query, index: Index, saturation: Saturation) -> Asked:
    """Prepare a query for an index."""
    at = np.zeros(query.term.shape[0], np.int64)
    end = np.zeros(query.term.shape[0], np.int64)
    for position in range(query.term.shape[0]):
        term = np.int64(query.term[position])
        if term < index.indptr.shape[0] - 1:
            at[position], end[position] = index.indptr[term], index.indptr[term + 1]
    gain = (query.idf * (saturation.k1 + np.float32(1))).astype(np.float32)
    floor, slope = _floor_and_slope(saturation)
    return Asked(gain, query.row, at, end, saturation.length, floor, slope)


@helper(borrows=True)
def gain_of(gain: np.float32, weight: np.float32, saturation: np.float32) -> np.float32:
    """Score of a term for a document that contains it with this weight."""
    return gain * weight / (weight + saturation)


class Sought(NamedTuple):
    """A query's terms, prepared for look-ups in forward lists.

    Attributes:
        ordered: Terms, ascending.
        order: The position of each in the query.
        sketch: Marks for the low bits of each term, which reject nearly all other terms without a search.
        counts: (q,) counts of the current document, otherwise zeros.
    """

    ordered: Words
    order: Indices
    sketch: Flags
    counts: Words


@helper()
def ascending(keys: Doubles) -> Indices:
    """Order of a few keys, ties by the smaller index, by insertion sort: NumPy's sort takes a second to compile."""
    order = np.arange(keys.shape[0])
    for i in range(1, keys.shape[0]):
        at = i
        while at > 0 and keys[order[at - 1]] > keys[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    return order


@helper()
def seek_terms(terms: Words) -> Sought:
    """Prepare a query's terms for look-ups in forward lists."""
    sketch = np.zeros(_SKETCH_SIZE, np.uint8)
    for i in range(terms.shape[0]):
        sketch[terms[i] & (_SKETCH_SIZE - 1)] = 1
    order = ascending(terms.astype(np.float64))
    return Sought(terms[order], order, sketch, np.zeros(terms.shape[0], np.uint32))


@helper(borrows=True)
def _find_query_terms(sought: Sought, delta: Delta, doc: int) -> bool:
    """Put a newer document's counts at the positions of its query terms; returns whether there are any."""
    ordered, sketch, terms = sought.ordered, sought.sketch, delta.term
    is_hit = False
    for p in range(delta.indptr[doc - delta.base], delta.indptr[doc - delta.base + 1]):
        if sketch[terms[p] & (_SKETCH_SIZE - 1)] == 0:
            continue
        at = lower_bound(ordered, terms[p])
        while at < ordered.shape[0] and ordered[at] == terms[p]:
            sought.counts[sought.order[at]] = delta.counts[p]
            is_hit = True
            at += 1
    return is_hit


@helper(borrows=True)
def _bit(position: int) -> np.uint32:
    return np.uint32(1) << np.uint32(position) if position < 32 else np.uint32(0)


@helper(borrows=True)
def score_newer(asked: Asked, sought: Sought, delta: Delta, doc: int) -> tuple[np.float32, np.uint32]:
    """Score and matched terms of a document of the delta."""
    score = np.float32(0)
    matched = np.uint32(0)
    if not _find_query_terms(sought, delta, doc):
        return score, matched
    saturation = asked.floor + asked.slope * asked.length[doc]
    # In the order of the query, as for indexed documents: float32 sums depend on it.
    for position in range(sought.counts.shape[0]):
        weight = weighted_count(sought.counts[position], delta.field_weights)
        sought.counts[position] = 0
        if weight > 0:
            score += gain_of(asked.gain[position], weight, saturation)
            matched |= _bit(position)
    return score, matched


@helper(borrows=True)
def seek(post_doc: Docs, start: int, end: int, doc: int) -> int:
    """First of these postings with this document or a later one, by galloping search from `start`."""
    step = 1
    high = start
    while high < end and post_doc[high] < doc:
        start = high + 1
        high += step
        step *= 2
    high = min(high, end)
    while start < high:
        middle = (start + high) // 2
        if post_doc[middle] < doc:
            start = middle + 1
        else:
            high = middle
    return start


class Looked(NamedTuple):
    """Postings found: position of each, and of its document among those requested."""

    posting: Indices
    place: Indices


@helper(borrows=True)
def _look_up(asked: Asked, position: int, index: Index, presence: Presence, docs: Indices, looked: Looked) -> int:
    """Find a term's postings for these documents; returns their number.

    A row of `presence` replaces the search. Without one, a search begins at the end of the last one, or at the first
    posting if documents do not ascend.
    """
    posting, place = looked.posting, looked.place
    row, start, end = asked.row[position], asked.at[position], asked.end[position]
    size = 0
    if row >= 0:
        held, before = presence.held, presence.before
        # Branchless, so that cache misses overlap.
        for i in range(docs.shape[0]):
            word = held[row, docs[i] >> 6]
            bit = np.uint64(1) << np.uint64(docs[i] & 63)
            posting[size] = start + before[row, docs[i] >> 6] + np.int64(bit_count(word & (bit - np.uint64(1))))
            place[size] = i
            size += (word & bit) != 0
        return size
    post_doc = index.doc
    p = start
    for i in range(docs.shape[0]):
        p = seek(post_doc, start if i > 0 and docs[i] < docs[i - 1] else p, end, docs[i])
        posting[size], place[size] = p, i
        size += p < end and post_doc[p] == docs[i]
    return size


@helper(borrows=True)
def add_gains(
    asked: Asked, position: int, index: Index, presence: Presence, docs: Indices, sums: Vector, looked: Looked
) -> int:
    """Add a term's scores to the sums of these documents; returns the number of postings found."""
    size = _look_up(asked, position, index, presence, docs, looked)
    posting, place = looked
    weight, length, gain, floor, slope = index.weight, asked.length, asked.gain[position], asked.floor, asked.slope
    for i in range(size):
        if weight[posting[i]] > 0:
            sums[place[i]] += gain_of(gain, weight[posting[i]], floor + slope * length[docs[place[i]]])
    return size


@helper()
def score_documents(
    index: Index, delta: Delta, presence: Presence, query: Query, saturation: Saturation, docs: Indices
) -> tuple[Vector, Words]:
    """Score ascending documents; see `bm25_scores`."""
    scores = np.zeros(docs.shape[0], np.float32)
    matched = np.zeros(docs.shape[0], np.uint32)
    asked = ask(query, index, saturation)
    indexed = np.searchsorted(docs, delta.base)
    looked = Looked(np.empty(indexed + 1, np.int64), np.empty(indexed + 1, np.int64))
    for position in range(query.term.shape[0]):
        for i in range(add_gains(asked, position, index, presence, docs[:indexed], scores, looked)):
            if index.weight[looked.posting[i]] > 0:
                matched[looked.place[i]] |= _bit(position)
    sought = seek_terms(query.term)
    for i in range(indexed, docs.shape[0]):
        scores[i], matched[i] = score_newer(asked, sought, delta, docs[i])
    return scores, matched


@kernel(Tuple((OUT_F32_1D, OUT_U32_1D))(INDEX, DELTA, PRESENCE, QUERY, SATURATION, I64_1D))
def bm25_scores(
    index: Index, delta: Delta, presence: Presence, query: Query, saturation: Saturation, docs: Indices
) -> tuple[Vector, Words]:
    """Keyword scores of ascending documents (n,), and their matched query terms.

    A document's score has the same bits in the index and in the delta.

    Returns:
        Scores (n,), 0 if nothing matches, and (n,) words in which bit i is set if query term i matched, for the first
        32 terms. A term that occurs only in fields of weight 0 does not match.
    """
    return score_documents(index, delta, presence, query, saturation, docs)


@kernel(
    Tuple((OUT_F32_1D, OUT_I64_1D, OUT_F32_1D, OUT_F32_1D))(I32_2D, I32_1D, I64_1D, F32_1D, F32, U32_1D, F32_1D, I64)
)
def weigh_terms(
    pages: Counts,
    place: Docs,
    frequent: Indices,
    greatest: Vector,
    growth: float,
    terms: Words,
    weights: Vector,
    live: int,
) -> tuple[Vector, Indices, Vector, Vector]:
    """Weigh the terms of a query, (q,): inverse document frequency, `Query.row`, `Query.greatest`, and rarity.

    Rarity is the weighted frequency relative to that of a term that no document holds.

    Args:
        pages: Number of documents that hold each term, as `postings.paged_counts` reads it.
        place: See `pages`.
        frequent: (f,) the terms that have a row in a `Presence`, ascending.
        greatest: (terms of the index,) bounds, see `Query`; (0,) if they are unknown.
        growth: Factor of the bounds, at least 1; no bound exceeds 1.
        terms: (q,) the terms.
        weights: (q,) factor of each; (0,) means 1.
        live: Number of documents.

    Source: Robertson & Zaragoza, 2009.
    """
    df = counts_of(pages, place, terms)
    idf, rarity = np.empty(terms.shape[0], np.float32), np.empty(terms.shape[0], np.float32)
    row, share = np.full(terms.shape[0], -1, np.int64), np.ones(terms.shape[0], np.float32)
    of_none = np.float32(np.log1p((live + 0.5) / 0.5))
    for i in range(terms.shape[0]):
        idf[i] = np.float32(np.log1p((live - df[i] + 0.5) / (df[i] + 0.5)))
        if weights.shape[0] > 0:
            idf[i] *= weights[i]
        rarity[i] = idf[i] / of_none
        at = np.searchsorted(frequent, np.int64(terms[i]))
        if at < frequent.shape[0] and frequent[at] == np.int64(terms[i]):
            row[i] = at
        if greatest.shape[0] > 0:
            share[i] = min(greatest[min(np.int64(terms[i]), greatest.shape[0] - 1)] * np.float32(growth), np.float32(1))
    return idf, row, share, rarity


@kernel(OUT_F32_1D(INDEX, SATURATION))
def greatest_shares(index: Index, saturation: Saturation) -> Vector:
    """Largest share of its gain that each term contributes to any document, (terms,) in [0, 1]."""
    floor, slope = _floor_and_slope(saturation)
    doc, weight, length = index.doc, index.weight, saturation.length
    greatest = np.zeros(index.indptr.shape[0] - 1, np.float32)
    for term in range(greatest.shape[0]):
        share = np.float32(0)
        for p in range(index.indptr[term], index.indptr[term + 1]):
            if weight[p] > 0:
                share = max(share, weight[p] / (weight[p] + (floor + slope * length[doc[p]])))
        greatest[term] = share
    return greatest
