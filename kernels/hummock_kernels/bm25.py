"""BM25F over an inverted index and the documents that are newer than it.

Postings of term t are the slice indptr[t]:indptr[t + 1] of `post_doc` and `post_weight`. Documents from `base` on, the
delta, are not in it: document base + d has the slice fwd_indptr[d]:fwd_indptr[d + 1] of `fwd_term` and `fwd_counts`. A
term occurs at most once in a document. Counts pack four saturating bytes, least significant first: title, tags, body,
learned keywords. Terms beyond the index's size occur in the delta alone.

Source: Robertson, Zaragoza & Taylor, CIKM 2004 (weighted fields); Robertson & Zaragoza, 2009.
"""

import numpy as np

from hummock_kernels._bits import bit_count
from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import (
    F32,
    F32_1D,
    I32_1D,
    I32_2D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I32_1D,
    OUT_I64_1D,
    OUT_U8_1D,
    OUT_U32_1D,
    U8_1D,
    U32,
    U32_1D,
    U64_2D,
    VOID,
    Counts,
    Docs,
    Flags,
    Indices,
    Longs,
    Tuple,
    Vector,
    Words,
)

_SKETCH_SIZE = 1024  # a power of two
_FIRST_WINDOW_DOCS = 256
_WINDOW_DOCS = 4096
"""Multiples of 64. The first windows are small, for all is summed until there are as many as asked for."""
_SLACK = 1 + 1e-5
"""More than float32 loses in sums of some tens of terms, whose order is another while bounds are compared."""


@helper()
def _weighted_count(counts: np.uint32, field_weights: Vector) -> np.float32:
    packed = np.int64(counts)
    total = np.float32(0)
    for field in range(4):
        total += field_weights[field] * np.float32((packed >> (8 * field)) & 255)
    return total


@helper()
def _gain(idf: np.float32, weight: np.float32, saturation: np.float32) -> np.float32:
    return idf * weight / (weight + saturation)


@helper()
def _bit(position: int) -> np.uint32:
    return np.uint32(1) << np.uint32(position) if position < 32 else np.uint32(0)


@helper()
def _lower_bound(ordered: Words, term: np.uint32) -> int:
    low = 0
    high = ordered.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@helper()
def _sketch(terms: Words) -> Flags:
    """A mark for the low bits of each term, so that nearly all other terms are told apart without a search."""
    marks = np.zeros(_SKETCH_SIZE, np.uint8)
    for i in range(terms.shape[0]):
        marks[terms[i] & (_SKETCH_SIZE - 1)] = 1
    return marks


@helper()
def _find_query_terms(
    fwd_term: Words,
    fwd_counts: Words,
    start: int,
    end: int,
    ordered: Words,
    order: Indices,
    sketch: Flags,
    found: Words,
) -> bool:
    """Put one document's counts at the positions of its query terms; says whether there are any."""
    is_hit = False
    for p in range(start, end):
        if sketch[fwd_term[p] & (_SKETCH_SIZE - 1)] == 0:
            continue
        at = _lower_bound(ordered, fwd_term[p])
        while at < ordered.shape[0] and ordered[at] == fwd_term[p]:
            found[order[at]] = fwd_counts[p]
            is_hit = True
            at += 1
    return is_hit


@helper()
def _score_counts(
    counts: Words, gains: Vector, saturation: np.float32, field_weights: Vector
) -> tuple[np.float32, np.uint32]:
    """Score and matched terms of a document by its counts, which are cleared."""
    score = np.float32(0)
    matched = np.uint32(0)
    # In the order of the query, as for indexed documents: float32 sums depend on it.
    for position in range(gains.shape[0]):
        weight = _weighted_count(counts[position], field_weights)
        counts[position] = 0
        if weight > 0:
            score += _gain(gains[position], weight, saturation)
            matched |= _bit(position)
    return score, matched


@helper()
def _slices(indptr: Indices, query_terms: Words) -> tuple[Indices, Indices]:
    """Where the postings of each query term begin and end."""
    begin = np.zeros(query_terms.shape[0], np.int64)
    end = np.zeros(query_terms.shape[0], np.int64)
    for position in range(query_terms.shape[0]):
        term = np.int64(query_terms[position])
        if term < indptr.shape[0] - 1:
            begin[position], end[position] = indptr[term], indptr[term + 1]
    return begin, end


@helper()
def _constants(idf: Vector, mean_length: float, k1: float, b: float) -> tuple[Vector, np.float32, np.float32]:
    """The most that each term could give, and where counts saturate: at floor + slope * length."""
    slope = np.float32(k1 * b / mean_length) if mean_length > 0 else np.float32(0)
    return (idf * (k1 + np.float32(1))).astype(np.float32), np.float32(k1 * (np.float32(1) - b)), slope


@helper()
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


@helper()
def _find(
    post_doc: Docs,
    start: int,
    end: int,
    presence: Longs,
    before: Counts,
    row: int,
    docs: Indices,
    found: Indices,
    which: Indices,
) -> int:
    """Write the postings of a term by these documents to `found`, and whose each is to `which`; says how many.

    A row of `presence` takes the place of a search. Without one, a search begins where the last one ended, or at
    `start` where documents do not ascend.
    """
    size = 0
    if row >= 0:
        # Without a branch, so that reads that no cache has go on side by side.
        for i in range(docs.shape[0]):
            word = presence[row, docs[i] >> 6]
            bit = np.uint64(1) << np.uint64(docs[i] & 63)
            found[size] = start + before[row, docs[i] >> 6] + np.int64(bit_count(word & (bit - np.uint64(1))))
            which[size] = i
            size += (word & bit) != 0
        return size
    p = start
    for i in range(docs.shape[0]):
        p = _seek(post_doc, start if i > 0 and docs[i] < docs[i - 1] else p, end, docs[i])
        found[size], which[size] = p, i
        size += p < end and post_doc[p] == docs[i]
    return size


_INDEX = (I64_1D, I32_1D, F32_1D, I64_1D, U32_1D, U32_1D, I64)
_QUERY = (U32_1D, F32_1D, F32_1D, F32_1D, F32, F32, F32)
_FREQUENT = (I64_1D, U64_2D, I32_2D)


@kernel(Tuple((OUT_F32_1D, OUT_U32_1D))(*_INDEX, *_QUERY, *_FREQUENT, I64_1D))
def bm25_scores(
    indptr: Indices,
    post_doc: Docs,
    post_weight: Vector,
    fwd_indptr: Indices,
    fwd_term: Words,
    fwd_counts: Words,
    base: int,
    query_terms: Words,
    idf: Vector,
    field_weights: Vector,
    doc_length: Vector,
    mean_length: float,
    k1: float,
    b: float,
    row: Indices,
    presence: Longs,
    before: Counts,
    docs: Indices,
) -> tuple[Vector, Words]:
    """Keyword score of some documents, and which query terms they hold.

    A document scores the same bits whether it is in the index or in the delta.

    Args:
        indptr: (terms + 1,), with `post_doc` and `post_weight`: the index (see the module).
        post_doc: Documents, below `base`.
        post_weight: Counts, weighted by field and summed.
        fwd_indptr: (delta documents + 1,), with `fwd_term` and `fwd_counts`: the delta.
        fwd_term: Terms.
        fwd_counts: Packed counts.
        base: Number of the delta's first document.
        query_terms: (q,); a term given twice counts twice.
        idf: (q,) weight of each query term, not negative.
        field_weights: (4,) not negative: title, tags, body, learned keywords.
        doc_length: (all documents,) weighted length of each, delta included.
        mean_length: Their mean; 0 switches length normalisation off.
        k1: Saturation, not negative.
        b: Share of length normalisation, in [0, 1].
        row: (q,) the row of each term in the next two, of `frequent.presence_of`; -1 for a term that has none.
        presence: (rows, words) uint64.
        before: (rows, words) int32.
        docs: (n,) ascending.

    Returns:
        Scores (n,), 0 where nothing matches, and (n,) words in which bit i says that query term i matched, for the
        first 32 terms. A term that occurs only in fields of weight 0 does not match.
    """
    scores = np.zeros(docs.shape[0], np.float32)
    matched = np.zeros(docs.shape[0], np.uint32)
    gains, floor, slope = _constants(idf, mean_length, k1, b)
    begin, end = _slices(indptr, query_terms)
    indexed = np.searchsorted(docs, base)
    found, which = np.empty((2, indexed + 1), np.int64)
    for term in range(gains.shape[0]):
        held = _find(post_doc, begin[term], end[term], presence, before, row[term], docs[:indexed], found, which)
        for i in range(held):
            if post_weight[found[i]] > 0:
                at = which[i]
                scores[at] += _gain(gains[term], post_weight[found[i]], floor + slope * doc_length[docs[at]])
                matched[at] |= _bit(term)
    order = np.argsort(query_terms, kind="mergesort")
    ordered = query_terms[order]
    sketch = _sketch(query_terms)
    counts = np.zeros(query_terms.shape[0], np.uint32)
    for i in range(indexed, docs.shape[0]):
        first, last = fwd_indptr[docs[i] - base], fwd_indptr[docs[i] - base + 1]
        if _find_query_terms(fwd_term, fwd_counts, first, last, ordered, order, sketch, counts):
            saturation = floor + slope * doc_length[docs[i]]
            scores[i], matched[i] = _score_counts(counts, gains, saturation, field_weights)
    return scores, matched


@helper()
def _is_worse(score: float | np.float32, doc: int, other_score: float | np.float32, other_doc: int) -> bool:
    return bool(score < other_score or (score == other_score and doc > other_doc))


@helper()
def _sink(best: Indices, scores: Vector, parent: int, size: int) -> None:
    """Restore the heap (worst on top) below `parent`."""
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_worse(scores[child + 1], best[child + 1], scores[child], best[child]):
            child += 1
        if not _is_worse(scores[child], best[child], scores[parent], best[parent]):
            return
        scores[parent], scores[child] = scores[child], scores[parent]
        best[parent], best[child] = best[child], best[parent]
        parent = child


@helper()
def _offer(best: Indices, scores: Vector, size: int, doc: int, score: np.float32) -> int:
    """Keep a document that scores if it is one of the best; says how many are kept, a heap once there is no room."""
    if score > 0 and size < best.shape[0]:
        best[size], scores[size] = doc, score
        size += 1
        if size == best.shape[0]:
            for parent in range(size // 2 - 1, -1, -1):
                _sink(best, scores, parent, size)
    elif score > 0 and _is_worse(scores[0], best[0], score, doc):
        best[0], scores[0] = doc, score
        _sink(best, scores, 0, size)
    return size


@helper()
def _keep_reaching(docs: Indices, sums: Vector, size: int, needed: float) -> int:
    """Move those of the first `size` documents whose sums may be as much as that to the front; says how many."""
    kept = 0
    for i in range(size):
        docs[kept], sums[kept] = docs[i], sums[i]
        kept += sums[i] >= needed / _SLACK
    return kept


@kernel(OUT_I64_1D(*_INDEX, *_QUERY, *_FREQUENT, F32_1D, U8_1D, I64))
def best_by_bm25(
    indptr: Indices,
    post_doc: Docs,
    post_weight: Vector,
    fwd_indptr: Indices,
    fwd_term: Words,
    fwd_counts: Words,
    base: int,
    query_terms: Words,
    idf: Vector,
    field_weights: Vector,
    doc_length: Vector,
    mean_length: float,
    k1: float,
    b: float,
    row: Indices,
    presence: Longs,
    before: Counts,
    greatest: Vector,
    allowed: Flags,
    k: int,
) -> Indices:
    """The documents with the best scores, without scoring all.

    A term gives a document its gain times a share at most. Terms that lead are those that can give most: what the
    others can give together does not reach the worst of the best so far. So a document must hold a term that leads;
    the postings of these are summed, and other terms are looked up for documents that may still reach the best.

    Arguments are those of `bm25_scores`, and: `greatest` (q,), of which no document in the index gets a greater share
    of a term's gain; `allowed` (all documents,), nonzero for those that may be found; `k`, of which 0 or less gives
    nothing.

    Returns:
        (at most k,) documents that score more than 0, best first, ties by the smaller number.

    Source: MaxScore, Turtle & Flood, Information Processing & Management 31(6), 1995, here by windows of documents.
    """
    gains, floor, slope = _constants(idf, mean_length, k1, b)
    begin, end = _slices(indptr, query_terms)
    room = max(min(k, doc_length.shape[0]), 0)
    best = np.empty(room, np.int64)
    scores = np.empty(room, np.float32)
    size = 0
    by_term = np.argsort(query_terms, kind="mergesort")
    ordered = query_terms[by_term]
    sketch = _sketch(query_terms)
    counts = np.zeros(query_terms.shape[0], np.uint32)
    for d in range(fwd_indptr.shape[0] - 1 if room > 0 else 0):
        first, last = fwd_indptr[d], fwd_indptr[d + 1]
        if allowed[base + d] == 0:
            continue
        if _find_query_terms(fwd_term, fwd_counts, first, last, ordered, by_term, sketch, counts):
            saturation = floor + slope * doc_length[base + d]
            size = _offer(best, scores, size, base + d, _score_counts(counts, gains, saturation, field_weights)[0])

    bounds = np.where(end > begin, _SLACK * gains.astype(np.float64) * greatest, 0.0)
    order = np.argsort(-bounds, kind="mergesort")
    rest = np.zeros(order.shape[0] + 1, np.float64)
    for place in range(order.shape[0] - 1, -1, -1):
        rest[place] = rest[place + 1] + bounds[order[place]]
    leading = np.count_nonzero(bounds)
    at = begin.copy()
    given = np.zeros(_WINDOW_DOCS, np.float32)
    docs, found, which = np.empty((3, _WINDOW_DOCS + 1), np.int64)
    sums = np.empty(_WINDOW_DOCS, np.float32)
    width = _FIRST_WINDOW_DOCS
    start = 0
    while start < base and room > 0:
        stop = min(start + width, base)
        reached = np.float64(scores[0]) if size == room else 0.0
        while leading > 0 and rest[leading - 1] < reached:
            leading -= 1
        if leading == 0:
            break
        for term in range(gains.shape[0]):
            if row[term] < 0:
                at[term] = _seek(post_doc, at[term], end[term], start)
        many = 0
        for place in range(leading):
            term = order[place]
            p = at[term] if row[term] < 0 else begin[term] + before[row[term], start >> 6]
            held = 0
            while p < end[term] and post_doc[p] < stop:
                found[held] = p
                held += allowed[post_doc[p]] != 0
                p += 1
            for i in range(held):
                p = found[i]
                if post_weight[p] > 0:
                    doc = np.int64(post_doc[p])
                    docs[many] = doc
                    many += given[doc - start] == 0
                    given[doc - start] += _gain(gains[term], post_weight[p], floor + slope * doc_length[doc])
        for i in range(many):
            sums[i] = given[docs[i] - start]
            given[docs[i] - start] = 0
        many = _keep_reaching(docs, sums, many, float(reached - rest[leading]))
        for place in range(leading, order.shape[0]):
            if many == 0:
                break
            term = order[place]
            held = _find(post_doc, at[term], end[term], presence, before, row[term], docs[:many], found, which)
            for i in range(held):
                p, own = found[i], which[i]
                if post_weight[p] > 0:
                    sums[own] += _gain(gains[term], post_weight[p], floor + slope * doc_length[docs[own]])
            many = _keep_reaching(docs, sums, many, reached - rest[place + 1])
        sums[:many] = 0
        for term in range(gains.shape[0] if many > 0 else 0):
            held = _find(post_doc, at[term], end[term], presence, before, row[term], docs[:many], found, which)
            for i in range(held):
                p, own = found[i], which[i]
                if post_weight[p] > 0:
                    sums[own] += _gain(gains[term], post_weight[p], floor + slope * doc_length[docs[own]])
        for i in range(many):
            size = _offer(best, scores, size, docs[i], sums[i])
        start = stop
        width = min(2 * width, _WINDOW_DOCS)
    by_doc = np.argsort(best[:size], kind="mergesort")
    by_score = np.argsort(-scores[:size][by_doc], kind="mergesort")
    return best[:size][by_doc][by_score]


@kernel(OUT_I32_1D(I32_2D, I32_1D, U32_1D))
def paged_counts(pages: Counts, place: Docs, terms: Words) -> Counts:
    """The number of each term in pages of numbers, (pages, width), (runs,) and (n,) -> (n,) int32.

    Page place[r] holds the numbers of the terms from r * width on; terms behind the last run have 0.
    """
    counts = np.zeros(terms.shape[0], np.int32)
    width = pages.shape[1]
    for i in range(terms.shape[0]):
        term = np.int64(terms[i])
        if term // width < place.shape[0]:
            counts[i] = pages[place[term // width], term % width]
    return counts


@kernel(Tuple((OUT_I64_1D, OUT_I32_1D, OUT_F32_1D))(I64_1D, U32_1D, U32_1D, F32_1D, I64))
def invert(
    fwd_indptr: Indices, fwd_term: Words, fwd_counts: Words, field_weights: Vector, terms: int
) -> tuple[Indices, Docs, Vector]:
    """Build the index from forward lists by a counting sort: indptr (terms + 1,), post_doc and post_weight.

    Documents are numbered from 0 in the order of the forward lists, and ascend within a term. Terms of `terms` and
    above are left out, as is what lies outside the slices of `fwd_indptr` (the free end of a growing array).
    """
    indptr = np.zeros(terms + 1, np.int64)
    for d in range(fwd_indptr.shape[0] - 1):
        for p in range(fwd_indptr[d], fwd_indptr[d + 1]):
            if fwd_term[p] < terms:
                indptr[np.int64(fwd_term[p]) + 1] += 1
    for term in range(terms):
        indptr[term + 1] += indptr[term]
    free = indptr.copy()
    post_doc = np.empty(indptr[terms], np.int32)
    post_weight = np.empty(indptr[terms], np.float32)
    for d in range(fwd_indptr.shape[0] - 1):
        for p in range(fwd_indptr[d], fwd_indptr[d + 1]):
            if fwd_term[p] < terms:
                at = free[fwd_term[p]]
                post_doc[at] = d
                post_weight[at] = _weighted_count(fwd_counts[p], field_weights)
                free[fwd_term[p]] += 1
    return indptr, post_doc, post_weight


@kernel(VOID(I64_1D, I32_1D, I64_1D, U32_1D, I64, U32, OUT_U8_1D))
def mark_term(
    indptr: Indices, post_doc: Docs, fwd_indptr: Indices, fwd_term: Words, base: int, term: int, out: Flags
) -> None:
    """Set `out` (docs,) to 1 for every document that holds the term, whatever its counts, and leave the rest as it is.

    Filters (tags, sessions, paths) are terms of the same lists. Arguments are those of `bm25_scores`.
    """
    wanted = np.int64(term)
    if wanted < indptr.shape[0] - 1:
        for p in range(indptr[wanted], indptr[wanted + 1]):
            out[post_doc[p]] = 1
    for d in range(fwd_indptr.shape[0] - 1):
        end = fwd_indptr[d + 1]
        at = fwd_indptr[d] + _lower_bound(fwd_term[fwd_indptr[d] : end], np.uint32(wanted))
        if at < end and fwd_term[at] == wanted:
            out[base + d] = 1
