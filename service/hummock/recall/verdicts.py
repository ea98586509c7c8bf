"""What was said of memories, as factors of their scores within bounds that the contract names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates

MOST_LOSS = 0.4
"""Share of a score that WRONG takes away in the end, however often it is said."""

MOST_GAIN = 0.1
"""Share of a score that HELPFUL adds in the end. Less than MOST_LOSS: use for one query says little about another."""

DOUBT = 4.0
"""Voices that are taken to have said nothing: one WRONG takes .08 of a score away, ten of them .29."""


def verdict_factors(found: Candidates) -> NDArray[np.float32]:
    """The factor of each candidate, (n,) in [1 - MOST_LOSS, 1 + MOST_GAIN]; (0,) where nothing was said of any.

    The smoothed shares of the voices that said HELPFUL and WRONG, each times the most that it moves.
    """
    # No more than this in a project without feedback.
    if not len(found.wrong):
        return _NOTHING_SAID
    helpful, wrong = found.helpful.astype(np.float32), found.wrong.astype(np.float32)
    factors: NDArray[np.float32] = 1 + (MOST_GAIN * helpful - MOST_LOSS * wrong) / (helpful + wrong + DOUBT)
    return factors.astype(np.float32)


_NOTHING_SAID: NDArray[np.float32] = np.empty(0, np.float32)
