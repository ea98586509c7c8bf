"""Hash table from term keys to numbers, and encoding of forward lists.

A table has two arrays of one length, a power of two: `slots` holds keys, 0 where it is free, and `numbers` the number
of each. At least one slot is free.
"""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import (
    I64,
    I64_1D,
    OUT_I64_1D,
    OUT_U32_1D,
    OUT_U64_1D,
    U32_1D,
    U64_1D,
    Indices,
    Longs,
    Tuple,
    Words,
)

UNKNOWN = 0xFFFF_FFFF
_SHELL_RATIO = 3


@helper()
def _place(slots: Longs, key: np.uint64) -> int:
    """The slot of the key, or the free slot for it."""
    mask = slots.shape[0] - 1
    at = np.int64(key & np.uint64(mask))
    while slots[at] != 0 and slots[at] != key:
        at = (at + 1) & mask
    return int(at)


@kernel(OUT_U32_1D(U64_1D, U32_1D, U64_1D))
def numbers_of(slots: Longs, numbers: Words, keys: Longs) -> Words:
    """The number of each key, UNKNOWN if the table has none."""
    found = np.empty(keys.shape[0], np.uint32)
    for i in range(keys.shape[0]):
        at = _place(slots, keys[i])
        found[i] = numbers[at] if slots[at] != 0 else np.uint32(UNKNOWN)
    return found


@kernel(I64(OUT_U64_1D, OUT_U32_1D, U64_1D, U32_1D))
def remember_numbers(slots: Longs, numbers: Words, keys: Longs, values: Words) -> int:
    """Store numbers (k,) of nonzero keys (k,); the table must have room for all. Returns the number of new keys.

    A present key keeps its number.
    """
    new = 0
    for i in range(keys.shape[0]):
        at = _place(slots, keys[i])
        if slots[at] == 0:
            slots[at] = keys[i]
            numbers[at] = values[i]
            new += 1
    return new


@helper()
def _sort(values: Longs, start: int, end: int) -> None:
    """Sort a slice in place (Shell, 1959; gaps of Knuth): a forward list is short, and nothing is allocated."""
    gap = 1
    while gap < (end - start) // _SHELL_RATIO:
        gap = _SHELL_RATIO * gap + 1
    while gap > 0:
        for i in range(start + gap, end):
            value = values[i]
            at = i
            while at - gap >= start and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= _SHELL_RATIO


@helper()
def _saturated_sum(one: np.uint64, other: np.uint64) -> np.uint64:
    """The sum of two packed counts, byte by byte, each at most 255."""
    total = np.uint64(0)
    for field in range(4):
        shift = np.uint64(8 * field)
        count = ((one >> shift) & np.uint64(255)) + ((other >> shift) & np.uint64(255))
        total |= min(count, np.uint64(255)) << shift
    return total


@kernel(Tuple((OUT_U32_1D, OUT_I64_1D))(I64_1D, U32_1D, U32_1D))
def pack_lists(indptr: Indices, term: Words, counts: Words) -> tuple[Words, Indices]:
    """Encode forward lists for storage.

    Args:
        indptr: (n + 1,) from 0, slices of the next two, one per memory.
        term: (m,) numbers in any order, repeated if several forms are one term.
        counts: (m,) packed, four saturating bytes.

    Returns:
        Words, for each memory its terms, ascending, each once, and then their counts; and (n + 1,) slices of them.
    """
    memories = indptr.shape[0] - 1
    packed = np.empty(2 * term.shape[0], np.uint32)
    ends = np.zeros(memories + 1, np.int64)
    pairs = np.empty(term.shape[0], np.uint64)
    low = np.uint64(0xFFFF_FFFF)
    half = np.uint64(32)
    for i in range(term.shape[0]):
        pairs[i] = np.uint64(term[i]) << half | np.uint64(counts[i])
    for memory in range(memories):
        start, end = indptr[memory], indptr[memory + 1]
        _sort(pairs, start, end)
        kept = start
        for i in range(start, end):
            if kept > start and pairs[kept - 1] >> half == pairs[i] >> half:
                pairs[kept - 1] = pairs[i] >> half << half | _saturated_sum(pairs[kept - 1] & low, pairs[i] & low)
            else:
                pairs[kept] = pairs[i]
                kept += 1
        out = ends[memory]
        count = kept - start
        for i in range(count):
            packed[out + i] = pairs[start + i] >> half
            packed[out + count + i] = pairs[start + i] & low
        ends[memory + 1] = out + 2 * count
    return packed[: ends[memories]].copy(), ends


@kernel(Tuple((OUT_U32_1D, OUT_U32_1D))(U32_1D, I64_1D))
def split_lists(words: Words, indptr: Indices) -> tuple[Words, Words]:
    """Decode the terms and the counts of concatenated stored forward lists.

    Args:
        words: (2 * m,) for each memory its terms, and then their counts.
        indptr: (n + 1,) from 0 to m, slices of the result, one per memory.
    """
    term = np.empty(words.shape[0] // 2, np.uint32)
    counts = np.empty(term.shape[0], np.uint32)
    for memory in range(indptr.shape[0] - 1):
        start, end = indptr[memory], indptr[memory + 1]
        term[start:end] = words[2 * start : start + end]
        counts[start:end] = words[start + end : 2 * end]
    return term, counts
