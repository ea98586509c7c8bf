"""One order out of several paths: drop echoes and duplicates, join the scores, let them decay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.embedding import Calibration
from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import Decay, DecayMode, Plan
from hummock.recall.gather import Probe
from hummock_kernels.decay import NATURAL_RATE, TRUE_HALF_LIFE_RATE, decay_scores

EVEN_SIMILARITY = 0.5
"""The pool's best similarity at which the vector path weighs as much as the keyword path, in a script that it knows.

A convex sum of scores, each divided by the pool's best, beat rank fusion on every set that was measured. What the two
are worth differs by model, script and kind (the vector path's best share was between .2 and .8), and that similarity
tells which it is: a model that has found nothing like the query knows little about it."""

STEEPNESS = 3.0
"""How fast the odds of the vector path grow with that similarity: as its power."""

CODE_ODDS = 1.5
"""By how much they are better where the candidate is code, whose words are seldom those of the question."""

NAME_ODDS = 0.1
"""The same where the query is one name of code and a candidate holds all of it: a model sees pieces of words in it."""

KEY_FILE_EVIDENCE = 0.5
"""How far a fragment moves towards the best score when a domain of the query names its file."""

_SECONDS_A_DAY = 86_400.0
_ECHO_ORIGINS = (Origin.USER_INPUT, Origin.AI_OUTPUT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fused:
    """One group in order: by relevance and age, domains that the query names first; ties by similarity, then id.

    Attributes:
        candidates: Best first.
        joined: (n,) float32 in [0, 1], the paths' joined scores; the best of the pool is near 1.
        similarity: (n,) float32, calibrated; 0 without a vector.
        fit: How well the best candidate fits at all, in [0, 1].
        age_days: (n,) float64, not below 0.
        log_decay: (n,) float64 logarithms of the factors by which age lowers the scores, at most 0.
        vector_share: Share of the vector path in `joined`, on average.
        late: (n,) float32 max-sim of the token vectors, in [-1, 1]; NaN where there is none.
        late_share: Share of late interaction in `joined`, on average.
        echo: Candidates left out because they repeat the query.
        duplicate: Candidates left out because a newer one has the same text.
        below_min_similarity: Candidates left out because they are not similar enough.
    """

    candidates: Candidates
    joined: NDArray[np.float32]
    similarity: NDArray[np.float32]
    fit: float
    age_days: NDArray[np.float64]
    log_decay: NDArray[np.float64]
    vector_share: float
    late: NDArray[np.float32]
    late_share: float = 0.0
    echo: int
    duplicate: int
    below_min_similarity: int

    @property
    def decay(self) -> NDArray[np.float64]:
        """(n,) float64 factors in [0, 1]; those of great ages are 0."""
        return np.exp(self.log_decay)

    @property
    def relevance(self) -> NDArray[np.float32]:
        """(n,) float32 in [0, 1], what they are ordered by."""
        return (_lifted(self) * self.decay).astype(np.float32)

    @property
    def score(self) -> NDArray[np.float32]:
        """(n,) float32 in [0, 1], what hits show: `relevance` scaled by how well the best candidate fits at all."""
        fit = np.where(_named(self.candidates), np.float32(1), np.float32(self.fit))
        return (_lifted(self) * fit * self.decay).astype(np.float32)


def fuse(found: Candidates, plan: Plan, probe: Probe, calibration: Calibration) -> Fused:
    """Order one group's candidates.

    Candidates that the domain path found come before all others. Hits that the keyword or domain path found too are
    exempt from the minimum similarity. Duplicates are looked for among what is left: a copy that is not similar enough
    cannot take the place of one that is.
    """
    heard = found.where(~_echoes(found, probe))
    similarity = _similarity(heard, probe, calibration)
    is_near = _similar_enough(heard, similarity, plan)
    near = heard.where(is_near)
    is_newest = _newest_of_each_text(near)
    kept, similarity = near.where(is_newest), similarity[is_near][is_newest]

    share = _vector_share(kept, similarity, probe)
    age_days = np.maximum(0.0, (plan.as_of - kept.create_time) / _SECONDS_A_DAY)
    return in_order(
        Fused(
            candidates=kept,
            joined=_joined(kept, similarity, share),
            similarity=similarity,
            fit=_fit(kept, similarity, probe),
            age_days=age_days,
            log_decay=_log_decay(kept, age_days, plan.decay),
            vector_share=float(share.mean()) if len(share) else 0.0,
            late=np.full(len(kept), np.nan, np.float32),
            echo=len(found) - len(heard),
            duplicate=len(near) - len(kept),
            below_min_similarity=len(heard) - len(near),
        )
    )


def in_order(fused: Fused) -> Fused:
    """The same candidates, best first."""
    order = _order(fused)
    return replace(
        fused,
        candidates=fused.candidates.take(order),
        joined=fused.joined[order],
        similarity=fused.similarity[order],
        age_days=fused.age_days[order],
        log_decay=fused.log_decay[order],
        late=fused.late[order],
    )


def of_best(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each score divided by the largest, if that is above 0: (n,) of 0 and more -> (n,) in [0, 1]."""
    best = scores.max(initial=np.float32(0))
    return scores / best if best > 0 else np.zeros_like(scores)


def name_odds(found: Candidates, probe: Probe) -> float:
    """Factor for the odds of whatever the model says: NAME_ODDS where the query is a name that is found, else 1."""
    is_found = bool((np.bitwise_count(found.matched) >= len(probe.terms)).any())
    return NAME_ODDS if probe.is_name and is_found else 1.0


def _echoes(found: Candidates, probe: Probe) -> NDArray[np.bool_]:
    """Said by a user or a model, and equal to the query: whatever its age (1.1-2)."""
    said = _any_equal(found.origin, _ECHO_ORIGINS)
    return said & _any_equal(found.text_hash, probe.text_hashes) if said.any() else said


def _any_equal(column: NDArray[Any], values: Iterable[int]) -> NDArray[np.bool_]:
    """Which elements equal one of a few values; a comparison each is much less work than `numpy.isin`."""
    equal = np.zeros(len(column), np.bool_)
    for value in values:
        equal |= column == column.dtype.type(value)
    return equal


def _newest_of_each_text(found: Candidates) -> NDArray[np.bool_]:
    """Which candidates stay when of equal texts only the newest does; ties by memory id."""
    newest: dict[int, int] = {}
    for row, text_hash in enumerate(found.text_hash.tolist()):
        held = newest.get(text_hash)
        if held is None or _newer(found, row, held):
            newest[text_hash] = row
    stays = np.zeros(len(found), np.bool_)
    stays[list(newest.values())] = True
    return stays


def _newer(found: Candidates, row: int, held: int) -> bool:
    mine, other = float(found.create_time[row]), float(found.create_time[held])
    return mine > other or (mine == other and found.memory_id[row] < found.memory_id[held])


def _similarity(found: Candidates, probe: Probe, calibration: Calibration) -> NDArray[np.float32]:
    return np.nan_to_num(calibration.similarity(found.cosine, han=probe.is_han), nan=0.0)


def _similar_enough(found: Candidates, similarity: NDArray[np.float32], plan: Plan) -> NDArray[np.bool_]:
    by_vector_alone = found.found_by == FoundBy.VECTOR
    return np.asarray(~by_vector_alone | (similarity >= plan.min_similarity), dtype=np.bool_)


def _vector_share(found: Candidates, similarity: NDArray[np.float32], probe: Probe) -> NDArray[np.float32]:
    """Share of the vector path for each candidate, by how well the model understands the query, and by what it is."""
    if probe.vector is None:
        return np.zeros(len(found), np.float32)
    if not (found.keyword > 0).any():
        return np.ones(len(found), np.float32)
    odds = (max(0.0, float(similarity.max())) / EVEN_SIMILARITY) ** STEEPNESS * name_odds(found, probe)
    is_code = found.kind == MemoryKind.CODE_FRAGMENT
    each = np.where(is_code, np.float32(CODE_ODDS * odds), np.float32(odds))
    return np.asarray(np.float32(probe.known_share) * each / (each + np.float32(1)), dtype=np.float32)


def _joined(found: Candidates, similarity: NDArray[np.float32], share: NDArray[np.float32]) -> NDArray[np.float32]:
    by_vector = of_best(np.maximum(similarity, np.float32(0)))
    by_keyword = of_best(found.keyword)
    return (share * by_vector + (np.float32(1) - share) * by_keyword).astype(np.float32)


def _lifted(fused: Fused) -> NDArray[np.float32]:
    """The joined scores, those of fragments of key files raised, those of named domains the best of all."""
    pulled = (fused.candidates.found_by & FoundBy.KEY_FILE) != 0
    raised = fused.joined + (np.float32(1) - fused.joined) * np.float32(KEY_FILE_EVIDENCE)
    lifted = np.where(pulled, raised, fused.joined)
    return np.where(_named(fused.candidates), np.float32(1), lifted).astype(np.float32)


def _named(found: Candidates) -> NDArray[np.bool_]:
    """Domains that the query names; they come before all others."""
    return np.asarray((found.found_by & FoundBy.DOMAIN) != 0, dtype=np.bool_)


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
    exempt = _any_equal(found.origin, decay.exempt_origins).astype(np.uint8)
    rate = TRUE_HALF_LIFE_RATE if decay.mode is DecayMode.TRUE_HALF_LIFE else NATURAL_RATE
    return decay_scores(np.ones(len(found), np.float32), age_days, decay.half_life_days, exempt, rate)


def _order(fused: Fused) -> NDArray[np.int64]:
    """Domains that the query names, then best first; ties by similarity, then memory id.

    The order is that of logarithms, since exp underflows in old memories.
    """
    found = fused.candidates
    with np.errstate(divide="ignore"):
        score = np.log(_lifted(fused).astype(np.float64)) + fused.log_decay
    columns = (~_named(found), -score, -fused.similarity)
    keys = list(zip(*(column.tolist() for column in columns), found.memory_id, strict=True))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
