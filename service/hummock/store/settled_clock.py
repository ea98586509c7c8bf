"""The time by which something may be removed for good: a wall clock that jumps ahead for a while removes nothing."""

from __future__ import annotations

import logging
from threading import Lock
from typing import Final

from hummock.ports.models import Clock

_LEAP_S: Final = 60.0
"""By which the wall clock leaves the monotonic one behind between two looks before it is not believed at once."""

_SETTLE_S: Final = 600.0
"""That it has to go evenly then, by the monotonic clock. It is wrong for seconds, or right for as long as anybody
looks: who wakes a laptop, or sets the clock of a new machine, waits so long for what is due."""

_UNUSED_S: Final = 86_400.0
"""Since the newest write, at a start, before the clock has to settle as after a leap."""

_log = logging.getLogger(__name__)


class SettledClock:
    """A clock that also tells the time by which something may be removed. Safe to use from several threads."""

    def __init__(self, clock: Clock, newest: float | None = None) -> None:
        """The clock, and when something was written last, in Unix seconds; None where that is not known."""
        self._clock = clock
        self._lock = Lock()
        wall, monotonic = clock.now(), clock.monotonic()
        self._offset = self._settled = wall - monotonic
        self._since = monotonic
        if newest is not None and wall - newest > _UNUSED_S:
            self._settled = newest - monotonic
            self._warn(wall - newest)

    def now(self) -> float:
        """Unix seconds."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Seconds from some start; never goes back."""
        return self._clock.monotonic()

    def settled(self) -> float:
        """Unix seconds: `now`, or less for as long as the clock has not settled behind a leap."""
        with self._lock:
            wall, monotonic = self._clock.now(), self._clock.monotonic()
            offset = wall - monotonic
            if abs(offset - self._offset) > _LEAP_S:
                self._since = monotonic
                if offset - self._settled > _LEAP_S:
                    self._warn(offset - self._settled)
            self._offset = offset
            if offset - self._settled <= _LEAP_S or monotonic - self._since >= _SETTLE_S:
                self._settled = offset
            return self._settled + monotonic

    def _warn(self, ahead_s: float) -> None:
        _log.warning(
            "the clock is %.0f s ahead of when it was looked at last; what has expired is hidden, and nothing is "
            "forgotten for good until the clock has gone evenly for %.0f minutes",
            ahead_s,
            _SETTLE_S / 60,
        )
