"""How long a cross-encoder takes for a pair, by its length, as measured on this machine."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from threading import Lock

__all__ = ["LENGTHS", "PairTimes"]

LENGTHS = (64, 128, 256, 512)
"""Most tokens of a pair in each bucket; longer ones count as the last."""

KEPT = 16


class PairTimes:
    """The last KEPT times of each bucket of lengths. Safe to call from several threads."""

    def __init__(self, lengths: Sequence[int] = LENGTHS) -> None:
        self._lengths = tuple(lengths)
        self._times_s: tuple[deque[float], ...] = tuple(deque(maxlen=KEPT) for _ in self._lengths)
        self._lock = Lock()

    def add(self, token_count: int, elapsed_s: float) -> None:
        """Note what a pair of that many tokens took."""
        with self._lock:
            self._times_s[self._bucket(token_count)].append(elapsed_s)

    def expected_s(self, token_count: int) -> float:
        """What a pair of that many tokens takes at most: the slowest of the last ones in its bucket.

        Of a bucket without times, what the next smaller one with times says, in proportion to the length; 0 where
        nothing was measured.
        """
        bucket = self._bucket(token_count)
        with self._lock:
            for below in range(bucket, -1, -1):
                if self._times_s[below]:
                    return max(self._times_s[below]) * self._lengths[bucket] / self._lengths[below]
        return 0.0

    def _bucket(self, token_count: int) -> int:
        return min(bisect_left(self._lengths, token_count), len(self._lengths) - 1)
