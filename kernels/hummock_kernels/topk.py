"""Selection of the best scores."""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import F32_1D, I64, OUT_I64_1D, U8_1D, Flags, Indices, Vector


@helper()
def _is_worse(scores: Vector, one: int, other: int) -> bool:
    return scores[one] < scores[other] or (scores[one] == scores[other] and one > other)


@helper()
def _sink(heap: Indices, scores: Vector, start: int, size: int) -> None:
    """Restore the heap of indices (worst on top) below `start`."""
    parent = start
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_worse(scores, heap[child + 1], heap[child]):
            child += 1
        if not _is_worse(scores, heap[child], heap[parent]):
            return
        heap[parent], heap[child] = heap[child], heap[parent]
        parent = child


@helper()
def _heapify(heap: Indices, scores: Vector, size: int) -> None:
    for start in range(size // 2 - 1, -1, -1):
        _sink(heap, scores, start, size)


@kernel(OUT_I64_1D(F32_1D, U8_1D, I64))
def top_k(scores: Vector, allowed: Flags, k: int) -> Indices:
    """Indices of the k largest scores, (n,) and (n,) -> (at most k,) int64, best first, ties by the smaller index.

    Scores that are not finite and indices whose `allowed` is zero are left out; zero and negative scores count. A k of
    0 or less gives nothing.
    """
    room = max(min(k, scores.shape[0]), 0)
    heap = np.empty(room, np.int64)
    size = 0
    worst = np.float32(-np.inf)
    for index in range(scores.shape[0] if room > 0 else 0):
        # Asked first: once the heap is full, nearly every score fails here, and whether one is allowed is a toss-up.
        if not scores[index] > worst or allowed[index] == 0 or not np.isfinite(scores[index]):
            continue
        if size < room:
            heap[size] = index
            size += 1
            if size == room:
                _heapify(heap, scores, size)
                worst = scores[heap[0]]
        else:
            heap[0] = index
            _sink(heap, scores, 0, size)
            worst = scores[heap[0]]
    if size < room:
        _heapify(heap, scores, size)
    for last in range(size - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, scores, 0, last)
    return heap[:size]
