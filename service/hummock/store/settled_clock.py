"""The time by which something may be removed for good: a wall clock that jumps ahead for a while removes nothing."""

from __future__ import annotations

import logging
from collections import deque
from threading import Lock
from typing import Final

from hummock.ports.models import Clock

_LEAP_S: Final = 60.0
"""A wall clock that leaves the monotonic one behind by more between two looks is not believed at once."""

_SETTLE_S: Final = 600.0
"""A leap that was not taken back by then is believed. A clock is wrong for seconds, or right as long as anybody looks:
who wakes a laptop, or sets the clock of a new machine, waits so long."""

_UNUSED_S: Final = 86_400.0
"""What was written last may be so old at a start; behind more the clock is looked at as behind a leap."""

_log = logging.getLogger(__name__)


class SettledClock:
    """A clock that also tells the time by which something may be removed. Safe to use from several threads."""

    def __init__(self, clock: Clock, newest: float | None = None) -> None:
        """The clock, and when something was written last, in Unix seconds; None where that is not known."""
        self._clock = clock
        self._lock = Lock()
        wall, monotonic = clock.now(), clock.monotonic()
        self._settled = wall - monotonic
        self._leaps: deque[tuple[float, float]] = deque()
        """Leaps that are not believed yet: when each was seen, and by how much the wall clock was ahead then."""
        if newest is not None and wall - newest > _UNUSED_S:
            self._settled = newest - monotonic
            self._note_leap(monotonic, wall - monotonic)

    def now(self) -> float:
        """Unix seconds."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Seconds from some start; never goes back."""
        return self._clock.monotonic()

    def settled(self) -> float:
        """Unix seconds: `now`, or less by the leaps that are not believed yet."""
        with self._lock:
            monotonic, _ = self._look()
            return self._settled + monotonic

    def ahead_s(self) -> float:
        """Seconds by which `now` is ahead of `settled`; 0 while every leap is believed."""
        with self._lock:
            _, ahead = self._look()
            return ahead - self._settled

    def _look(self) -> tuple[float, float]:
        """Takes in what the clocks say: the monotonic one, and by how much the wall clock is ahead of it."""
        monotonic = self._clock.monotonic()
        ahead = self._clock.now() - monotonic
        while self._leaps and self._leaps[-1][1] - ahead > _LEAP_S:
            self._leaps.pop()  # it was taken back
        if ahead - (self._leaps[-1][1] if self._leaps else self._settled) > _LEAP_S:
            self._note_leap(monotonic, ahead)
        while self._leaps and monotonic - self._leaps[0][0] >= _SETTLE_S:
            self._settled = self._leaps.popleft()[1]
        if not self._leaps or ahead < self._settled:
            self._settled = ahead
        return monotonic, ahead

    def _note_leap(self, monotonic: float, ahead: float) -> None:
        self._leaps.append((monotonic, ahead))
        self._warn(ahead - self._settled)

    def _warn(self, ahead_s: float) -> None:
        _log.warning(
            "the clock is %.0f s ahead of when it was looked at last; what has expired is hidden, and nothing is "
            "forgotten for good until the clock has gone evenly for %.0f minutes",
            ahead_s,
            _SETTLE_S / 60,
        )
