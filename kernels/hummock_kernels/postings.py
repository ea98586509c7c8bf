"""An inverted index with a delta of newer documents: construction, merging, and look-up of a term's documents.

A term occurs at most once in a document. Counts pack four saturating bytes, least significant first: title, tags, body,
learned keywords. Terms beyond the index's size occur only in the delta.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from hummock_kernels._jit import helper, kernel, named, named_result
from hummock_kernels._processor import bit_count
from hummock_kernels._types import (
    F32_1D,
    I32_1D,
    I32_2D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I32_1D,
    OUT_I32_2D,
    OUT_I64_1D,
    OUT_U8_1D,
    OUT_U64_2D,
    U32,
    U32_1D,
    U64_2D,
    VOID,
    Counts,
    Docs,
    Flags,
    Indices,
    Longs,
    Vector,
    Words,
)


class Index(NamedTuple):
    """Postings of documents numbered from 0.

    Attributes:
        indptr: (terms + 1,) term t has the slice indptr[t]:indptr[t + 1] of the next two.
        doc: Documents, ascending within a term.
        weight: Counts, weighted by field and summed.
    """

    indptr: Indices
    doc: Docs
    weight: Vector


class Delta(NamedTuple):
    """Forward lists of the documents after those of an index.

    Attributes:
        base: Number of the first document; those of the index are below it.
        indptr: (documents + 1,) document base + d has the slice indptr[d]:indptr[d + 1] of the next two.
        term: Terms, ascending within a document.
        counts: Packed counts.
        field_weights: (4,) not negative: title, tags, body, learned keywords.
    """

    base: int
    indptr: Indices
    term: Words
    counts: Words
    field_weights: Vector


Lists: TypeAlias = tuple[Indices, Words, Words]
"""Forward lists: `indptr`, `term` and `counts` of a `Delta`."""


class Presence(NamedTuple):
    """Bitmaps of the documents that contain some of an index's terms, 64 documents per word.

    Attributes:
        held: (n, words) bits, set if a document contains the term; includes a word for the number after the last.
        before: (n, words) number of such documents before each word.
    """

    held: Longs
    before: Counts


INDEX = named(Index, I64_1D, I32_1D, F32_1D)
DELTA = named(Delta, I64, I64_1D, U32_1D, U32_1D, F32_1D)
PRESENCE = named(Presence, U64_2D, I32_2D)
_OUT_INDEX = named_result(Index, OUT_I64_1D, OUT_I32_1D, OUT_F32_1D)
_OUT_PRESENCE = named_result(Presence, OUT_U64_2D, OUT_I32_2D)


@helper(borrows=True)
def weighted_count(counts: np.uint32, field_weights: Vector) -> np.float32:
    """The counts of the four fields, weighted and summed."""
    packed = np.int64(counts)
    total = np.float32(0)
    for field in range(4):
        total += field_weights[field] * np.float32((packed >> (8 * field)) & 255)
    return total


@helper(borrows=True)
def lower_bound(ordered: Words, term: np.uint32) -> int:
    """Place of the first of these terms that is not below `term`."""
    low = 0
    high = ordered.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(VOID(I64_1D, U32_1D, OUT_I64_1D))
def count_postings(indptr: Indices, term: Words, begin: Indices) -> None:
    """Add the number of forward lists with each term to `begin` (terms + 1,), that of term t at t + 1.

    Terms without a place are left out, as are values outside the slices of `indptr` (the free end of a growing
    array).
    """
    terms = begin.shape[0] - 1
    for d in range(indptr.shape[0] - 1):
        for p in range(indptr[d], indptr[d + 1]):
            if term[p] < terms:
                begin[np.int64(term[p]) + 1] += 1


@kernel(VOID(I64_1D, U32_1D, U32_1D, F32_1D, I64, OUT_I64_1D, OUT_I32_1D, OUT_F32_1D))
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
    """Put the postings of forward lists, numbered from `first`, into an index.

    Args:
        indptr: See `Delta`, also for the next two.
        term: Terms without a place in `free` are left out.
        counts: Packed counts.
        field_weights: See `Delta`.
        first: At least the number of documents put before.
        free: (terms + 1,) position of each term's next posting; advanced.
        doc: Documents of the index's postings; written to.
        weight: Weights of the index's postings; written to.
    """
    terms = free.shape[0] - 1
    for d in range(indptr.shape[0] - 1):
        for p in range(indptr[d], indptr[d + 1]):
            if term[p] < terms:
                at = free[term[p]]
                doc[at] = first + d
                weight[at] = weighted_count(counts[p], field_weights)
                free[term[p]] += 1


def invert(parts: Sequence[Lists], field_weights: Vector, terms: int) -> Index:
    """Index of forward lists, by a counting sort; documents are numbered from 0 in the order of the lists.

    Args:
        parts: Consecutive lists, each with its own `indptr`; read twice.
        field_weights: See `Delta`.
        terms: Number of terms to keep; terms of this number and above are left out.
    """
    begin = np.zeros(terms + 1, np.int64)
    for indptr, term, _ in parts:
        count_postings(indptr, term, begin)
    np.cumsum(begin, out=begin)
    index = Index(begin, np.empty(begin[terms], np.int32), np.empty(begin[terms], np.float32))
    free = begin.copy()
    first = 0
    for indptr, term, counts in parts:
        put_postings(indptr, term, counts, field_weights, first, free, index.doc, index.weight)
        first += len(indptr) - 1
    return index


@kernel(_OUT_INDEX(INDEX, INDEX, I64, I32_1D))
def merge_postings(older: Index, newer: Index, base: int, place: Docs) -> Index:
    """Merged index of older and newer documents under new numbers; safe during concurrent reads and writes.

    One pass, without sorting.

    Args:
        older: Index of documents below `base`.
        newer: Index of documents counted from `base`, with at least as many terms.
        base: Number of the first newer document.
        place: (documents of both,) the new number of each, ascending; one below 0 is left out.
    """
    terms = newer.indptr.shape[0] - 1
    indptr = np.zeros(terms + 1, np.int64)
    older_doc, older_weight, newer_doc, newer_weight = older.doc, older.weight, newer.doc, newer.weight
    docs = np.empty(older_doc.shape[0] + newer_doc.shape[0], np.int32)
    weights = np.empty(docs.shape[0], np.float32)
    size = 0
    for term in range(terms):
        if term < older.indptr.shape[0] - 1:
            for p in range(older.indptr[term], older.indptr[term + 1]):
                doc = place[older_doc[p]]
                docs[size], weights[size] = doc, older_weight[p]
                size += doc >= 0
        for p in range(newer.indptr[term], newer.indptr[term + 1]):
            doc = place[base + newer_doc[p]]
            docs[size], weights[size] = doc, newer_weight[p]
            size += doc >= 0
        indptr[term + 1] = size
    return Index(indptr, docs[:size], weights[:size])


@kernel(_OUT_PRESENCE(INDEX, I64_1D, I64))
def presence_of(index: Index, terms: Indices, docs: int) -> Presence:
    """Bitmaps of these terms (n,), which are all in the index; `docs` is the number of documents."""
    held = np.zeros((terms.shape[0], docs // 64 + 1), np.uint64)
    before = np.zeros(held.shape, np.int32)
    for row in range(terms.shape[0]):
        for p in range(index.indptr[terms[row]], index.indptr[terms[row] + 1]):
            held[row, index.doc[p] >> 6] |= np.uint64(1) << np.uint64(index.doc[p] & 63)
        for word in range(1, held.shape[1]):
            before[row, word] = before[row, word - 1] + np.int32(bit_count(held[row, word - 1]))
    return Presence(held, before)


@helper()
def counts_of(pages: Counts, place: Docs, terms: Words) -> Counts:
    """Read the value of each term; see `paged_counts`."""
    counts = np.zeros(terms.shape[0], np.int32)
    width = pages.shape[1]
    for i in range(terms.shape[0]):
        term = np.int64(terms[i])
        if term // width < place.shape[0]:
            counts[i] = pages[place[term // width], term % width]
    return counts


@kernel(OUT_I32_1D(I32_2D, I32_1D, U32_1D))
def paged_counts(pages: Counts, place: Docs, terms: Words) -> Counts:
    """The value of each term in pages of values, (pages, width), (runs,) and (n,) -> (n,) int32.

    Page place[r] has the values of the terms from r * width on; terms after the last run have 0.
    """
    return counts_of(pages, place, terms)


@kernel(VOID(INDEX, DELTA, U32, OUT_U8_1D))
def mark_term(index: Index, delta: Delta, term: int, out: Flags) -> None:
    """Set `out` (docs,) to 1 for every document that contains the term, whatever its counts; others are unchanged.

    Filters (tags, sessions, paths) are terms of the same lists.
    """
    wanted = np.int64(term)
    if wanted < index.indptr.shape[0] - 1:
        for p in range(index.indptr[wanted], index.indptr[wanted + 1]):
            out[index.doc[p]] = 1
    indptr, terms = delta.indptr, delta.term
    for d in range(indptr.shape[0] - 1):
        at = indptr[d] + lower_bound(terms[indptr[d] : indptr[d + 1]], np.uint32(wanted))
        if at < indptr[d + 1] and terms[at] == wanted:
            out[delta.base + d] = 1
