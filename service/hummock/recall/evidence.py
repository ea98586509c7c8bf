"""Evidence beside similarity: shared words, for candidates that are not similar to the query, and verdicts.

A shared word is no evidence by itself: any text holds "the", and one in twenty "question". What counts is how much of
the query's subject a candidate's words cover, and how rare they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates
from hummock.core.embedding import Calibration
from hummock.core.recall import Plan, Preset
from hummock.recall.plan import KEEPS_ALL
from hummock.recall.query_features import QueryFeatures

ENOUGH_SHARE = 0.5
"""Share of the weight of the query's terms, weighted by rarity, from which words alone are enough evidence."""

ENOUGH_WORTH = 0.8
"""Rarity that is enough evidence for long queries and for bilingual ones; a term that no memory holds has rarity 1."""

STANDING_OUT = 2.5
"""Ratio of the best similarity to the next at which a candidate stands out, and needs less of a preset's minimum."""

_ANY = 1e-3
"""Threshold for CODEX, in place of both: any content word suffices, since entries are called by names, often short
ones."""


def evidence(found: Candidates, plan: Plan, features: QueryFeatures) -> NDArray[np.float32]:
    """Return each candidate's evidence of words, (n,), at least 0, enough from 1; (0,) if the plan ignores it.

    The less of the query's script the model knows, the less evidence is required. For candidates without a similarity
    any content word is enough; without a query vector, any term.
    """
    if plan.min_similarity <= KEEPS_ALL:
        return np.empty(0, np.float32)
    if features.vector is None or not len(features.term_weights) or not len(found.rarity):
        holds_any: NDArray[np.float32] = (found.matched != 0).astype(np.float32)
        return holds_any
    told = features.term_weights * found.rarity
    bits = (found.matched[:, None] >> np.arange(len(told), dtype=np.uint32)) & np.uint32(1)
    # Not by BLAS, which raised invalid-value warnings here for valid numbers.
    held = np.where(bits, told, 0).sum(axis=1, dtype=np.float64)
    # Words without content are no evidence, however many a candidate holds.
    known = _ANY if plan.preset is Preset.CODEX else max(features.known_share, _ANY)
    enough = min(ENOUGH_SHARE * float(told.sum(dtype=np.float64)), ENOUGH_WORTH) * known
    said = np.array(held / enough if enough > 0 else held, np.float32)
    said[np.isnan(found.cosine) & (held > 0)] = 1
    return said


def best_cosine(groups: Iterable[Candidates], plan: Plan, features: QueryFeatures, calibration: Calibration) -> float:
    """Return the cosine of the most similar candidate of all groups if it stands out; else infinity.

    Texts that equal the query do not count, and copies of one text count as one.
    """
    if plan.min_of_best >= plan.min_similarity or features.vector is None:
        return np.inf
    echoes = np.array(list(features.echoes()), np.uint64)
    found = list(groups)
    texts = np.concatenate([group.rows["text_hash"] for group in found] or [np.empty(0, np.uint64)])
    cosines = np.concatenate([group.cosine for group in found] or [np.empty(0, np.float32)])
    is_other = ~np.isnan(cosines) & ~np.isin(texts, echoes)
    if not is_other.any():
        return np.inf
    best = cosines[is_other].max()
    rest = is_other & ~np.isin(texts, texts[is_other & (cosines == best)])
    similarity = calibration.similarity(np.array([best, cosines[rest].max(initial=-1)]), han=features.is_han)
    return float(best) if similarity[0] >= STANDING_OUT * max(similarity[1], 0) else np.inf


MOST_LOSS = 0.4
"""Most of a score that WRONG verdicts take away, as a share, however many there are."""

MOST_GAIN = 0.1
"""Share of a score that HELPFUL adds in the end. Less than MOST_LOSS: use for one query says little about another."""

DOUBT = 4.0
"""Pseudo-count of neutral voices beside those that said HELPFUL: one of them adds .02 to a score, ten .07."""

DOUBT_OF_WRONG = 2.0
"""Pseudo-count of neutral voices beside those that said WRONG. One of them takes .13 off a score, ten .33."""


def verdict_factors(found: Candidates) -> NDArray[np.float32]:
    """The factor of each candidate, (n,) in [1 - MOST_LOSS, 1 + MOST_GAIN].

    The smoothed shares of the HELPFUL and of the WRONG voices, each times its bound.
    """
    helpful, wrong = found.helpful.astype(np.float32), found.wrong.astype(np.float32)
    voices = helpful + wrong
    factors: NDArray[np.float32] = (
        1 + MOST_GAIN * helpful / (voices + DOUBT) - MOST_LOSS * wrong / (voices + DOUBT_OF_WRONG)
    )
    return factors.astype(np.float32)
