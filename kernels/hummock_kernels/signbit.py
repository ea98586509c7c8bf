"""The signs of vectors as bits: a prefilter that reads a sixteenth of what float16 rows take.

A row loses its values and keeps their signs; the query keeps its values in two bits. A sign that differs from the
query's counts as much as the query's value there. That orders rows roughly: what it selects is scored exactly
afterwards.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from hummock_kernels._bits import bit_count
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
"""A multiple of four, see `_weigh`."""
_CACHED_WORDS = 1 << 20
"""So many are at hand without being fetched ahead: 8 MiB, a share of a last-level cache."""


@intrinsic
def _fetch_by_cpu(typing_context: Any, bits: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        to_read, to_keep, data = number(0), number(3), number(1)
        builder.call(fetch, [address, to_read, to_keep, data])
        return context.get_dummy_value()

    return types.void(bits, types.int64), generate


def _fetch_by_hand(bits: Longs, place: int) -> None:
    """Nothing to fetch ahead without a compiler."""


_fetch = _fetch_by_cpu if IS_COMPILED else _fetch_by_hand


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
def _weight(differing: np.uint64, ones: np.uint64, twos: np.uint64) -> np.uint64:
    return np.uint64(bit_count(differing & ones)) + (np.uint64(bit_count(differing & twos)) << np.uint64(1))


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
def _fetch_all(bits: Longs, rows: Indices, found: int) -> None:
    """Have memory bring the first `found` rows: a processor cannot guess which ones a filter has left."""
    words = bits.shape[1]
    for at in range(found):
        _fetch(bits, rows[at] * words)
        _fetch(bits, rows[at] * words + words - 1)


@helper()
def _weigh(bits: Longs, rows: Indices, found: int, query: Longs, weights: Indices) -> None:
    """Write the weight of each of the first `found` rows, four at a time: they share the loads of the query."""
    for at in range(found, min(-(-found // 4) * 4, rows.shape[0])):
        rows[at] = rows[found - 1]
    for at in range(0, found, 4):
        first, second, third, fourth = rows[at], rows[at + 1], rows[at + 2], rows[at + 3]
        a = b = c = d = np.uint64(0)
        for word in range(bits.shape[1]):
            signs, ones, twos = query[0, word], query[1, word], query[2, word]
            a += _weight(bits[first, word] ^ signs, ones, twos)
            b += _weight(bits[second, word] ^ signs, ones, twos)
            c += _weight(bits[third, word] ^ signs, ones, twos)
            d += _weight(bits[fourth, word] ^ signs, ones, twos)
        weights[at], weights[at + 1], weights[at + 2], weights[at + 3] = a, b, c, d


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
        # Every other row stays: without a branch there is none to mispredict.
        weight = weights[at]
        is_tie = (weight == last) & (ties > 0)
        rows[kept], weights[kept] = rows[at], weight
        ties -= is_tie
        kept += (weight < last) | is_tie
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
    block_weights = np.empty(_BLOCK_ROWS, np.int64)
    bar = counts.shape[0]
    size = 0
    for start in range(0, row_doc.shape[0] if room > 0 else 0, _BLOCK_ROWS):
        found = _find_allowed(row_doc, allowed, start, block)
        if bits.size > _CACHED_WORDS and 2 * found < _BLOCK_ROWS:
            _fetch_all(bits, block, found)
        _weigh(bits, block, found, query, block_weights)
        for at in range(found):
            rows[size], weights[size] = block[at], block_weights[at]
            size += block_weights[at] < bar
            if size == 2 * room:
                bar = _keep_lightest(rows, weights, counts, size, room)
                size = room
    if size > room:
        _keep_lightest(rows, weights, counts, size, room)
    return rows[: min(size, room)]
