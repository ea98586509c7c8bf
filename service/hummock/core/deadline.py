"""How long work may take and takes: deadlines of callers, estimates of durations, and futures made of other futures."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

from hummock.core.errors import DeadlinePassed, HummockError


class NobodyWaits(HummockError):
    """The caller has hung up; the error reaches no one."""


class Deadline:
    """Deadline of a caller, which may also end early. Any thread may check it, and any may end it.

    Attributes:
        until_s: When the deadline passes, on the monotonic clock; None without one.
    """

    __slots__ = ("_monotonic", "_over", "until_s")

    def __init__(self, until_s: float | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.until_s = until_s
        self._monotonic = monotonic
        self._over: HummockError | None = None

    def end(self, why: HummockError) -> None:
        """End the deadline early with this error; the first one is kept."""
        if self._over is None:
            self._over = why

    def check(self) -> None:
        """Check that the caller still waits. Raises: DeadlinePassed, or the error given to `end`."""
        if self._over is not None:
            raise self._over
        if self.until_s is not None and self._monotonic() >= self.until_s:
            raise DeadlinePassed


NO_DEADLINE = Deadline()
"""No deadline, for work that is wanted however long it takes."""


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
        """Return an upper estimate, in seconds, of running each once in sequence; few runs take longer.

        It is less than the sum of the single upper estimates, since stages are seldom slow at the same time.
        """
        each = list(estimates)
        deviation_s = math.hypot(*[estimate._deviation_s for estimate in each])
        return sum([estimate._mean_s for estimate in each]) + _DEVIATIONS * deviation_s

    def add(self, elapsed_s: float) -> None:
        """Counts a run."""
        self.add_each([(self, elapsed_s)])

    @staticmethod
    def add_each(runs: Iterable[tuple[Estimate, float]]) -> None:
        """Counts runs, each with its seconds. Written out, for a recall counts all its stages."""
        for one, elapsed_s in runs:
            one._runs += 1
            if one._runs <= 2:
                one._mean_s = elapsed_s if one._runs == 2 else 0.0
                continue
            expected_s = one._mean_s + _DEVIATIONS * one._deviation_s
            most_s = _LARGEST_JUMP * (expected_s if expected_s > _SHORTEST_S else _SHORTEST_S)
            error = (elapsed_s if elapsed_s < most_s else most_s) - one._mean_s
            one._mean_s += _NEWEST_IN_MEAN * error
            one._deviation_s += _NEWEST_IN_DEVIATION * (abs(error) - one._deviation_s)

    def fade(self, share: float) -> None:
        """Lower the estimate by this share; a stage skipped after a slow run would otherwise never be tried again."""
        self._mean_s *= 1 - share
        self._deviation_s *= 1 - share


Said = TypeVar("Said")
Result = TypeVar("Result")


def then(awaited: Future[Said], make: Callable[[Said], Result]) -> Future[Result]:
    """Return a future of the value made from another future's result.

    Args:
        awaited: The other one. Cancelling the new one cancels this; if its work has begun, neither is cancelled.
        make: Must be quick, since it runs on the thread that completes the other one.
    """
    return _Made(awaited, make)


class _Made(Future[Result], Generic[Said, Result]):
    def __init__(self, awaited: Future[Said], make: Callable[[Said], Result]) -> None:
        super().__init__()
        self._make = make
        self._awaited: Future[Said] | None = awaited
        awaited.add_done_callback(self._finish)

    def cancel(self) -> bool:
        awaited = self._awaited
        return awaited is not None and awaited.cancel()

    def _finish(self, awaited: Future[Said]) -> None:
        self._awaited = None
        # Not raised here: an error would keep this frame alive, which keeps the futures that hold it.
        error = CancelledError() if awaited.cancelled() else awaited.exception()
        if error is not None:
            self.set_exception(error)
            return
        try:
            self.set_result(self._make(awaited.result()))
        except BaseException as raised:
            self.set_exception(raised)


class InferenceTimes:
    """An estimate for each bucket of lengths. Safe to call from several threads."""

    def __init__(self, lengths: Sequence[int], fading: float) -> None:
        """Nothing is known yet.

        Args:
            lengths: Most tokens in each bucket, ascending; longer ones count as the last.
            fading: Share by which an expectation shrinks each time that it keeps something from being run.
        """
        self._lengths = tuple(lengths)
        self._fading = fading
        self._estimates = tuple(Estimate() for _ in self._lengths)

    def add(self, token_count: int, elapsed_s: float) -> None:
        """Counts what an inference over that many tokens took."""
        self._estimates[self._bucket(token_count)].add(elapsed_s)

    def expected_s(self, token_count: int) -> float:
        """What an inference over that many tokens takes at most, but for a few.

        Of a bucket without times, what the next shorter one with times says, in proportion to the length; 0 where
        nothing was measured.
        """
        bucket = self._bucket(token_count)
        for shorter in range(bucket, -1, -1):
            if expected_s := self._estimates[shorter].expected_s:
                return expected_s * self._lengths[bucket] / self._lengths[shorter]
        return 0.0

    def fade(self, token_count: int | None = None) -> None:
        """Expects a little less of what has so many tokens or fewer; of everything if None."""
        end = len(self._estimates) if token_count is None else self._bucket(token_count) + 1
        for estimate in self._estimates[:end]:
            estimate.fade(self._fading)

    def _bucket(self, token_count: int) -> int:
        return min(bisect_left(self._lengths, token_count), len(self._lengths) - 1)
