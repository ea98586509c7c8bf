"""Leaves out fragments of code with too little evidence from similarity, late interaction and words together.

Among thousands of fragments some resemble any question. A bar on similarity alone also cuts answers to questions in
another language or in other words; together with late interaction and shared words it does not. Source of the numbers:
docs/decisions/046.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import FoundBy
from hummock.core.embedding import Calibration
from hummock.core.recall import Plan
from hummock.recall.fuse import Fused, has_bar
from hummock.recall.plan import KEEPS_ALL
from hummock.recall.query_features import QueryFeatures

MANY_FRAGMENTS: Final = 4096
"""Number of fragments that the bar is calibrated for. Each halving lowers it by `BAR_A_HALVING`, as fewer fragments
resemble a question by chance; above this number it was not measured and stays the same."""

BAR_A_HALVING: Final = 0.05

WORTH_OF_WORDS: Final = 0.2
"""Weight of the evidence of words, added to a fragment's similarity and late interaction."""

MOST_EVIDENCE: Final = 2.0
"""Most evidence of words that counts."""

LATE_AT_NOTHING: Final = 0.40
LATE_A_SIMILARITY: Final = 0.50
"""Late interaction per similarity, on average; with LATE_AT_NOTHING it estimates the score of memories that have
none."""

_EXEMPT = FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.HOLDER


def above_bar(fused: Fused, plan: Plan, features: QueryFeatures, calibration: Calibration) -> Fused:
    """Remove fragments below the plan's bar from a group of code; any other group is unchanged.

    Exempt are key files of domains that the query names, holders of the name that the query is, and memories that match
    its time.

    Args:
        fused: In any order.
        plan: The plan of the recall.
        features: The query.
        calibration: From cosine to similarity.
    """
    found = fused.candidates
    if plan.code_bar is None or not has_bar(found.name, plan, features):
        return fused
    minimum = _minima(fused, plan.code_bar, plan.min_similarity)
    similarity = np.nan_to_num(calibration.similarity(found.cosine, han=features.is_han))
    reaches = (similarity >= minimum) | (found.found_by & _EXEMPT != 0)
    if len(fused.time_match):
        reaches |= fused.time_match >= 1
    left = np.flatnonzero(reaches[fused.row])
    return fused.take(left, below_min_similarity=len(fused) - len(left), minimum=minimum)


def _minima(fused: Fused, bar: float, without_vector: float) -> NDArray[np.float32]:
    """Return the minimum similarity of each candidate, (n,): the bar less what late interaction and words add.

    A candidate without a vector is judged by its words alone, which must be enough evidence.
    """
    found, late, said = fused.candidates, fused.late, fused.evidence
    halvings = np.log2(MANY_FRAGMENTS / min(max(found.searched, 1), MANY_FRAGMENTS))
    rest = bar - BAR_A_HALVING * halvings - WORTH_OF_WORDS * np.minimum(said, MOST_EVIDENCE)
    by_similarity = (rest - LATE_AT_NOTHING) / (1 + LATE_A_SIMILARITY)
    least = np.where(np.isnan(late), by_similarity, rest - late)
    by_words = np.where(said >= 1, KEEPS_ALL, without_vector)
    return np.where(np.isnan(found.cosine), by_words, least).astype(np.float32)
