"""Cosine similarity of float16 rows with a query, by row or by document, and of texts by their token vectors.

Rows are stored as float16 in uint16 and decoded as they are read: half the memory traffic of float32.
"""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import REASSOCIATE, helper, kernel, named
from hummock_kernels._processor import fetch, half
from hummock_kernels._types import (
    F32,
    F32_1D,
    I8_2D,
    I32_1D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I64_1D,
    U8_1D,
    U16_2D,
    Bytes,
    Docs,
    Flags,
    Halves,
    Indices,
    Shorts,
    Tuple,
    Vector,
)
from hummock_kernels.topk import offer, put_in_order

_AHEAD = 8
"""Number of rows to prefetch ahead of their use."""

_LINE = 32
"""Values per cache line."""

# Token vectors are unit vectors times 127.
_TOKEN_SCALE = np.float32(1 / 127**2)


class Chunks(NamedTuple):
    """The vectors of documents.

    Attributes:
        rows: (n, dim) float16 unit vectors in uint16.
        start: (docs,) first row of each document.
        size: (docs,) number of each document's consecutive rows; 0 is allowed.
    """

    rows: Halves
    start: Indices
    size: Docs


CHUNKS = named(Chunks, U16_2D, I64_1D, I32_1D)


@helper(fastmath=REASSOCIATE)
def _dot(row: Halves, query: Vector) -> np.float32:
    # float32 start value: 0.0 would widen the accumulator to float64.
    total = np.float32(0)
    for column in range(query.shape[0]):
        total += half(row[column]) * query[column]
    return total


@helper()
def _asking(query: Vector) -> tuple[int, int]:
    """Range of dims that the query uses, in whole cache lines: one of two models' halves may be zero."""
    first, end = 0, query.shape[0]
    while first < end and query[first] == 0:
        first += 1
    while end > first and query[end - 1] == 0:
        end -= 1
    return first - first % _LINE, end


@helper()
def _fetch_ahead(rows: Halves, row: int, left: int, right: int) -> None:
    """Prefetch dims of a row that is needed soon: waiting for scattered rows takes twice as long as reading them."""
    values = rows.reshape(-1)
    first = row * rows.shape[1]
    for column in range(first + left, first + right, _LINE):
        fetch(values, column)


@kernel(OUT_F32_1D(U16_2D, F32_1D, I64_1D))
def score_rows(rows: Halves, query: Vector, picks: Indices) -> Vector:
    """Similarity of the picked rows to the query, (n, dim), (dim,) and (m,) -> (m,) float32 in the order of picks.

    Rows are float16 unit vectors in uint16, the query is a finite unit vector; picks are valid row numbers, repeats
    allowed. A row with a NaN where the query is not zero scores NaN.
    """
    scores = np.empty(picks.shape[0], np.float32)
    left, right = _asking(query)
    asked = query[left:right]
    for i in range(picks.shape[0]):
        if i + _AHEAD < picks.shape[0]:
            _fetch_ahead(rows, picks[i + _AHEAD], left, right)
        scores[i] = _dot(rows[picks[i], left:right], asked)
    return scores


@helper()
def _marked(allowed: Flags) -> Docs:
    """Indices of nonzero values. Branchless, as a filter that passes some of many would mispredict half."""
    marked = np.empty(allowed.shape[0] + 1, np.int32)
    size = 0
    for doc in range(allowed.shape[0]):
        marked[size] = doc
        size += allowed[doc] != 0
    return marked[:size]


@helper()
def _best_chunk(rows: Halves, start: int, count: int, asked: Vector, left: int) -> tuple[np.float32, int]:
    """The best finite similarity among a document's rows, and its row; minus infinity and -1 without any."""
    best = np.float32(-np.inf)
    best_row = -1
    for row in range(start, start + count):
        score = _dot(rows[row, left : left + asked.shape[0]], asked)
        if score > best and np.isfinite(score):
            best = score
            best_row = row
    return best, best_row


@helper()
def _best_of_each(rows: Halves, start: Indices, count: Docs, docs: Docs, query: Vector) -> Vector:
    """The best finite similarity among each ascending document's rows; minus infinity without any."""
    best = np.empty(docs.shape[0], np.float32)
    left, right = _asking(query)
    asked = query[left:right]
    for i in range(docs.shape[0]):
        # The processor's own prefetcher suffices if no row is skipped.
        if i + _AHEAD < docs.shape[0] and docs[i + _AHEAD] - docs[i] > _AHEAD:
            _fetch_ahead(rows, start[docs[i + _AHEAD]], left, right)
        first = start[docs[i]]
        best[i] = -np.inf
        for row in range(first, first + count[docs[i]]):
            score = _dot(rows[row, left:right], asked)
            if best[i] < score < np.inf:
                best[i] = score
    return best


@kernel(Tuple((OUT_I64_1D, OUT_F32_1D))(CHUNKS, U8_1D, F32_1D, F32, I64))
def scan(chunks: Chunks, allowed: Flags, query: Vector, minimum: float, k: int) -> tuple[Indices, Vector]:
    """The k best documents by their best chunk: filter, cosine and selection in one pass.

    Args:
        chunks: Chunks of all documents.
        allowed: (docs,) nonzero for documents that may be returned.
        query: (dim,) finite unit vector.
        minimum: Documents whose similarity is below it are left out; minus infinity keeps all.
        k: Upper bound on the result; 0 or less gives nothing.

    Returns:
        Document and similarity, two arrays of equal length, best first, ties by the smaller document. Rows whose
        similarity is not finite are skipped.
    """
    marked = _marked(allowed)
    # Scores first, then the choice: a loop that does both reads a fifth slower.
    similarity = _best_of_each(chunks.rows, chunks.start, chunks.size, marked, query)
    room = max(min(k, marked.shape[0]), 0)
    scores = np.empty(room, np.float32)
    docs = np.empty(room, np.int64)
    size = 0
    worst = np.float32(-np.inf)
    for i in range(marked.shape[0] if room > 0 else 0):
        if similarity[i] > worst and similarity[i] >= minimum and np.isfinite(similarity[i]):
            size = offer(scores, docs, size, marked[i], similarity[i])
            if size == room:
                worst = scores[0]
    put_in_order(scores, docs, size)
    return docs[:size], scores[:size]


@helper()
def best_chunks_of(chunks: Chunks, docs: Indices, query: Vector) -> tuple[Vector, Indices, Indices]:
    """Each document's best chunk: its similarity, its number within the document, and its row.

    (m,) and (dim,) -> (m,) float32, (m,) int64 and (m,) int64 in the order of `docs`.

    Ties go to the first chunk. Without a query (0,) it is the first chunk, with a similarity of NaN. A document
    without a finite similarity has NaN, the number 0 and its first row; one without rows the row -1.
    """
    rows, start, count = chunks
    cosine = np.full(docs.shape[0], np.nan, np.float32)
    number = np.zeros(docs.shape[0], np.int64)
    best = np.full(docs.shape[0], -1, np.int64)
    left, right = _asking(query)
    asked = query[left:right]
    for i in range(docs.shape[0]):
        if query.shape[0] > 0 and i + _AHEAD < docs.shape[0]:
            _fetch_ahead(rows, start[docs[i + _AHEAD]], left, right)
        first = start[docs[i]]
        if count[docs[i]] == 0:
            continue
        best[i] = first
        if query.shape[0] > 0:
            similarity, row = _best_chunk(rows, first, count[docs[i]], asked, left)
            if row >= 0:
                # float16 rows are not exactly of length 1.
                cosine[i] = min(max(similarity, np.float32(-1)), np.float32(1))
                best[i] = row
        number[i] = best[i] - first
    return cosine, number, best


@helper()
def best_cosines_of(chunks: Chunks, docs: Indices, query: Vector) -> Vector:
    """Similarity of each document's best chunk, as in `best_chunks_of`, for a query that has a vector."""
    rows, start, count = chunks
    cosine = np.full(docs.shape[0], np.nan, np.float32)
    left, right = _asking(query)
    asked = query[left:right]
    for i in range(docs.shape[0]):
        if i + _AHEAD < docs.shape[0]:
            _fetch_ahead(rows, start[docs[i + _AHEAD]], left, right)
        best, row = _best_chunk(rows, start[docs[i]], count[docs[i]], asked, left)
        if row >= 0:
            cosine[i] = min(max(best, np.float32(-1)), np.float32(1))
    return cosine


@helper()
def _token_dot(query: Shorts, q: int, tokens: Bytes, t: int) -> np.int32:
    # Casts after each step: Numba widens integer arithmetic to 64 bits, which halves the lanes. At 32 bits, with one
    # side already 16 wide, the loop becomes multiply-and-add of pairs (vpmaddwd).
    total = np.int32(0)
    for column in range(tokens.shape[1]):
        total = np.int32(total + np.int32(np.int32(query[q, column]) * np.int32(tokens[t, column])))
    return total


@helper()
def _best_token(query: Shorts, q: int, tokens: Bytes, start: int, end: int) -> np.int32:
    best = _token_dot(query, q, tokens, start)
    for t in range(start + 1, end):
        best = max(best, _token_dot(query, q, tokens, t))
    return best


@kernel(OUT_F32_1D(I8_2D, I8_2D, I64_1D, U8_1D))
def max_sims(query: Bytes, tokens: Bytes, start: Indices, asked: Flags) -> Vector:
    """Mean, over a query's tokens, of the best cosine with any token of a candidate.

    (q, dim), (t, dim), (n + 1,) and (n,) -> (n,) float32 in [-1, 1], up to rounding. Candidate i has the tokens from
    start[i] to start[i + 1]; one without any, or not asked, gets NaN, and so do all if the query has no tokens.

    Args:
        query: Unit vectors times 127, or zeros.
        tokens: Token vectors of all candidates, in the form of `query`.
        start: Ascending, from 0 to t.
        asked: Nonzero for candidates to score.

    Source: Khattab & Zaharia, SIGIR 2020.
    """
    n = start.shape[0] - 1
    sims = np.full(n, np.nan, np.float32)
    wide = query.astype(np.int16)
    for i in range(n):
        if start[i] == start[i + 1] or query.shape[0] == 0 or asked[i] == 0:
            continue
        # Whole numbers until the end: the sum is exact and does not depend on its order.
        total = np.int64(0)
        for q in range(query.shape[0]):
            total += _best_token(wide, q, tokens, start[i], start[i + 1])
        sims[i] = np.float32(total) * _TOKEN_SCALE / np.float32(query.shape[0])
    return sims
