"""How far memories are of the times that a query speaks of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hummock.core.recall import RecallQuery, TimeInterval
from hummock.text.time_words import time_intervals

VAGUE_MATCH = 0.5
"""The most that a time matches which the words leave open ("recently")."""

SHORTEST_HALVING_S = 43_200.0
"""Distance from an interval over which a match falls to its half: half a day, so that a day of UTC forgives the
caller's own midnight; for longer intervals half of their length."""


def times_of(query: RecallQuery, as_of: float, *, joins_paths: bool) -> tuple[TimeInterval, ...]:
    """The times that a query is about: those of its intent, else those that its words speak of.

    Args:
        query: As it was asked for.
        as_of: Unix seconds that its words are relative to.
        joins_paths: Whether its words count where it does not say.
    """
    if query.intent is not None and query.intent.times:
        return query.intent.times
    counts = joins_paths if query.time_words is None else query.time_words
    return time_intervals(query.text, as_of) if counts else ()


def time_match(times: Sequence[TimeInterval], event_time: NDArray[np.float64]) -> NDArray[np.float32]:
    """How far each time is one of these: (n,) Unix seconds, NaN when not known -> (n,) in [0, 1].

    It is 1 inside an interval (a half inside a vague one) and halves with distance; 0 for a time that is not known.
    """
    best = np.zeros(len(event_time), np.float32)
    for interval in times:
        distance_s = np.maximum(0.0, np.maximum(interval.start - event_time, event_time - interval.end))
        length_s = interval.end - interval.start
        halving_s = max(SHORTEST_HALVING_S, length_s / 2) if np.isfinite(length_s) else SHORTEST_HALVING_S
        match = (VAGUE_MATCH if interval.is_vague else 1.0) * np.exp2(-distance_s / halving_s)
        best = np.fmax(best, match.astype(np.float32))
    return best
