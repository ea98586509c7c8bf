"""BM25F over an inverted index and the documents that are newer than it.

Postings of term t are the slice indptr[t]:indptr[t + 1] of `post_doc` and `post_weight`. Documents from `base` on, the
delta, are not in it: document base + d has the slice fwd_indptr[d]:fwd_indptr[d + 1] of `fwd_term` and `fwd_counts`. A
term occurs at most once in a document. Counts pack four saturating bytes, least significant first: title, tags, body,
learned keywords. Terms beyond the index's size occur in the delta alone.

Source: Robertson, Zaragoza & Taylor, CIKM 2004 (weighted fields); Robertson & Zaragoza, 2009.
"""

import numpy as np

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
    U32,
    U32_1D,
    VOID,
    Counts,
    Docs,
    Flags,
    Indices,
    Tuple,
    Vector,
    Words,
)

_SKETCH_SIZE = 1024  # a power of two


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


_SCORES_SIGNATURE = Tuple((OUT_F32_1D, OUT_U32_1D))(
    I64_1D,
    I32_1D,
    F32_1D,
    I64_1D,
    U32_1D,
    U32_1D,
    I64,
    U32_1D,
    F32_1D,
    F32_1D,
    F32_1D,
    F32,
    F32,
    F32,
)


@kernel(_SCORES_SIGNATURE)
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
) -> tuple[Vector, Words]:
    """Keyword score of every document, and which query terms it holds.

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
        idf: (q,) weight of each query term.
        field_weights: (4,) not negative: title, tags, body, learned keywords.
        doc_length: (docs,) weighted length of each document, delta included.
        mean_length: Their mean; 0 switches length normalisation off.
        k1: Saturation, not negative.
        b: Share of length normalisation, in [0, 1].

    Returns:
        Scores (docs,), 0 where nothing matches, and (docs,) words in which bit i says that query term i matched, for
        the first 32 terms. A term that occurs only in fields of weight 0 does not match.
    """
    docs = doc_length.shape[0]
    scores = np.zeros(docs, np.float32)
    matched = np.zeros(docs, np.uint32)
    # A document's count saturates at a point that grows with its length: floor + slope * length.
    floor = np.float32(k1 * (np.float32(1) - b))
    slope = np.float32(k1 * b / mean_length) if mean_length > 0 else np.float32(0)
    gains = (idf * (k1 + np.float32(1))).astype(np.float32)
    for position in range(query_terms.shape[0]):
        term = np.int64(query_terms[position])
        if term >= indptr.shape[0] - 1:
            continue
        gain, bit = gains[position], _bit(position)
        for p in range(indptr[term], indptr[term + 1]):
            if post_weight[p] > 0:
                doc = post_doc[p]
                scores[doc] += _gain(gain, post_weight[p], floor + slope * doc_length[doc])
                matched[doc] |= bit
    order = np.argsort(query_terms, kind="mergesort")
    ordered = query_terms[order]
    sketch = _sketch(query_terms)
    found = np.zeros(query_terms.shape[0], np.uint32)
    for d in range(fwd_indptr.shape[0] - 1):
        start, end = fwd_indptr[d], fwd_indptr[d + 1]
        if not _find_query_terms(fwd_term, fwd_counts, start, end, ordered, order, sketch, found):
            continue
        doc = base + d
        # In the order of the query, as above: float32 sums depend on it.
        for position in range(query_terms.shape[0]):
            weight = _weighted_count(found[position], field_weights)
            found[position] = 0
            if weight > 0:
                scores[doc] += _gain(gains[position], weight, floor + slope * doc_length[doc])
                matched[doc] |= _bit(position)
    return scores, matched


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
