"""Cosine over float16 rows: gather, fused scan, decode.

Rows are stored as float16 in uint16 and decoded as they are read: half the memory traffic of float32. Everything that
decodes lives in this file, because a helper shared across files would outlive its edits in the compiled cache.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from hummock_kernels._jit import HAS_F16C, IS_COMPILED, REASSOCIATE, helper, intrinsic, kernel, types
from hummock_kernels._types import (
    F32,
    F32_1D,
    I32_1D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_F32_2D,
    OUT_I64_1D,
    U8_1D,
    U16_2D,
    Docs,
    Flags,
    Halves,
    Indices,
    Matrix,
    Tuple,
    Vector,
)

_AHEAD = 4
"""How many rows ahead of their use rows are fetched."""

_LINE = 32
"""Values of a cache line."""

# Value of the last mantissa bit for each exponent; 0 is the subnormals', which share the exponent of 1.
_UNIT = np.array([2.0 ** (max(exponent, 1) - 25) for exponent in range(31)], np.float32)


@intrinsic
def _half_by_cpu(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@helper()
def _half_by_hand(bits: np.uint16) -> np.float32:
    pattern = np.int64(bits)
    exponent = (pattern >> 10) & 31
    mantissa = pattern & 1023
    if exponent == 31:
        magnitude = np.float32(np.inf) if mantissa == 0 else np.float32(np.nan)
    elif exponent == 0:
        magnitude = np.float32(mantissa) * _UNIT[0]
    else:
        magnitude = np.float32(mantissa + 1024) * _UNIT[exponent]
    return -magnitude if pattern >> 15 else magnitude


_half = _half_by_cpu if HAS_F16C and IS_COMPILED else _half_by_hand


@helper(fastmath=REASSOCIATE)
def _dot(row: Halves, query: Vector) -> np.float32:
    # float32 start value: 0.0 would widen the accumulator to float64.
    total = np.float32(0)
    for column in range(query.shape[0]):
        total += _half(row[column]) * query[column]
    return total


@intrinsic
def _prefetch_by_cpu(typing_context: Any, values: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        name = "llvm.prefetch.p0i8"
        declared = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = builder.module.globals.get(name) or ir.Function(builder.module, declared, name)
        # To be read, to be kept in every cache, data.
        builder.call(prefetch, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(values, at), generate


def _prefetch_not(values: Halves, at: int) -> None:
    """Plain Python has no caches to fill."""


_prefetch = _prefetch_by_cpu if IS_COMPILED else _prefetch_not


@helper()
def _fetch_ahead(rows: Halves, row: int) -> None:
    """Begin to load a row that is needed soon: rows that lie apart are waited for twice as long as they are read."""
    values = rows.reshape(-1)
    first = row * rows.shape[1]
    for column in range(0, rows.shape[1], _LINE):
        _prefetch(values, first + column)


@helper()
def _decode(source: Halves, target: Vector) -> None:
    for column in range(source.shape[0]):
        target[column] = _half(source[column])


@helper()
def _is_worse(score: np.float32, doc: int, other_score: np.float32, other_doc: int) -> bool:
    return bool(score < other_score or (score == other_score and doc > other_doc))


@helper()
def _sink(scores: Vector, docs: Indices, start: int, size: int) -> None:
    """Restore the heap (worst on top) below `start`."""
    parent = start
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_worse(scores[child + 1], docs[child + 1], scores[child], docs[child]):
            child += 1
        if not _is_worse(scores[child], docs[child], scores[parent], docs[parent]):
            return
        _swap(scores, docs, parent, child)
        parent = child


@helper()
def _swap(scores: Vector, docs: Indices, one: int, other: int) -> None:
    scores[one], scores[other] = scores[other], scores[one]
    docs[one], docs[other] = docs[other], docs[one]


@helper()
def _heapify(scores: Vector, docs: Indices, size: int) -> None:
    for start in range(size // 2 - 1, -1, -1):
        _sink(scores, docs, start, size)


@kernel(OUT_F32_1D(U16_2D, F32_1D, I64_1D))
def score_rows(rows: Halves, query: Vector, picks: Indices) -> Vector:
    """Similarity of the picked rows to the query, (n, dim), (dim,) and (m,) -> (m,) float32 in the order of picks.

    Rows are float16 unit vectors in uint16, the query is a finite unit vector; picks are valid row numbers, repeats
    allowed. A row that holds a NaN scores NaN.
    """
    scores = np.empty(picks.shape[0], np.float32)
    for i in range(picks.shape[0]):
        if i + _AHEAD < picks.shape[0]:
            _fetch_ahead(rows, picks[i + _AHEAD])
        scores[i] = _dot(rows[picks[i]], query)
    return scores


@helper()
def _marked(allowed: Flags) -> Docs:
    """Indices of what is not zero. Written without a branch: a filter that passes some of many mispredicts half."""
    marked = np.empty(allowed.shape[0] + 1, np.int32)
    size = 0
    for doc in range(allowed.shape[0]):
        marked[size] = doc
        size += allowed[doc] != 0
    return marked[:size]


@helper()
def _best_chunk(rows: Halves, start: int, count: int, query: Vector) -> tuple[np.float32, int]:
    """The best finite similarity among a document's rows and its row; minus infinity and -1 without any."""
    best = np.float32(-np.inf)
    best_row = -1
    for row in range(start, start + count):
        score = _dot(rows[row], query)
        if score > best and np.isfinite(score):
            best = score
            best_row = row
    return best, best_row


@helper()
def _best_of_each(rows: Halves, start: Indices, count: Docs, docs: Docs, query: Vector) -> Vector:
    """The best finite similarity among the rows of each of these documents, which ascend; minus infinity for none."""
    best = np.empty(docs.shape[0], np.float32)
    for i in range(docs.shape[0]):
        # The processor itself looks ahead where nothing is left out.
        if i + _AHEAD < docs.shape[0] and docs[i + _AHEAD] - docs[i] > _AHEAD:
            _fetch_ahead(rows, start[docs[i + _AHEAD]])
        first = start[docs[i]]
        best[i] = -np.inf
        for row in range(first, first + count[docs[i]]):
            score = _dot(rows[row], query)
            if best[i] < score < np.inf:
                best[i] = score
    return best


@kernel(Tuple((OUT_I64_1D, OUT_F32_1D))(U16_2D, I64_1D, I32_1D, U8_1D, F32_1D, F32, I64))
def scan(
    rows: Halves, start: Indices, count: Docs, allowed: Flags, query: Vector, minimum: float, k: int
) -> tuple[Indices, Vector]:
    """The k best documents by their best chunk: filter, cosine and selection in one pass.

    Args:
        rows: (n, dim) float16 unit vectors in uint16.
        start: (docs,) first row of each document.
        count: (docs,) its rows, which follow one another; 0 is allowed.
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
    similarity = _best_of_each(rows, start, count, marked, query)
    room = max(min(k, marked.shape[0]), 0)
    scores = np.empty(room, np.float32)
    docs = np.empty(room, np.int64)
    size = 0
    for i in range(marked.shape[0] if room > 0 else 0):
        if not np.isfinite(similarity[i]) or similarity[i] < minimum:
            continue
        if size < room:
            scores[size], docs[size] = similarity[i], marked[i]
            size += 1
            if size == room:
                _heapify(scores, docs, size)
        # Documents come in ascending order, so an equal score never displaces one that is in.
        elif similarity[i] > scores[0]:
            scores[0], docs[0] = similarity[i], marked[i]
            _sink(scores, docs, 0, size)
    if size < room:
        _heapify(scores, docs, size)
    for last in range(size - 1, 0, -1):
        _swap(scores, docs, 0, last)
        _sink(scores, docs, 0, last)
    return docs[:size], scores[:size]


@kernel(Tuple((OUT_F32_1D, OUT_I64_1D, OUT_F32_2D))(U16_2D, I64_1D, I32_1D, I64_1D, F32_1D))
def best_chunks(
    rows: Halves, start: Indices, count: Docs, docs: Indices, query: Vector
) -> tuple[Vector, Indices, Matrix]:
    """Each document's best chunk: its similarity, its number within the document, and its vector.

    (n, dim), (docs,), (docs,), (m,) and (dim,) -> (m,) float32, (m,) int64 and (m, dim) float32 in the order of `docs`.

    Of equal chunks it is the first. Without a query (0,) it is the first one, with a similarity of NaN. A document
    without a finite similarity has NaN, the number 0 and its first vector; one without rows a zero vector.
    """
    cosine = np.full(docs.shape[0], np.nan, np.float32)
    number = np.zeros(docs.shape[0], np.int64)
    vectors = np.zeros((docs.shape[0], rows.shape[1]), np.float32)
    for i in range(docs.shape[0]):
        if i + _AHEAD < docs.shape[0]:
            _fetch_ahead(rows, start[docs[i + _AHEAD]])
        first = start[docs[i]]
        if count[docs[i]] == 0:
            continue
        best_row = first
        if query.shape[0] > 0:
            best, row = _best_chunk(rows, first, count[docs[i]], query)
            if row >= 0:
                # float16 rows are not quite of length 1.
                cosine[i] = min(max(best, np.float32(-1)), np.float32(1))
                best_row = row
        number[i] = best_row - first
        _decode(rows[best_row], vectors[i])
    return cosine, number, vectors
