"""Stand-ins for what a test must hold in its hand."""

from __future__ import annotations

from threading import Lock, Semaphore


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

    def leap(self, seconds: float) -> None:
        """Sets the time, ahead or back, while none passes, as a wrong time server and a sleep of the machine do."""
        self._now += seconds


class CountingLock:
    """A lock that counts how often it was let go."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.released = Semaphore(0)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        self.released.release()

    def wait(self, times: int) -> None:
        """Returns once it was let go so often."""
        for _ in range(times):
            assert self.released.acquire(timeout=30)
