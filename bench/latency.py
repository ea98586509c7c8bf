"""Times of calls as percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_CALLS_FOR_P99_9 = 1000


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

    def line(self) -> str:
        """For people. With fewer than 1,000 calls p99.9 would be the slowest of them, so it is left out."""
        tail = f", p99.9 {self.p99_9_ms:.2f}" if self.calls >= _CALLS_FOR_P99_9 else ""
        shown = f"p50 {self.p50_ms:.3f}, p95 {self.p95_ms:.2f}, p99 {self.p99_ms:.2f}{tail}, max {self.max_ms:.2f}"
        return f"{shown} ms ({self.calls} calls)"

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
