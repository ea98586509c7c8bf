"""Clock for permanent removals, which ignores a wall clock that jumps ahead for a while."""

from __future__ import annotations

import logging
from collections import deque
from threading import Lock
from typing import Final

from hummock.ports.models import Clock

_LEAP_S: Final = 60.0
"""A larger gain of the wall clock over the monotonic one between two reads is not trusted at once."""

_SETTLE_S: Final = 600.0
"""A leap that lasts this long is trusted. Clocks are usually wrong for seconds only, so a machine that was asleep, or a
new one whose clock was set, waits this long."""

_UNUSED_S: Final = 86_400.0  # If the last write is older than this at a start, the clock is treated as after a leap.

_log = logging.getLogger(__name__)


class SettledClock:
    """A clock that also has a settled time for permanent removals. Thread-safe."""

    def __init__(self, clock: Clock, newest: float | None = None) -> None:
        """Wrap a clock; `newest` is the time of the last write in Unix seconds, None if unknown."""
        self._clock = clock
        self.now, self.monotonic = clock.now, clock.monotonic
        self._lock = Lock()
        wall, monotonic = clock.now(), clock.monotonic()
        self._settled = wall - monotonic
        self._leaps: deque[tuple[float, float]] = deque()
        """Untrusted leaps: monotonic time of each, and the wall clock's offset from the monotonic one then."""
        if newest is not None and wall - newest > _UNUSED_S:
            self._settled = newest - monotonic
            self._note_leap(monotonic, wall - monotonic)

    def settled(self) -> float:
        """Unix seconds: `now` without untrusted leaps."""
        with self._lock:
            monotonic, _ = self._look()
            return self._settled + monotonic

    def ahead_s(self) -> float:
        """Seconds by which `now` is ahead of `settled`; 0 if there are no untrusted leaps."""
        with self._lock:
            _, ahead = self._look()
            return ahead - self._settled

    def _look(self) -> tuple[float, float]:
        """Read the clocks and update the leaps; returns the monotonic time and the wall clock's offset from it."""
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
