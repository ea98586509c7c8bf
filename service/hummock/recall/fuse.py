"""Joins several paths to one order: drops echoes and duplicates, joins the scores, applies decay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Candidates
from hummock.core.embedding import Calibration
from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import SECONDS_A_DAY, Decay, DecayMode, Plan, TimeInterval, Wanted
from hummock.recall.evidence import evidence, verdict_factors
from hummock.recall.plan import CODE as GROUP_OF_CODE
from hummock.recall.plan import KEEPS_ALL, ONLY_TIME_SHARE
from hummock.recall.query_features import QueryFeatures
from hummock.text.questions import Trait
from hummock_kernels.pool import AGELESS, ASKING, ASKING_FIRST, CODE, SAID, SENTENCE, Pool, Tally, Weights
from hummock_kernels.rank import rank

EVEN_SIMILARITY = 0.5
"""The pool's best similarity at which the vector path weighs as much as the keyword path, in a script that it knows.

A convex sum of scores, each divided by the pool's best, beat rank fusion on every set that was measured. The best share
of the vector path differs by model, script and kind (between .2 and .8), and this similarity predicts it: a model that
found nothing like the query knows little about it."""

STEEPNESS = 3.0
"""Power with which the odds of the vector path grow with that similarity."""

ENOUGH_TERMS = 0.3
"""Share of the query's terms below which a match of words is little evidence.

Scores are divided by the pool's best, so that without this one word would weigh as much as a sentence: of a question in
another language than the texts often all that matches is a year, or a word that was learnt of another memory."""

SCARCITY = 2.0
"""Power with which the odds of the vector path grow below that share."""

CODE_ODDS = 2.0
"""Factor of the odds of the vector path for code, whose words are seldom those of the question."""

NAME_ODDS = 0.1
"""Factor of the odds of the vector path if the query is one name of code and the candidate holds all of it. A model
sees only pieces of words in such a name."""

KEY_FILE_EVIDENCE = 0.5
"""Share of the way to the best score that a fragment moves if a domain of the query names its file."""

NEIGHBOUR_WEIGHT = 0.3
"""Share of their scores that adjacent sentences of a session lend to one: they are about the same."""

ANSWER_WEIGHT = 0.6
"""Share of a question's score that is added to its answer: a sentence by another speaker within the next two turns. A
search for an answer is likely to repeat the question."""

ASKING_LOSS = 0.2
"""Share of its own score that such a sentence loses, for the same reason."""

WHEN_LENDING = (0.1, 0.1, 0.0)
"""The three values if the query asks when something was: the turn that says it is wanted, not the question before
it."""

VAGUE_MATCH = 0.5
"""The most that a time matches which the words leave open ("recently")."""

WIDE_S = 62 * SECONDS_A_DAY
"""Length of an interval above which a day that a text names does not match it, if it was told in it too: "yesterday" is
of this year, and so are all notes of this year that name no day."""

SHORTEST_HALVING_S = 43_200.0
"""Distance from an interval over which a match falls to its half: half a day, so that a day of UTC forgives the
caller's own midnight."""

WIDE_HALVING = 0.25
"""Share of an interval's length that is such a distance where it is longer, unless the interval is counted from an
event. It forgives what was told some days late; with more of it the week beside the one asked for matches too well."""

LATE_SHARE = 0.5
"""Largest share of late interaction."""

UNTRUSTED_SIMILARITY = 0.2
TRUSTED_SIMILARITY = 0.7
"""The pool's best similarity up to which token vectors have no weight, and from which they have full weight. They come
from the same embedder: a model that finds no similarity between two texts finds none between their words either."""

ECHO_ORIGINS = frozenset({Origin.USER_INPUT, Origin.AI_OUTPUT})
"""Origins of conversation turns. A turn that equals the query is an echo; a note that does is an answer (1.1-2)."""


class Fused(Struct, frozen=True, kw_only=True, eq=False):
    """One group in order: by relevance and age, domains that the query names first; ties by similarity, then id.

    Attributes:
        candidates: In no order.
        row: (m,) int64, the remaining candidates, best first; the (m,) columns below are in this order.
        joined: (m,) float32 in [0, 1], the paths' joined scores; the best of the pool is near 1.
        similarity: (m,) float32, calibrated; 0 without a vector.
        relevance: (m,) float32 in [0, 1], the sort key.
        score: (m,) float32 in [0, 1], the score of hits: `relevance` scaled by how well the best candidate fits.
        log_decay: (m,) float64 logarithms of the factors by which age lowers the scores, at most 0.
        time_match: (n,) float32 in [0, 1], how well each candidate's time matches the query's; (0,) if the query names
            no time.
        verdict: (n,) float32 feedback factor of each candidate; (0,) if there is no feedback.
        late: (n,) float32 max-sim of each candidate's token vectors, in [-1, 1]; NaN if it has none.
        vector_share: Share of the vector path in `joined`, on average.
        late_share: Share of late interaction in `joined`, on average.
        tally: Counts of all candidates, those left out included.
        by_origin: Number of candidates by origin, from 0.
        cosines: The least, the mean and the greatest cosine of all candidates; NaN without any vector.
        below_min_similarity: Candidates left out because they are not similar enough.
        best_cosine: Cosine of the most similar candidate of the recall.
        evidence: (n,) float32 evidence of words, enough from 1; (0,) if no minimum similarity applies.
        cross: (m,) float32 in [0, 1], scores of the cross-encoder, NaN if it did not read the candidate; None if it did
            not run.
        minimum: (n,) float32, the minimum similarity of each candidate; None if all have the plan's.
        replaced_by: The candidate that most likely replaces another, by that other; empty if none was looked for.
    """

    candidates: Candidates
    row: NDArray[np.int64]
    joined: NDArray[np.float32]
    similarity: NDArray[np.float32]
    relevance: NDArray[np.float32]
    score: NDArray[np.float32]
    log_decay: NDArray[np.float64]
    time_match: NDArray[np.float32]
    verdict: NDArray[np.float32]
    late: NDArray[np.float32]
    vector_share: float
    late_share: float
    tally: Tally
    by_origin: list[int]
    cosines: tuple[float, float, float]
    below_min_similarity: int
    best_cosine: float
    evidence: NDArray[np.float32]
    cross: NDArray[np.float32] | None = None
    minimum: NDArray[np.float32] | None = None
    replaced_by: Mapping[int, int] = {}

    def __len__(self) -> int:
        return len(self.row)

    def take(self, order: NDArray[np.int64], **changed: Any) -> Fused:
        """The candidates at these places, in this order; `changed` names values that are given instead."""
        in_order = _IN_ORDER if self.cross is None else (*_IN_ORDER, "cross")
        taken = {name: getattr(self, name)[order] for name in in_order if name not in changed}
        return replace(self, **taken, **changed)

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Ids, best first."""
        ids = self.candidates.memory_id
        return tuple(ids[row] for row in self.row.tolist())


_IN_ORDER = ("row", "joined", "similarity", "relevance", "score", "log_decay")
"""The (m,) columns of a `Fused`, in its order; `cross`, if present, is another."""


def fuse(
    found: Candidates,
    late: NDArray[np.float32],
    plan: Plan,
    features: QueryFeatures,
    calibration: Calibration,
    best_cosine: float,
) -> Fused:
    """Order one group's candidates.

    Candidates that the domain path found come before all others. They are exempt from the minimum similarity, as are
    holders of a name and candidates with enough evidence of words. Duplicates are removed after that, so that a copy
    that is not similar enough cannot replace one that is. Feedback moves a candidate within bounds and neither excludes
    nor admits it.

    Args:
        found: The candidates.
        late: Max-sim of the token vectors of each; NaN if late interaction does not apply.
        plan: The plan of the recall.
        features: The query.
        calibration: From cosine to similarity.
        best_cosine: Cosine of the most similar candidate of all groups (`evidence.best_cosine`).
    """
    weights = _weights(plan, features, calibration, best_cosine)
    if has_bar(found.name, plan, features):
        weights = weights._replace(min_similarity=KEEPS_ALL, min_of_best=KEEPS_ALL)
    spoken_for = evidence(found, plan, features)
    echo_hashes = _NO_HASHES
    if _SAID_BY[found.rows["origin"]].any():
        echo_hashes = np.fromiter(features.echoes(), np.uint64)
    matches_time = _matches_time(found, plan) if plan.times else _NO_TIME
    verdict = verdict_factors(found) if len(found.wrong) else _NO_VERDICT
    credit = None if found.bridged is None else found.bridged.credit
    pool = Pool(
        rows=found.rows,
        cosine=found.cosine,
        keyword=found.keyword if credit is None else np.fmax(found.keyword, credit.keyword),
        matched=found.matched,
        evidence=spoken_for if len(spoken_for) else np.zeros_like(found.cosine),
        late=late if credit is None else np.fmax(late, credit.late),
        found_by=found.found_by,
        marks_of=_marks_of(plan.decay.exempt_origins),
        time_match=matches_time,
        verdict=verdict,
        tie=np.zeros(len(found.rows), np.int32),
    )
    row, columns, counts, measures = rank(pool, echo_hashes, len(features.terms), weights)
    if counts[_TIES]:
        # Ids decide seldom, and sorting them costs as much as all of the rest.
        pool = pool._replace(tie=_places(found.memory_id))
        row, columns, counts, measures = rank(pool, echo_hashes, len(features.terms), weights)
    tally = Tally(*counts[:_COUNTS].tolist())
    joined, similarity, relevance, score, log_decay = columns
    vector_share, late_share, *cosines = measures.tolist()
    return Fused(
        candidates=found,
        row=row,
        joined=joined,
        similarity=similarity,
        relevance=relevance,
        score=score,
        log_decay=log_decay,
        time_match=matches_time,
        verdict=verdict,
        late=late,
        vector_share=0.0 if features.vector is None else vector_share,
        late_share=late_share,
        tally=tally,
        by_origin=counts[_COUNTS:].tolist(),
        cosines=tuple(cosines),
        below_min_similarity=tally.dissimilar,
        best_cosine=best_cosine,
        evidence=spoken_for,
    )


def has_bar(group: str, plan: Plan, features: QueryFeatures) -> bool:
    """Whether `bar.above_bar`, a later stage, replaces the minimum similarity for a group.

    A substring that a fragment holds is enough by itself (S0-13).
    """
    is_measured = features.vector is not None and not plan.substrings
    return group == GROUP_OF_CODE and plan.code_bar is not None and is_measured


def _weights(plan: Plan, features: QueryFeatures, calibration: Calibration, best_cosine: float) -> Weights:
    neighbour_weight, answer_weight, asking_loss = _lending(plan)
    return Weights(
        unrelated=calibration.unrelated_han if features.is_han else calibration.unrelated_latin,
        min_similarity=plan.min_similarity,
        min_of_best=plan.min_of_best,
        best_cosine=best_cosine,
        vector_share=features.known_share,
        decay_rate=_decay_rate(plan.decay),
        as_of=plan.as_of,
        echo_window_s=math.inf if plan.echo_window_s is None else plan.echo_window_s,
        even_similarity=EVEN_SIMILARITY,
        steepness=STEEPNESS,
        enough_terms=ENOUGH_TERMS,
        scarcity=SCARCITY,
        code_odds=CODE_ODDS,
        name_odds=NAME_ODDS if features.is_name else 1.0,
        key_file_evidence=KEY_FILE_EVIDENCE,
        late_share=LATE_SHARE,
        late_from=UNTRUSTED_SIMILARITY,
        late_full=TRUSTED_SIMILARITY,
        neighbour_weight=neighbour_weight,
        answer_weight=answer_weight,
        asking_loss=asking_loss,
        time_share=plan.time_share,
        decay_floor=plan.decay.floor,
    )


def _lending(plan: Plan) -> tuple[float, float, float]:
    """Weights of a neighbour and of an answer, and the loss of a question."""
    if not plan.neighbours:
        return 0.0, 0.0, 0.0
    return WHEN_LENDING if Wanted.WHEN in plan.wanted else (NEIGHBOUR_WEIGHT, ANSWER_WEIGHT, ASKING_LOSS)


def _decay_rate(decay: Decay) -> float:
    if decay.mode is DecayMode.OFF:
        return 0.0
    # exp(-age / half_life) leaves 0.368 after one "half-life"; the documents say so (1.1-3).
    rate = math.log(2.0) if decay.mode is DecayMode.TRUE_HALF_LIFE else 1.0
    return rate / decay.half_life_days


@lru_cache(16)
def _marks_of(exempt: frozenset[Origin]) -> NDArray[np.uint8]:
    """(3, 256), the marks by kind, by origin and by traits, given the origins that do not age."""
    asking = np.select([_TRAITS & int(Trait.ASKS) != 0, _TRAITS & int(Trait.ASKS_WITHIN) != 0], [ASKING, ASKING_FIRST])
    by_kind = _table(frozenset({MemoryKind.CODE_FRAGMENT}), CODE) | _table(frozenset({MemoryKind.NOTE}), SENTENCE)
    return np.stack([by_kind, _table(exempt, AGELESS) | _SAID_BY, asking.astype(np.uint8)])


def _matches_time(found: Candidates, plan: Plan) -> NDArray[np.float32]:
    """How well each candidate's time matches the query's; (0,) if none is near, so that all stay as they are."""
    # If a question is about a time only, a vague time is all there is to match.
    vague = 1.0 if plan.time_share >= ONLY_TIME_SHARE else VAGUE_MATCH
    match = time_match(plan.times, told_time(found, plan.times), vague)
    return match if match.any() else _NO_TIME


def told_time(found: Candidates, times: Sequence[TimeInterval] = ()) -> NDArray[np.float64]:
    """Return the event times of candidates, (n,) Unix seconds; for turns without one their own time; else NaN.

    A day that a text names does not count where it was told in one of the wide times.
    """
    created, is_untold = found.rows["create_time"], np.isnan(found.rows["event_time"])
    for wide in (each for each in times if each.end - each.start > WIDE_S):
        is_untold |= (found.rows["traits"] & Trait.DATED != 0) & (created >= wide.start) & (created < wide.end)
    own = np.where(found.rows["session"] != 0, created, np.nan)
    return np.where(is_untold, own, found.rows["event_time"])


def time_match(
    times: Sequence[TimeInterval], event_time: NDArray[np.float64], vague_match: float = VAGUE_MATCH
) -> NDArray[np.float32]:
    """Score how well each time matches one of the intervals: (n,) Unix seconds, NaN if unknown -> (n,) in [0, 1].

    It is 1 inside an interval (`vague_match` inside a vague one) and halves with distance; 0 where it is not known.
    """
    best = np.zeros(len(event_time), np.float32)
    for interval in times:
        distance_s = np.maximum(0.0, np.maximum(interval.start - event_time, event_time - interval.end))
        length_s = interval.end - interval.start
        is_wide = np.isfinite(length_s) and not interval.is_counted
        halving_s = max(SHORTEST_HALVING_S, WIDE_HALVING * length_s) if is_wide else SHORTEST_HALVING_S
        match = (vague_match if interval.is_vague else 1.0) * np.exp2(-distance_s / halving_s)
        best = np.fmax(best, match.astype(np.float32))
    return best


def _table(members: frozenset[int], mark: int) -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    table[list(members)] = mark
    return table


def _places(memory_ids: tuple[str, ...]) -> NDArray[np.int32]:
    """Each id's place in their order."""
    places = np.empty(len(memory_ids), np.int32)
    places[sorted(range(len(memory_ids)), key=memory_ids.__getitem__)] = np.arange(len(memory_ids), dtype=np.int32)
    return places


_COUNTS, _TIES = len(Tally._fields), Tally._fields.index("ties")
_NO_TIME: NDArray[np.float32] = np.empty(0, np.float32)
_NO_VERDICT: NDArray[np.float32] = np.empty(0, np.float32)
_NO_HASHES: NDArray[np.uint64] = np.empty(0, np.uint64)
_TRAITS = np.arange(256)
_SAID_BY = _table(ECHO_ORIGINS, SAID)
