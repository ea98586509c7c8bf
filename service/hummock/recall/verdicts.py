"""Verdicts on memories as factors of their scores, within bounds that the contract names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates

MOST_LOSS = 0.4
"""Most of a score that WRONG verdicts take away, as a share, however many there are."""

MOST_GAIN = 0.1
"""Share of a score that HELPFUL adds in the end. Less than MOST_LOSS: use for one query says little about another."""

DOUBT = 4.0
"""Pseudo-count of neutral voices: one WRONG takes .08 of a score away, ten of them .29."""


def verdict_factors(found: Candidates) -> NDArray[np.float32]:
    """The factor of each candidate, (n,) in [1 - MOST_LOSS, 1 + MOST_GAIN]; (0,) without any verdicts.

    The smoothed shares of the HELPFUL and of the WRONG voices, each times its bound.
    """
    # No more than this in a project without feedback.
    if not len(found.wrong):
        return _NOTHING_SAID
    helpful, wrong = found.helpful.astype(np.float32), found.wrong.astype(np.float32)
    factors: NDArray[np.float32] = 1 + (MOST_GAIN * helpful - MOST_LOSS * wrong) / (helpful + wrong + DOUBT)
    return factors.astype(np.float32)


_NOTHING_SAID: NDArray[np.float32] = np.empty(0, np.float32)
