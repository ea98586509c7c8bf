"""Selection of the best scores: a bounded heap for other kernels, and `top_k`.

A heap is two arrays, (room,) scores and (room,) numbers, with the worst on top once it is full.
"""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import F32_1D, I64, OUT_I64_1D, U8_1D, Flags, Indices, Vector


@helper(borrows=True)
def _is_worse(score: np.float32, number: int, other_score: np.float32, other_number: int) -> bool:
    return bool(score < other_score or (score == other_score and number > other_number))


@helper(borrows=True)
def _swap(scores: Vector, numbers: Indices, one: int, other: int) -> None:
    scores[one], scores[other] = scores[other], scores[one]
    numbers[one], numbers[other] = numbers[other], numbers[one]


@helper(borrows=True)
def _sink(scores: Vector, numbers: Indices, parent: int, size: int) -> None:
    """Restore the heap of this size below `parent`."""
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_worse(scores[child + 1], numbers[child + 1], scores[child], numbers[child]):
            child += 1
        if not _is_worse(scores[child], numbers[child], scores[parent], numbers[parent]):
            return
        _swap(scores, numbers, parent, child)
        parent = child


@helper(borrows=True)
def _heapify(scores: Vector, numbers: Indices, size: int) -> None:
    for parent in range(size // 2 - 1, -1, -1):
        _sink(scores, numbers, parent, size)


@helper(borrows=True)
def offer(scores: Vector, numbers: Indices, size: int, number: int, score: np.float32) -> int:
    """Keep a number if it is among the best, ties by the smaller number; returns the new `size`."""
    if size < scores.shape[0]:
        scores[size], numbers[size] = score, number
        size += 1
        if size == scores.shape[0]:
            _heapify(scores, numbers, size)
    elif size > 0 and _is_worse(scores[0], numbers[0], score, number):
        scores[0], numbers[0] = score, number
        _sink(scores, numbers, 0, size)
    return size


@helper(borrows=True)
def put_in_order(scores: Vector, numbers: Indices, size: int) -> None:
    """Sort the heap, best first; no offers may follow."""
    if size < scores.shape[0]:
        _heapify(scores, numbers, size)
    for last in range(size - 1, 0, -1):
        _swap(scores, numbers, 0, last)
        _sink(scores, numbers, 0, last)


@helper(borrows=True)
def ascending_keys(keys: Indices) -> None:
    """Sort some hundred whole numbers in place (Shell sort, 1959, Knuth's gaps); NumPy's takes a second to compile."""
    gap = 1
    while gap < keys.shape[0] // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, keys.shape[0]):
            key = keys[i]
            at = i
            while at >= gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                at -= gap
            keys[at] = key
        gap //= 3


@kernel(OUT_I64_1D(F32_1D, U8_1D, I64))
def top_k(scores: Vector, allowed: Flags, k: int) -> Indices:
    """Indices of the k largest scores, (n,) and (n,) -> (at most k,) int64, best first, ties by the smaller index.

    Scores that are not finite and indices whose `allowed` is zero are left out; zero and negative scores count. A k of
    0 or less gives nothing.
    """
    room = max(min(k, scores.shape[0]), 0)
    best = np.empty(room, np.float32)
    indices = np.empty(room, np.int64)
    size = 0
    worst = np.float32(-np.inf)
    for index in range(scores.shape[0] if room > 0 else 0):
        # The score first: once the heap is full nearly all fail here, while `allowed` is hard to predict.
        if scores[index] > worst and allowed[index] != 0 and np.isfinite(scores[index]):
            size = offer(best, indices, size, index, scores[index])
            if size == room:
                worst = best[0]
    put_in_order(best, indices, size)
    return indices[:size]
