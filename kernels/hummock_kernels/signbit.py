"""The signs of vectors as bits: a prefilter that reads a sixteenth of what float16 rows take.

A row loses its values and keeps their signs; the query keeps its values in two bits. A sign that differs from the
query's counts as much as the query's value there. That orders rows roughly: what it selects is scored exactly
afterwards.
"""

from typing import Any

import numpy as np

from hummock_kernels._jit import IS_COMPILED, helper, intrinsic, kernel, types
from hummock_kernels._types import (
    I32_1D,
    I64,
    OUT_I64_1D,
    OUT_U64_2D,
    U8_1D,
    U16_2D,
    U64_2D,
    Docs,
    Flags,
    Halves,
    Indices,
    Longs,
)

WORD_BITS = 64
_BLOCK_ROWS = 1024


@intrinsic
def _count_by_cpu(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _count_by_hand(word: np.uint64) -> int:
    return int(word).bit_count()


_bit_count = _count_by_cpu if IS_COMPILED else _count_by_hand


@kernel(OUT_U64_2D(U16_2D))
def sign_bits(rows: Halves) -> Longs:
    """The signs of float16 values in uint16, (n, dim) -> (n, words) uint64, 64 dims a word.

    Bit b of word w is set when dim 64 * w + b is negative (-0.0 too); the last word is filled up with zeros.
    """
    dim = rows.shape[1]
    bits = np.zeros((rows.shape[0], -(-dim // WORD_BITS)), np.uint64)
    for row in range(rows.shape[0]):
        for word in range(bits.shape[1]):
            start = word * WORD_BITS
            gathered = np.uint64(0)
            for column in range(start, min(start + WORD_BITS, dim)):
                gathered |= np.uint64(rows[row, column] >> 15) << np.uint64(column - start)
            bits[row, word] = gathered
    return bits


@helper()
def _find_allowed(row_doc: Docs, allowed: Flags, start: int, rows: Indices) -> int:
    """Write the allowed rows of the block that begins at `start` into `rows`; says how many."""
    # Written without a branch: a filter that passes every other row would be mispredicted at every other row.
    found = 0
    for row in range(start, min(start + rows.shape[0], row_doc.shape[0])):
        rows[found] = row
        found += allowed[row_doc[row]] != 0
    return found


@helper()
def _weight_of_differing(bits: Longs, row: int, query: Longs) -> np.int64:
    ones = np.uint64(0)
    twos = np.uint64(0)
    for word in range(bits.shape[1]):
        differing = bits[row, word] ^ query[0, word]
        ones += _bit_count(differing & query[1, word])
        twos += _bit_count(differing & query[2, word])
    return np.int64(ones + twos + twos)


@helper()
def _keep_lightest(rows: Indices, weights: Indices, counts: Indices, size: int, keep: int) -> int:
    """Move the `keep` of the first `size` rows that weigh least to the front, in their order.

    Returns what a later row must be below to be better than one of them. There are more than `keep` rows; of equal
    ones the earlier are kept.
    """
    counts[:] = 0
    for at in range(size):
        counts[weights[at]] += 1
    last = 0
    below = 0
    while below + counts[last] <= keep:
        below += counts[last]
        last += 1
    ties = keep - below
    kept = 0
    for at in range(size):
        is_tie = weights[at] == last and ties > 0
        if weights[at] < last or is_tie:
            ties -= is_tie
            rows[kept], weights[kept] = rows[at], weights[at]
            kept += 1
    return last


@kernel(OUT_I64_1D(U64_2D, I32_1D, U8_1D, U64_2D, I64))
def nearest_signs(bits: Longs, row_doc: Docs, allowed: Flags, query: Longs, keep: int) -> Indices:
    """The rows of allowed documents whose signs differ from the query's where the query weighs least.

    Args:
        bits: (n, words) of `sign_bits`.
        row_doc: (n,) document of each row.
        allowed: (docs,) nonzero for documents whose rows may be returned.
        query: (3, words): the signs of the query, and the lower and the higher bit of each dim's weight, 0 to 3.
        keep: Upper bound on the result; 0 or less gives nothing.

    Returns:
        (at most keep,) row numbers, ascending. Of rows that weigh as much as the last one kept, the smaller are kept.
    """
    room = max(min(keep, row_doc.shape[0]), 0)
    rows = np.empty(2 * room, np.int64)
    weights = np.empty(2 * room, np.int64)
    counts = np.empty(3 * WORD_BITS * bits.shape[1] + 1, np.int64)
    block = np.empty(_BLOCK_ROWS, np.int64)
    bar = counts.shape[0]
    size = 0
    for start in range(0, row_doc.shape[0] if room > 0 else 0, _BLOCK_ROWS):
        for at in range(_find_allowed(row_doc, allowed, start, block)):
            weight = _weight_of_differing(bits, block[at], query)
            if weight < bar:
                rows[size], weights[size] = block[at], weight
                size += 1
                if size == 2 * room:
                    bar = _keep_lightest(rows, weights, counts, size, room)
                    size = room
    if size > room:
        _keep_lightest(rows, weights, counts, size, room)
    return rows[: min(size, room)]
