"""What a list of hits is worth, for one question."""

from __future__ import annotations

import math
from dataclasses import dataclass

DEPTH = 10
"""Hits that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The answer to one question.

    Attributes:
        ranks: Places of the relevant memories among the first DEPTH hits, from 1, ascending.
        relevant: How many memories are relevant, at least 1.
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
    return float(sum(rank <= k for rank in judged.ranks) == judged.relevant)


def share(judged: Judged, k: int) -> float:
    """Share of the relevant memories that are among the first k; k is at most DEPTH."""
    return sum(rank <= k for rank in judged.ranks) / judged.relevant


def reciprocal_rank(judged: Judged) -> float:
    """1 / place of the first relevant memory; 0 where none is among the first DEPTH."""
    return 1 / judged.ranks[0] if judged.ranks else 0.0


def ndcg(judged: Judged) -> float:
    """Discounted cumulative gain of the first DEPTH hits, all relevant memories gaining 1, over that of the best list.

    Source: Järvelin & Kekäläinen, TOIS 2002, with the logarithm of base 2 of place + 1.
    """
    best = sum(_discount(place) for place in range(1, min(judged.relevant, DEPTH) + 1))
    return sum(map(_discount, judged.ranks)) / best


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)
