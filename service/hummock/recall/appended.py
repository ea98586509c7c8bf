"""Substring matches, appended after the vector hits at one constant score (S0-13).

A substring match says that a text holds it, but not how much of the text is about it. So such hits have no score that
could be mixed with others: the newest of them follow the last similar one.
"""

from __future__ import annotations

import numpy as np

from hummock.core.candidates import FoundBy
from hummock.core.recall import Plan
from hummock.recall.fuse import Fused

KEYWORD_SCORE = 0.5
"""Score of a hit that only a substring found, as the requirements document sets it."""

_BY_MORE = np.uint8(FoundBy.VECTOR | FoundBy.DOMAIN | FoundBy.KEY_FILE)


def appended(fused: Fused, plan: Plan) -> Fused:
    """Move candidates that only a substring found to the end, newest first; unchanged if no other path found any."""
    by_more = (fused.candidates.found_by[fused.row] & _BY_MORE) != 0
    if not plan.substrings or by_more.all() or not by_more.any():
        return fused
    similar, held = np.flatnonzero(by_more), np.flatnonzero(~by_more)
    newest = held[np.argsort(-fused.candidates.create_time[fused.row[held]], kind="stable")]
    order = np.concatenate([similar, newest])
    # Falling, and below the last similar candidate: later stages order by relevance.
    relevance, score = fused.relevance[order], fused.score[order]
    steps = np.linspace(1, 0, len(newest), endpoint=False, dtype=np.float32)
    relevance[len(similar) :] = relevance[: len(similar)].min() * steps
    score[len(similar) :] = KEYWORD_SCORE
    return fused.take(order, relevance=relevance, score=score)
