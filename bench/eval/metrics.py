"""Metrics of result lists, and their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DEPTH = 10
"""Hits that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The answer to one question.

    Attributes:
        ranks: Places of the relevant memories among the first DEPTH hits, from 1, ascending.
        relevant: How many memories are relevant; with 0 every figure is 0.
    """

    ranks: tuple[int, ...]
    relevant: int

    @classmethod
    def of(cls, hits: tuple[str, ...], relevant: frozenset[str]) -> Judged:
        """Ids of the hits, best first, against the ids of the relevant memories."""
        ranks = tuple(place for place, each in enumerate(hits[:DEPTH], start=1) if each in relevant)
        return cls(ranks=ranks, relevant=len(relevant))


def recall(judged: Judged, k: int) -> float:
    """1 when a relevant memory is among the first k, else 0; k is at most DEPTH."""
    return float(bool(judged.ranks) and judged.ranks[0] <= k)


def all_within(judged: Judged, k: int) -> float:
    """1 when every relevant memory is among the first k, else 0; k is at most DEPTH."""
    return float(0 < judged.relevant == sum(rank <= k for rank in judged.ranks))


def share(judged: Judged, k: int) -> float:
    """Share of the relevant memories that are among the first k; k is at most DEPTH."""
    return sum(rank <= k for rank in judged.ranks) / max(judged.relevant, 1)


def filled(judged: Judged) -> float:
    """Share of relevant hits among the first DEPTH, of those that could be there."""
    return len(judged.ranks) / max(min(judged.relevant, DEPTH), 1)


def reciprocal_rank(judged: Judged) -> float:
    """1 / place of the first relevant memory; 0 where none is among the first DEPTH."""
    return 1 / judged.ranks[0] if judged.ranks else 0.0


def ndcg(judged: Judged) -> float:
    """Discounted cumulative gain of the first DEPTH hits, all relevant memories gaining 1, over that of the best list.

    Source: Järvelin & Kekäläinen, TOIS 2002, with the logarithm of base 2 of place + 1.
    """
    best = sum(_discount(place) for place in range(1, min(max(judged.relevant, 1), DEPTH) + 1))
    return sum(map(_discount, judged.ranks)) / best


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


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
