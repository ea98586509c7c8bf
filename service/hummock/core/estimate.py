"""Estimates of durations from earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterable

_NEWEST_IN_MEAN = 1 / 8
_NEWEST_IN_DEVIATION = 1 / 4
_DEVIATIONS = 3.0
_LARGEST_JUMP = 2.0
_SHORTEST_S = 0.001


class Estimate:
    """A bound that nearly all runs keep: their moving mean and three times their moving mean deviation.

    Source: Jacobson, Congestion avoidance and control, SIGCOMM 1988. The first run, which finds everything cold, does
    not count, and one that takes much longer than expected counts as twice the expected. Two threads that add at
    the same moment may lose a run, which does no harm.
    """

    __slots__ = ("_deviation_s", "_mean_s", "_runs")

    def __init__(self) -> None:
        self._mean_s = 0.0
        self._deviation_s = 0.0
        self._runs = 0

    @property
    def expected_s(self) -> float:
        """Seconds that the next run takes at most, but for a few; 0 while nothing is known."""
        return self._mean_s + _DEVIATIONS * self._deviation_s

    @staticmethod
    def together_s(estimates: Iterable[Estimate]) -> float:
        """Seconds that a run of each, one after the other, takes at most, but for a few.

        It is less than the sum of what each takes at most: they are seldom slow at the same time.
        """
        each = list(estimates)
        deviation_s = math.hypot(*[estimate._deviation_s for estimate in each])
        return sum([estimate._mean_s for estimate in each]) + _DEVIATIONS * deviation_s

    def add(self, elapsed_s: float) -> None:
        """Counts a run."""
        self._runs += 1
        if self._runs <= 2:
            self._mean_s = elapsed_s if self._runs == 2 else 0.0
            return
        # Written out: it is counted at each stage of a recall.
        expected_s = self._mean_s + _DEVIATIONS * self._deviation_s
        most_s = _LARGEST_JUMP * (expected_s if expected_s > _SHORTEST_S else _SHORTEST_S)
        error = (elapsed_s if elapsed_s < most_s else most_s) - self._mean_s
        self._mean_s += _NEWEST_IN_MEAN * error
        self._deviation_s += _NEWEST_IN_DEVIATION * (abs(error) - self._deviation_s)

    def fade(self, share: float) -> None:
        """Expects less by this share: what is never run because it once was slow would never be found to be fast."""
        self._mean_s *= 1 - share
        self._deviation_s *= 1 - share
