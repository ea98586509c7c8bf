"""One order out of several paths: drop echoes and duplicates, join the scores, let them decay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.embedding import Calibration
from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import Decay, DecayMode, Plan
from hummock.recall.gather import Probe
from hummock_kernels.decay import NATURAL_RATE, TRUE_HALF_LIFE_RATE, decay_scores

PROSE_VECTOR_SHARE = 0.5
CODE_VECTOR_SHARE = 0.8
"""Share of the vector path in the score where the model knows the script: a convex sum of scores, each divided by the
pool's best, beat rank fusion on every set that was measured, .5 on prose and talk and .8 on questions about code."""

TRUSTED_SIMILARITY = 0.4
"""The pool's best similarity from which the vector path has its whole share. Divided by a best of almost nothing, noise
would outvote an identifier that is found letter by letter."""

KEY_FILE_EVIDENCE = 0.5
"""How far a fragment moves towards the best score when a domain of the query names its file."""

_SECONDS_A_DAY = 86_400.0
_ECHO_ORIGINS = (Origin.USER_INPUT, Origin.AI_OUTPUT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fused:
    """One group in order.

    Attributes:
        candidates: Best first; ties by similarity, then memory id.
        relevance: (n,) float32 in [0, 1], what they are ordered by: best of the pool is near 1.
        score: (n,) float32, what hits show: `relevance` scaled by how well the best candidate fits at all.
        similarity: (n,) float32, calibrated; 0 without a vector.
        age_days: (n,) float64, not below 0.
        decay: (n,) float64 factors in [0, 1].
        vector_share: Share of the vector path in the scores, on average.
        echo: Candidates left out because they repeat the query.
        duplicate: Candidates left out because a newer one has the same text.
        below_min_similarity: Candidates left out because they are not similar enough.
    """

    candidates: Candidates
    relevance: NDArray[np.float32]
    score: NDArray[np.float32]
    similarity: NDArray[np.float32]
    age_days: NDArray[np.float64]
    decay: NDArray[np.float64]
    vector_share: float
    echo: int
    duplicate: int
    below_min_similarity: int


def fuse(found: Candidates, plan: Plan, probe: Probe, calibration: Calibration) -> Fused:
    """Order one group's candidates.

    Candidates that the domain path found come before all others. Hits that the keyword or domain path found too are
    exempt from the minimum similarity. Duplicates are looked for among what is left: a copy that is not similar enough
    cannot take the place of one that is.
    """
    heard = found.take(np.flatnonzero(~_echoes(found, probe)))
    near = heard.take(np.flatnonzero(_similar_enough(heard, _similarity(heard, probe, calibration), plan)))
    kept = near.take(_newest_of_each_text(near))
    similarity = _similarity(kept, probe, calibration)

    share = _vector_share(kept, similarity, probe)
    relevance = _joined(kept, similarity, share)
    age_days = np.maximum(0.0, (plan.as_of - kept.create_time) / _SECONDS_A_DAY)
    decay = _log_decay(kept, age_days, plan.decay)
    fit = np.where(_named(kept), np.float32(1), np.float32(_fit(kept, similarity, probe)))

    order = _order(kept, relevance, similarity, decay)
    decay = np.exp(decay)
    return Fused(
        candidates=kept.take(order),
        relevance=(relevance * decay).astype(np.float32)[order],
        score=(relevance * fit * decay).astype(np.float32)[order],
        similarity=similarity[order],
        age_days=age_days[order],
        decay=decay[order],
        vector_share=float(share.mean()) if len(share) else 0.0,
        echo=len(found) - len(heard),
        duplicate=len(near) - len(kept),
        below_min_similarity=len(heard) - len(near),
    )


def _echoes(found: Candidates, probe: Probe) -> NDArray[np.bool_]:
    """Said by a user or a model, and equal to the query: whatever its age (1.1-2)."""
    said = np.isin(found.origin, [int(origin) for origin in _ECHO_ORIGINS])
    hashes = np.array(sorted(probe.text_hashes), dtype=np.uint64)
    return np.asarray(said & np.isin(found.text_hash, hashes), dtype=np.bool_)


def _newest_of_each_text(found: Candidates) -> NDArray[np.int64]:
    """Rows of the candidates that stay when of equal texts only the newest does; ties by memory id."""
    newest: dict[int, int] = {}
    for row, text_hash in enumerate(found.text_hash.tolist()):
        held = newest.get(text_hash)
        if held is None or _newer(found, row, held):
            newest[text_hash] = row
    return np.array(sorted(newest.values()), dtype=np.int64)


def _newer(found: Candidates, row: int, held: int) -> bool:
    mine, other = float(found.create_time[row]), float(found.create_time[held])
    return mine > other or (mine == other and found.memory_id[row] < found.memory_id[held])


def _similarity(found: Candidates, probe: Probe, calibration: Calibration) -> NDArray[np.float32]:
    return np.nan_to_num(calibration.similarity(found.cosine, han=probe.is_han), nan=0.0)


def _similar_enough(found: Candidates, similarity: NDArray[np.float32], plan: Plan) -> NDArray[np.bool_]:
    by_vector_alone = found.found_by == FoundBy.VECTOR
    return np.asarray(~by_vector_alone | (similarity >= plan.min_similarity), dtype=np.bool_)


def _vector_share(found: Candidates, similarity: NDArray[np.float32], probe: Probe) -> NDArray[np.float32]:
    """Share of the vector path for each candidate: by what it is, less where the model's word is worth less."""
    is_code = found.kind == MemoryKind.CODE_FRAGMENT
    usual = np.where(is_code, np.float32(CODE_VECTOR_SHARE), np.float32(PROSE_VECTOR_SHARE))
    if probe.vector is None:
        return np.zeros_like(usual)
    if not (found.keyword > 0).any():
        return np.ones_like(usual)
    usual *= np.float32(probe.known_share)
    believed = usual * np.float32(min(1.0, max(0.0, float(similarity.max())) / TRUSTED_SIMILARITY))
    return believed / (believed + np.float32(1) - usual)


def _joined(found: Candidates, similarity: NDArray[np.float32], share: NDArray[np.float32]) -> NDArray[np.float32]:
    by_vector = _of_best(np.maximum(similarity, np.float32(0)))
    by_keyword = _of_best(found.keyword)
    joined = share * by_vector + (np.float32(1) - share) * by_keyword
    pulled = (found.found_by & FoundBy.KEY_FILE) != 0
    lifted = np.where(pulled, joined + (np.float32(1) - joined) * np.float32(KEY_FILE_EVIDENCE), joined)
    return np.where(_named(found), np.float32(1), lifted).astype(np.float32)


def _named(found: Candidates) -> NDArray[np.bool_]:
    """Domains that the query names; they come before all others."""
    return np.asarray((found.found_by & FoundBy.DOMAIN) != 0, dtype=np.bool_)


def _of_best(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    best = scores.max(initial=np.float32(0))
    return scores / best if best > 0 else np.zeros_like(scores)


def _fit(found: Candidates, similarity: NDArray[np.float32], probe: Probe) -> float:
    """How well the best candidate fits at all, in [0, 1]: its similarity, or its share of the query's terms."""
    if not len(found):
        return 0.0
    covered = int(np.bitwise_count(found.matched).max()) / max(1, len(probe.terms))
    return min(1.0, max(0.0, float(similarity.max()), covered))


def _log_decay(found: Candidates, age_days: NDArray[np.float64], decay: Decay) -> NDArray[np.float64]:
    """Logarithms of the factors by which age lowers the scores: (n,) float64, at most 0."""
    if decay.mode is DecayMode.OFF:
        return np.zeros(len(found))
    exempt = np.isin(found.origin, [int(origin) for origin in decay.exempt_origins]).astype(np.uint8)
    rate = TRUE_HALF_LIFE_RATE if decay.mode is DecayMode.TRUE_HALF_LIFE else NATURAL_RATE
    return decay_scores(np.ones(len(found), np.float32), age_days, decay.half_life_days, exempt, rate)


def _order(
    found: Candidates,
    relevance: NDArray[np.float32],
    similarity: NDArray[np.float32],
    log_decay: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Domains that the query names, then best first; ties by similarity, then memory id.

    The order is that of logarithms, since exp underflows in old memories.
    """
    with np.errstate(divide="ignore"):
        score = np.log(relevance.astype(np.float64)) + log_decay
    columns = (~_named(found), -score, -similarity)
    keys = list(zip(*(column.tolist() for column in columns), found.memory_id, strict=True))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
