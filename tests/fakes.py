"""Stand-ins for what a test must hold in its hand."""

from __future__ import annotations


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._monotonic = 0.0

    def now(self) -> float:
        """Unix seconds."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since it was made, however the time was set."""
        return self._monotonic

    def move(self, seconds: float) -> None:
        """Lets time pass; negative seconds set the time back, as people do."""
        self._now += seconds
        self._monotonic += max(seconds, 0.0)
