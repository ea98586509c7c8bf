"""How long a cross-encoder takes for a pair, by its length, as measured on this machine."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from hummock.core.estimate import Estimate

__all__ = ["LENGTHS", "PairTimes"]

LENGTHS = (64, 128, 256, 512)
"""Most tokens of a pair in each bucket; longer ones count as the last."""

_FADING = 1 / 1024
"""By which expectations shrink each time that they keep pairs from being scored. Who has a pair scored waits for it, so
one that is twice too long for the time there is must not be tried again before some 700 recalls."""


class PairTimes:
    """An estimate for each bucket of lengths. Safe to call from several threads."""

    def __init__(self, lengths: Sequence[int] = LENGTHS) -> None:
        self._lengths = tuple(lengths)
        self._estimates = tuple(Estimate() for _ in self._lengths)

    def add(self, token_count: int, elapsed_s: float) -> None:
        """Counts what a pair of that many tokens took."""
        self._estimates[self._bucket(token_count)].add(elapsed_s)

    def expected_s(self, token_count: int) -> float:
        """What a pair of that many tokens takes at most, but for a few.

        Of a bucket without times, what the next smaller one with times says, in proportion to the length; 0 where
        nothing was measured.
        """
        bucket = self._bucket(token_count)
        for below in range(bucket, -1, -1):
            if expected_s := self._estimates[below].expected_s:
                return expected_s * self._lengths[bucket] / self._lengths[below]
        return 0.0

    def fade(self) -> None:
        """Expects a little less of every pair."""
        for estimate in self._estimates:
            estimate.fade(_FADING)

    def _bucket(self, token_count: int) -> int:
        return min(bisect_left(self._lengths, token_count), len(self._lengths) - 1)
