"""Hits that fit the query and differ from each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import FoundBy
from hummock.core.recall import GroupPlan, Plan
from hummock.recall.fuse import Fused
from hummock.recall.plan import DOMAINS
from hummock_kernels.mmr import mmr

Picked = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Places in the order of a `Fused`, best first, and which of them are near-twins of one before."""


def pick(plan: Plan, group: GroupPlan, ranked: Fused) -> Picked:
    """Places of a group's hits. What is looked up by name comes as it is: there is nothing to make different."""
    if group.name == DOMAINS or (ranked.candidates.found_by[ranked.row] & FoundBy.HOLDER).any():
        places = np.arange(min(group.top_k, len(ranked)))
        return places, np.zeros(len(places), np.uint8)
    return diversify(ranked, plan.relevance_weight, plan.near_twin_bar, group.top_k)


def diversify(fused: Fused, relevance_weight: float, near_twin_bar: float, keep: int) -> Picked:
    """Places in the order of `fused`, in the order picked, at most `keep`; and which of them are near-twins.

    Near-twins of a picked one come last, then the others by maximal marginal relevance (S2-05, 1.1-7).

    Args:
        fused: Best first.
        relevance_weight: In [0, 1]; 1 ignores difference.
        near_twin_bar: Cosine from which two are near-twins; above 1 there are none.
        keep: Upper bound on the result.
    """
    return mmr(fused.candidates.vector, fused.row, fused.relevance, relevance_weight, near_twin_bar, keep)
