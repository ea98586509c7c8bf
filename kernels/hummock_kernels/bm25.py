"""BM25F over an inverted index and the documents that are newer than it.

Source: Robertson, Zaragoza & Taylor, CIKM 2004 (weighted fields); Robertson & Zaragoza, 2009.
"""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel, named
from hummock_kernels._processor import bit_count
from hummock_kernels._types import (
    F32,
    F32_1D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I64_1D,
    OUT_U32_1D,
    U8_1D,
    U32_1D,
    Docs,
    Doubles,
    Flags,
    Indices,
    Tuple,
    Vector,
    Words,
)
from hummock_kernels.postings import DELTA, INDEX, PRESENCE, Delta, Index, Presence, lower_bound, weighted_count
from hummock_kernels.topk import offer, put_in_order

_SKETCH_SIZE = 1024  # a power of two
_FIRST_WINDOW_DOCS = 256
_WINDOW_DOCS = 4096
"""Multiples of 64. The first windows are small, for all is summed until there are as many as asked for."""
_SLACK = 1 + 1e-5
"""More than float32 loses in sums of some tens of terms, whose order is another while bounds are compared."""


class Query(NamedTuple):
    """The terms of a query.

    Attributes:
        term: (q,) one given twice counts twice.
        idf: (q,) weight of each, not negative.
        row: (q,) the row of each in a `Presence`; -1 for one that has none.
        greatest: (q,) no document in the index gets a greater share of a term's gain (see `greatest_shares`).
    """

    term: Words
    idf: Vector
    row: Indices
    greatest: Vector


class Saturation(NamedTuple):
    """How a term that occurs more often gains less.

    Attributes:
        length: (all documents,) weighted length of each, delta included.
        mean_length: Of those; 0 switches length normalisation off.
        k1: Saturation, not negative.
        b: Share of length normalisation, in [0, 1].
    """

    length: Vector
    mean_length: float
    k1: float
    b: float


_QUERY = named(Query, U32_1D, F32_1D, I64_1D, F32_1D)
_SATURATION = named(Saturation, F32_1D, F32, F32, F32)


class _Asked(NamedTuple):
    """A query, made ready for an index.

    Attributes:
        gain: (q,) the most that each term could give.
        row: As in the query.
        at: (q,) where the postings of each term begin; without a row, those that are still to be looked at.
        end: (q,) where they end.
        length: Of all documents.
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
def _asked(query: Query, index: Index, saturation: Saturation) -> _Asked:
    at = np.zeros(query.term.shape[0], np.int64)
    end = np.zeros(query.term.shape[0], np.int64)
    for position in range(query.term.shape[0]):
        term = np.int64(query.term[position])
        if term < index.indptr.shape[0] - 1:
            at[position], end[position] = index.indptr[term], index.indptr[term + 1]
    gain = (query.idf * (saturation.k1 + np.float32(1))).astype(np.float32)
    floor, slope = _floor_and_slope(saturation)
    return _Asked(gain, query.row, at, end, saturation.length, floor, slope)


@helper(borrows=True)
def _gain(gain: np.float32, weight: np.float32, saturation: np.float32) -> np.float32:
    """What a term gives to a document that holds it with this weight."""
    return gain * weight / (weight + saturation)


class _Sought(NamedTuple):
    """A query's terms, to be found in forward lists.

    Attributes:
        ordered: Ascending.
        order: The position of each in the query.
        sketch: A mark for the low bits of each, so that nearly all other terms are told apart without a search.
        counts: (q,) those of the document that is looked at, zeros otherwise.
    """

    ordered: Words
    order: Indices
    sketch: Flags
    counts: Words


@helper()
def _ascending(keys: Doubles) -> Indices:
    """The order of a few keys, ties by the smaller index, by insertion: a sort of NumPy's takes a second to compile."""
    order = np.arange(keys.shape[0])
    for i in range(1, keys.shape[0]):
        at = i
        while at > 0 and keys[order[at - 1]] > keys[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    return order


@helper()
def _sought(terms: Words) -> _Sought:
    sketch = np.zeros(_SKETCH_SIZE, np.uint8)
    for i in range(terms.shape[0]):
        sketch[terms[i] & (_SKETCH_SIZE - 1)] = 1
    order = _ascending(terms.astype(np.float64))
    return _Sought(terms[order], order, sketch, np.zeros(terms.shape[0], np.uint32))


@helper(borrows=True)
def _find_query_terms(sought: _Sought, delta: Delta, doc: int) -> bool:
    """Put a newer document's counts at the positions of its query terms; says whether there are any."""
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
def _score_newer(asked: _Asked, sought: _Sought, delta: Delta, doc: int) -> tuple[np.float32, np.uint32]:
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
            score += _gain(asked.gain[position], weight, saturation)
            matched |= _bit(position)
    return score, matched


@helper(borrows=True)
def _seek(post_doc: Docs, start: int, end: int, doc: int) -> int:
    """The first of these postings whose document is this or a later one, found by growing steps from `start`."""
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


class _Looked(NamedTuple):
    """Postings that were found: where each is, and the place of its document among those that were asked for."""

    posting: Indices
    place: Indices


@helper(borrows=True)
def _look_up(asked: _Asked, position: int, index: Index, presence: Presence, docs: Indices, looked: _Looked) -> int:
    """Find a term's postings by these documents; says how many there are.

    A row of `presence` takes the place of a search. Without one, a search begins where the last one ended, or at the
    first posting where documents do not ascend.
    """
    posting, place = looked.posting, looked.place
    row, start, end = asked.row[position], asked.at[position], asked.end[position]
    size = 0
    if row >= 0:
        held, before = presence.held, presence.before
        # Without a branch, so that reads that no cache has go on side by side.
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
        p = _seek(post_doc, start if i > 0 and docs[i] < docs[i - 1] else p, end, docs[i])
        posting[size], place[size] = p, i
        size += p < end and post_doc[p] == docs[i]
    return size


@helper(borrows=True)
def _add(
    asked: _Asked, position: int, index: Index, presence: Presence, docs: Indices, sums: Vector, looked: _Looked
) -> int:
    """Add what a term gives to each of these documents to their sums; gives how many postings were found."""
    size = _look_up(asked, position, index, presence, docs, looked)
    posting, place = looked
    weight, length, gain, floor, slope = index.weight, asked.length, asked.gain[position], asked.floor, asked.slope
    for i in range(size):
        if weight[posting[i]] > 0:
            sums[place[i]] += _gain(gain, weight[posting[i]], floor + slope * length[docs[place[i]]])
    return size


@kernel(Tuple((OUT_F32_1D, OUT_U32_1D))(INDEX, DELTA, PRESENCE, _QUERY, _SATURATION, I64_1D))
def bm25_scores(
    index: Index, delta: Delta, presence: Presence, query: Query, saturation: Saturation, docs: Indices
) -> tuple[Vector, Words]:
    """Keyword score of some documents (n,), which ascend, and which query terms they hold.

    A document scores the same bits whether it is in the index or in the delta.

    Returns:
        Scores (n,), 0 where nothing matches, and (n,) words in which bit i says that query term i matched, for the
        first 32 terms. A term that occurs only in fields of weight 0 does not match.
    """
    scores = np.zeros(docs.shape[0], np.float32)
    matched = np.zeros(docs.shape[0], np.uint32)
    asked = _asked(query, index, saturation)
    indexed = np.searchsorted(docs, delta.base)
    looked = _Looked(np.empty(indexed + 1, np.int64), np.empty(indexed + 1, np.int64))
    for position in range(query.term.shape[0]):
        for i in range(_add(asked, position, index, presence, docs[:indexed], scores, looked)):
            if index.weight[looked.posting[i]] > 0:
                matched[looked.place[i]] |= _bit(position)
    sought = _sought(query.term)
    for i in range(indexed, docs.shape[0]):
        scores[i], matched[i] = _score_newer(asked, sought, delta, docs[i])
    return scores, matched


@kernel(OUT_F32_1D(INDEX, _SATURATION))
def greatest_shares(index: Index, saturation: Saturation) -> Vector:
    """The greatest share of its gain that each term gives to a document, (terms,) in [0, 1]."""
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


@helper()
def _offer_newer(scores: Vector, best: Indices, asked: _Asked, sought: _Sought, delta: Delta, allowed: Flags) -> int:
    """Offer the documents of the delta; gives how many are kept."""
    size = 0
    for doc in range(delta.base, delta.base + delta.indptr.shape[0] - 1):
        if allowed[doc] != 0:
            score, _ = _score_newer(asked, sought, delta, doc)
            if score > 0:
                size = offer(scores, best, size, doc, score)
    return size


@helper()
def _by_bound(asked: _Asked, greatest: Vector) -> tuple[Indices, Doubles, int]:
    """Terms by how much they can give, most first; what those from each place on can; how many can give anything."""
    bounds = np.zeros(greatest.shape[0], np.float64)
    for term in range(bounds.shape[0]):
        if asked.end[term] > asked.at[term]:
            bounds[term] = _SLACK * np.float64(asked.gain[term]) * greatest[term]
    order = _ascending(-bounds)
    rest: Doubles = np.zeros(order.shape[0] + 1, np.float64)
    for place in range(order.shape[0] - 1, -1, -1):
        rest[place] = rest[place + 1] + bounds[order[place]]
    return order, rest, int(np.count_nonzero(bounds))


class _Window(NamedTuple):
    """Documents of a window that may be among the best, and their sums so far; `given` is by place in the window."""

    doc: Indices
    sum: Vector
    given: Vector


@helper(borrows=True)
def _sum_leading(
    window: _Window,
    leading: Indices,
    asked: _Asked,
    index: Index,
    presence: Presence,
    allowed: Flags,
    start: int,
    stop: int,
    found: Indices,
) -> int:
    """Sum the postings of the terms that lead by the allowed documents of a window; says how many hold any."""
    docs, given = window.doc, window.given
    post_doc, post_weight = index.doc, index.weight
    length, floor, slope = asked.length, asked.floor, asked.slope
    many = 0
    for place in range(leading.shape[0]):
        term = leading[place]
        row, p, end, gain = asked.row[term], asked.at[term], asked.end[term], asked.gain[term]
        if row >= 0:
            p += presence.before[row, start >> 6]
        held = 0
        while p < end and post_doc[p] < stop:
            found[held] = p
            held += allowed[post_doc[p]] != 0
            p += 1
        for i in range(held):
            weight = post_weight[found[i]]
            if weight > 0:
                doc = np.int64(post_doc[found[i]])
                docs[many] = doc
                many += given[doc - start] == 0
                given[doc - start] += _gain(gain, weight, floor + slope * length[doc])
    for i in range(many):
        window.sum[i] = given[docs[i] - start]
        given[docs[i] - start] = 0
    return many


@helper(borrows=True)
def _keep_reaching(window: _Window, size: int, needed: float) -> int:
    """Move those of the first `size` documents whose sums may be as much as that to the front; says how many."""
    docs, sums = window.doc, window.sum
    kept = 0
    for i in range(size):
        docs[kept], sums[kept] = docs[i], sums[i]
        kept += sums[i] >= needed / _SLACK
    return kept


@helper()
def _offer_indexed(
    scores: Vector,
    best: Indices,
    size: int,
    asked: _Asked,
    index: Index,
    presence: Presence,
    greatest: Vector,
    allowed: Flags,
    base: int,
) -> int:
    """Offer the documents of the index that may be among the best, window by window; gives how many are kept."""
    order, rest, leading = _by_bound(asked, greatest)
    window = _Window(
        np.empty(_WINDOW_DOCS + 1, np.int64), np.empty(_WINDOW_DOCS, np.float32), np.zeros(_WINDOW_DOCS, np.float32)
    )
    looked = _Looked(np.empty(_WINDOW_DOCS + 1, np.int64), np.empty(_WINDOW_DOCS + 1, np.int64))
    width = _FIRST_WINDOW_DOCS
    start = 0
    while start < base:
        stop = min(start + width, base)
        reached = np.float64(scores[0]) if size == scores.shape[0] else 0.0
        while leading > 0 and rest[leading - 1] < reached:
            leading -= 1
        if leading == 0:
            break
        for term in range(order.shape[0]):
            if asked.row[term] < 0:
                asked.at[term] = _seek(index.doc, asked.at[term], asked.end[term], start)
        many = _sum_leading(window, order[:leading], asked, index, presence, allowed, start, stop, looked.posting)
        many = _keep_reaching(window, many, reached - rest[leading])
        for place in range(leading, order.shape[0]):
            if many == 0:
                break
            _add(asked, order[place], index, presence, window.doc[:many], window.sum, looked)
            many = _keep_reaching(window, many, reached - rest[place + 1])
        # Once more, in the order of the query.
        window.sum[:many] = 0
        for term in range(order.shape[0] if many > 0 else 0):
            _add(asked, term, index, presence, window.doc[:many], window.sum, looked)
        for i in range(many):
            if window.sum[i] > 0:
                size = offer(scores, best, size, window.doc[i], window.sum[i])
        start = stop
        width = min(2 * width, _WINDOW_DOCS)
    return size


@kernel(OUT_I64_1D(INDEX, DELTA, PRESENCE, _QUERY, _SATURATION, U8_1D, I64))
def best_by_bm25(
    index: Index, delta: Delta, presence: Presence, query: Query, saturation: Saturation, allowed: Flags, k: int
) -> Indices:
    """The documents with the best scores, without scoring all.

    A term gives a document its gain times a share at most. Terms that lead are those that can give most: what the
    others can give together does not reach the worst of the best so far. So a document must hold a term that leads;
    the postings of these are summed, and other terms are looked up for documents that may still reach the best.

    Args:
        index: All but the newest documents.
        delta: The newest.
        presence: Who holds the frequent ones of the index's terms.
        query: What is asked for.
        saturation: What it is worth.
        allowed: (all documents,) nonzero for those that may be found.
        k: Upper bound on the result; 0 or less gives nothing.

    Returns:
        (at most k,) documents that score more than 0, best first, ties by the smaller number.

    Source: MaxScore, Turtle & Flood, Information Processing & Management 31(6), 1995, here by windows of documents.
    """
    room = max(min(k, saturation.length.shape[0]), 0)
    scores = np.empty(room, np.float32)
    best = np.empty(room, np.int64)
    if room == 0:
        return best
    asked = _asked(query, index, saturation)
    size = _offer_newer(scores, best, asked, _sought(query.term), delta, allowed)
    size = _offer_indexed(scores, best, size, asked, index, presence, query.greatest, allowed, delta.base)
    put_in_order(scores, best, size)
    return best[:size]
