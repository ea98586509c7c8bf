"""95 % intervals: Wilson's for shares, the bootstrap's for means."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Interval = tuple[float, float]

_Z = 1.959963984540054
_RESAMPLES = 2000
_SEED = 7420


def wilson(successes: float, count: int) -> Interval:
    """Interval of a share of `count` independent questions; (0, 1) without any.

    Source: Wilson, JASA 1927.
    """
    if not count:
        return 0.0, 1.0
    share = successes / count
    scale = 1 + _Z**2 / count
    centre = (share + _Z**2 / (2 * count)) / scale
    reach = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2)) / scale
    # At the ends the exact value is 0 or 1, which rounding may miss.
    low = 0.0 if successes == 0 else centre - reach
    return low, 1.0 if successes == count else centre + reach


def bootstrap(values: Sequence[float]) -> Interval:
    """Interval of a mean: the middle 95 % of the means of 2,000 seeded resamples; (0, 0) without values."""
    if not values:
        return 0.0, 0.0
    random_of = np.random.default_rng(_SEED)
    picks = random_of.integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = np.percentile(np.asarray(values)[picks].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)
