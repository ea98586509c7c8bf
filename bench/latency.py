"""Times of calls as percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds of `calls` calls that came one after the other.

    A percentile is a time that was measured (the smallest that so many calls did not exceed); with few calls the
    high ones are the slowest call.
    """

    calls: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p99_9_ms: float
    max_ms: float

    @classmethod
    def of(cls, times_s: Sequence[float]) -> Latency:
        """Percentiles of at least one time."""
        ordered = sorted(times_s)
        return cls(
            calls=len(ordered),
            p50_ms=_percentile_ms(ordered, 0.5),
            p95_ms=_percentile_ms(ordered, 0.95),
            p99_ms=_percentile_ms(ordered, 0.99),
            p99_9_ms=_percentile_ms(ordered, 0.999),
            max_ms=round(ordered[-1] * 1000, 4),
        )


def _percentile_ms(ordered_s: Sequence[float], share: float) -> float:
    return round(ordered_s[math.ceil(share * len(ordered_s)) - 1] * 1000, 4)
