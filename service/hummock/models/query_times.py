"""How long a model takes to embed a query, by its length, as measured on this machine."""

from __future__ import annotations

from bisect import bisect_left

from hummock.core.estimate import Estimate
from hummock.text.tokens import EstimatedTokens

__all__ = ["QueryTimes"]

_LENGTHS = (16, 32, 64, 128, 256, 512)
"""Most tokens of a query in each bucket; longer ones count as the last. They are an estimate: a tokenizer would cost
more than what it tells is worth."""

_FADING = 1 / 64
"""By which an expectation shrinks each time that it keeps a query from being embedded. Twice too long is tried again
after some 45 queries, for which nobody waits longer than there is time."""


class QueryTimes:
    """An estimate for each bucket of lengths. Safe to call from several threads."""

    def __init__(self) -> None:
        self._estimates = tuple(Estimate() for _ in _LENGTHS)
        self._tokens = EstimatedTokens()

    def add(self, text: str, elapsed_s: float) -> None:
        """Counts what an inference took."""
        self._estimates[self._bucket(text)].add(elapsed_s)

    def expected_s(self, text: str) -> float:
        """What an inference takes at most, but for a few.

        Of a length that was never measured, what the next shorter one that was says, in proportion; 0 where nothing
        was measured.
        """
        bucket = self._bucket(text)
        for below in range(bucket, -1, -1):
            if expected_s := self._estimates[below].expected_s:
                return expected_s * _LENGTHS[bucket] / _LENGTHS[below]
        return 0.0

    def fade(self, text: str) -> None:
        """Expects a little less of texts of this length."""
        for estimate in self._estimates[: self._bucket(text) + 1]:
            estimate.fade(_FADING)

    def _bucket(self, text: str) -> int:
        return min(bisect_left(_LENGTHS, self._tokens.count(text)), len(_LENGTHS) - 1)
