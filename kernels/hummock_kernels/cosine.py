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
def _dot(rows: Halves, row: int, query: Vector) -> np.float32:
    # float32 start value: 0.0 would widen the accumulator to float64.
    total = np.float32(0)
    for column in range(query.shape[0]):
        total += _half(rows[row, column]) * query[column]
    return total


@helper()
def _is_worse(score: np.float32, doc: int, other_score: np.float32, other_doc: int) -> bool:
    return bool(score < other_score or (score == other_score and doc > other_doc))


@helper()
def _sink(scores: Vector, docs: Indices, rows: Indices, start: int, size: int) -> None:
    """Restore the heap (worst on top) below `start`."""
    parent = start
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_worse(scores[child + 1], docs[child + 1], scores[child], docs[child]):
            child += 1
        if not _is_worse(scores[child], docs[child], scores[parent], docs[parent]):
            return
        _swap(scores, docs, rows, parent, child)
        parent = child


@helper()
def _swap(scores: Vector, docs: Indices, rows: Indices, one: int, other: int) -> None:
    scores[one], scores[other] = scores[other], scores[one]
    docs[one], docs[other] = docs[other], docs[one]
    rows[one], rows[other] = rows[other], rows[one]


@helper()
def _heapify(scores: Vector, docs: Indices, rows: Indices, size: int) -> None:
    for start in range(size // 2 - 1, -1, -1):
        _sink(scores, docs, rows, start, size)


@kernel(OUT_F32_1D(U16_2D, F32_1D, I64_1D))
def score_rows(rows: Halves, query: Vector, picks: Indices) -> Vector:
    """Similarity of the picked rows to the query, (n, dim), (dim,) and (m,) -> (m,) float32 in the order of picks.

    Rows are float16 unit vectors in uint16, the query is a finite unit vector; picks are valid row numbers, repeats
    allowed. A row that holds a NaN scores NaN.
    """
    scores = np.empty(picks.shape[0], np.float32)
    for i in range(picks.shape[0]):
        scores[i] = _dot(rows, picks[i], query)
    return scores


@kernel(Tuple((OUT_I64_1D, OUT_I64_1D, OUT_F32_1D))(U16_2D, I32_1D, U8_1D, F32_1D, F32, I64))
def scan(
    rows: Halves, row_doc: Docs, allowed: Flags, query: Vector, minimum: float, k: int
) -> tuple[Indices, Indices, Vector]:
    """The k best documents by their best chunk: filter, cosine and selection in one pass over the rows.

    Args:
        rows: (n, dim) float16 unit vectors in uint16.
        row_doc: (n,) document of each row, ascending: the chunks of a document are neighbours.
        allowed: (docs,) nonzero for documents that may be returned.
        query: (dim,) finite unit vector.
        minimum: Documents whose similarity is below it are left out; minus infinity keeps all.
        k: Upper bound on the result; 0 or less gives nothing.

    Returns:
        Document, row of its best chunk (the smaller row on a tie) and similarity, three arrays of equal length, best
        first, ties by the smaller document. Rows whose similarity is not finite are skipped.
    """
    room = max(min(k, rows.shape[0]), 0)
    scores = np.empty(room, np.float32)
    docs = np.empty(room, np.int64)
    best_rows = np.empty(room, np.int64)
    size = 0
    row = 0
    while row < rows.shape[0] and room > 0:
        doc = row_doc[row]
        best = np.float32(-np.inf)
        best_row = -1
        while row < rows.shape[0] and row_doc[row] == doc:
            if allowed[doc] != 0:
                score = _dot(rows, row, query)
                if score > best and np.isfinite(score):
                    best = score
                    best_row = row
            row += 1
        if best_row < 0 or best < minimum:
            continue
        if size < room:
            scores[size], docs[size], best_rows[size] = best, doc, best_row
            size += 1
            if size == room:
                _heapify(scores, docs, best_rows, size)
        # Documents come in ascending order, so an equal score never displaces one that is in.
        elif best > scores[0]:
            scores[0], docs[0], best_rows[0] = best, doc, best_row
            _sink(scores, docs, best_rows, 0, size)
    if size < room:
        _heapify(scores, docs, best_rows, size)
    for last in range(size - 1, 0, -1):
        _swap(scores, docs, best_rows, 0, last)
        _sink(scores, docs, best_rows, 0, last)
    return docs[:size], best_rows[:size], scores[:size]


@kernel(OUT_F32_2D(U16_2D, I64_1D))
def decode_rows(rows: Halves, picks: Indices) -> Matrix:
    """The picked rows as float32, exactly, (n, dim) and (m,) -> (m, dim); picks are valid rows, repeats allowed."""
    decoded = np.empty((picks.shape[0], rows.shape[1]), np.float32)
    for i in range(picks.shape[0]):
        # Slices: an index that could be negative, looked at for each component, keeps the loop from being vectorised.
        source, target = rows[picks[i]], decoded[i]
        for column in range(rows.shape[1]):
            target[column] = _half(source[column])
    return decoded
