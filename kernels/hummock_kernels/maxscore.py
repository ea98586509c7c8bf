"""Best documents by BM25F, without scoring all.

Source: MaxScore, Turtle & Flood, Information Processing & Management 31(6), 1995, here by windows of documents.
"""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import I64, OUT_I64_1D, U8_1D, Doubles, Flags, Indices, Vector
from hummock_kernels.bm25 import (
    QUERY,
    SATURATION,
    Asked,
    Looked,
    Query,
    Saturation,
    Sought,
    add_gains,
    ascending,
    ask,
    gain_of,
    score_newer,
    seek,
    seek_terms,
)
from hummock_kernels.postings import DELTA, INDEX, PRESENCE, Delta, Index, Presence
from hummock_kernels.topk import offer, put_in_order

_FIRST_WINDOW_DOCS = 256
_WINDOW_DOCS = 4096
"""Multiples of 64. The first windows are small, as everything is summed until k documents are found."""
_SLACK = 1 + 1e-5
"""Factor above the float32 error of sums of some tens of terms, as bounds are summed in another order."""


@helper()
def _offer_newer(scores: Vector, best: Indices, asked: Asked, sought: Sought, delta: Delta, allowed: Flags) -> int:
    """Offer the documents of the delta; returns the number kept."""
    size = 0
    for doc in range(delta.base, delta.base + delta.indptr.shape[0] - 1):
        if allowed[doc] != 0:
            score, _ = score_newer(asked, sought, delta, doc)
            if score > 0:
                size = offer(scores, best, size, doc, score)
    return size


@helper()
def _by_bound(asked: Asked, greatest: Vector) -> tuple[Indices, Doubles, int]:
    """Terms by score bound, largest first; sums of the bounds from each place on; number of positive bounds."""
    bounds = np.zeros(greatest.shape[0], np.float64)
    for term in range(bounds.shape[0]):
        if asked.end[term] > asked.at[term]:
            bounds[term] = _SLACK * np.float64(asked.gain[term]) * greatest[term]
    order = ascending(-bounds)
    rest: Doubles = np.zeros(order.shape[0] + 1, np.float64)
    for place in range(order.shape[0] - 1, -1, -1):
        rest[place] = rest[place + 1] + bounds[order[place]]
    return order, rest, int(np.count_nonzero(bounds))


class _Window(NamedTuple):
    """Candidate documents of a window, and their sums so far; `given` is indexed by place in the window."""

    doc: Indices
    sum: Vector
    given: Vector


@helper(borrows=True)
def _sum_leading(
    window: _Window,
    leading: Indices,
    asked: Asked,
    index: Index,
    presence: Presence,
    allowed: Flags,
    start: int,
    stop: int,
    found: Indices,
) -> int:
    """Sum the leading terms' postings by allowed document of a window; returns the number of documents with any."""
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
                given[doc - start] += gain_of(gain, weight, floor + slope * length[doc])
    for i in range(many):
        window.sum[i] = given[docs[i] - start]
        given[docs[i] - start] = 0
    return many


@helper(borrows=True)
def _keep_reaching(window: _Window, size: int, needed: float) -> int:
    """Move those of the first `size` documents whose sums may reach `needed` to the front; returns their number."""
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
    asked: Asked,
    index: Index,
    presence: Presence,
    greatest: Vector,
    allowed: Flags,
    base: int,
) -> int:
    """Offer the candidate documents of the index, window by window; returns the number kept."""
    order, rest, leading = _by_bound(asked, greatest)
    window = _Window(
        np.empty(_WINDOW_DOCS + 1, np.int64), np.empty(_WINDOW_DOCS, np.float32), np.zeros(_WINDOW_DOCS, np.float32)
    )
    looked = Looked(np.empty(_WINDOW_DOCS + 1, np.int64), np.empty(_WINDOW_DOCS + 1, np.int64))
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
                asked.at[term] = seek(index.doc, asked.at[term], asked.end[term], start)
        many = _sum_leading(window, order[:leading], asked, index, presence, allowed, start, stop, looked.posting)
        many = _keep_reaching(window, many, reached - rest[leading])
        for place in range(leading, order.shape[0]):
            if many == 0:
                break
            add_gains(asked, order[place], index, presence, window.doc[:many], window.sum, looked)
            many = _keep_reaching(window, many, reached - rest[place + 1])
        # Summed again in the order of the query, on which float32 sums depend.
        window.sum[:many] = 0
        for term in range(order.shape[0] if many > 0 else 0):
            add_gains(asked, term, index, presence, window.doc[:many], window.sum, looked)
        for i in range(many):
            if window.sum[i] > 0:
                size = offer(scores, best, size, window.doc[i], window.sum[i])
        start = stop
        width = min(2 * width, _WINDOW_DOCS)
    return size


@kernel(OUT_I64_1D(INDEX, DELTA, PRESENCE, QUERY, SATURATION, U8_1D, I64))
def best_by_bm25(
    index: Index, delta: Delta, presence: Presence, query: Query, saturation: Saturation, allowed: Flags, k: int
) -> Indices:
    """The documents with the best scores, without scoring all.

    A term's score is at most its gain times a share. Leading terms are those with the largest bounds, such that the
    others' bounds together do not reach the worst kept score. So a document must contain a leading term; the postings
    of these are summed, and other terms are looked up for documents that may still be among the best.

    Args:
        index: All but the newest documents.
        delta: The newest documents.
        presence: Bitmaps of the index's frequent terms.
        query: Terms of the query.
        saturation: Parameters of the scores.
        allowed: (all documents,) nonzero for those that may be found.
        k: Upper bound on the result; 0 or less gives nothing.

    Returns:
        (at most k,) documents that score more than 0, best first, ties by the smaller number.
    """
    room = max(min(k, saturation.length.shape[0]), 0)
    scores = np.empty(room, np.float32)
    best = np.empty(room, np.int64)
    if room == 0:
        return best
    asked = ask(query, index, saturation)
    size = _offer_newer(scores, best, asked, seek_terms(query.term), delta, allowed)
    size = _offer_indexed(scores, best, size, asked, index, presence, query.greatest, allowed, delta.base)
    put_in_order(scores, best, size)
    return best[:size]
