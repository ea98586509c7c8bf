"""Cross-encoding: the best candidates in the order of a model that reads each together with the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hummock.core.candidates import FoundBy
from hummock.recall.fuse import Fused

LEAST_PAIRS = 2
"""One pair alone has nothing to be compared with."""


def pool_size(expected_s: Sequence[float], time_left_s: float) -> int:
    """How many pairs, from the front, can be scored in the time left; 0 where there is none for LEAST_PAIRS of them.

    Args:
        expected_s: What each pair takes.
        time_left_s: What there is for all of them.
    """
    fitting = int(np.searchsorted(np.cumsum(expected_s), time_left_s, side="right"))
    return fitting if fitting >= LEAST_PAIRS else 0


def cross_encoded(fused: Fused, scores: Sequence[float]) -> Fused:
    """The same candidates: the first len(scores) in the order of their scores and age, the rest after them as before.

    Domains that the query names stay in front, and behind them the holders of the name that it is, whose age does not
    count. Equal scores keep their order. What hits show is the cross-encoder's score times the decay; those behind
    holders and those after the pool show no more than what stands before them.

    Args:
        fused: Best first.
        scores: How well the first ones answer, in [0, 1], at most as many as there are candidates.
    """
    count = len(scores)
    found_by = fused.candidates.found_by[fused.row[:count]]
    is_named, is_holder = (found_by & bit != 0 for bit in (FoundBy.DOMAIN, FoundBy.HOLDER))
    log_decay = fused.log_decay.copy()
    log_decay[:count][is_holder] = 0.0
    relevance = (np.asarray(scores, np.float64) * np.exp(log_decay[:count])).astype(np.float32)
    order = np.lexsort((-relevance, ~is_holder, ~is_named))
    relevance, named = relevance[order], np.count_nonzero(is_named)
    relevance[named:] = np.minimum.accumulate(relevance[named:])
    places = np.concatenate([order, np.arange(count, len(fused))])
    least = relevance.min(initial=np.float32(1))
    return replace(
        fused,
        row=fused.row[places],
        joined=fused.joined[places],
        similarity=fused.similarity[places],
        relevance=np.concatenate([relevance, np.minimum(fused.relevance[count:], least)]),
        score=np.concatenate([relevance, np.minimum(fused.score[count:], least)]),
        log_decay=log_decay[places],
        cross=np.concatenate([np.asarray(scores, np.float32)[order], np.full(len(fused) - count, np.nan, np.float32)]),
    )
