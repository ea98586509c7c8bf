"""Ranking of candidates by the combined scores of several paths."""

import math
from typing import Any, NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._processor import bit_count
from hummock_kernels._types import (
    I64,
    OUT_F32_1D,
    OUT_F64_1D,
    OUT_I64_1D,
    U64_1D,
    Docs,
    Doubles,
    Flags,
    Indices,
    Longs,
    Tuple,
    Vector,
    Words,
)
from hummock_kernels.pool import (
    AGELESS,
    ASKING,
    ASKING_FIRST,
    CODE,
    HOLDER,
    KEY_FILE,
    KEYWORD,
    NAMED,
    ORIGINS,
    POOL,
    SAID,
    SENTENCE,
    VECTOR,
    WEIGHTS,
    Pool,
    Rows,
    Tally,
    Weights,
)

_EXEMPT = NAMED | KEY_FILE | HOLDER
_COUNTS = len(Tally._fields)


@helper()
def _similarities(cosine: Vector, unrelated: np.float32) -> Vector:
    similarity = np.zeros(cosine.shape[0], np.float32)
    for row in range(cosine.shape[0]):
        if not np.isnan(cosine[row]):
            scaled = (cosine[row] - unrelated) / (np.float32(1) - unrelated)
            similarity[row] = min(max(scaled, np.float32(-1)), np.float32(1))
    return similarity


@helper(borrows=True)
def _is_among(value: np.uint64, values: Longs) -> bool:
    is_among = False
    for i in range(values.shape[0]):
        is_among |= values[i] == value
    return bool(is_among)


@helper()
def _marks(pool: Pool, weights: Weights) -> Flags:
    """The marks of each candidate; what was said too long ago to be an echo counts as not said."""
    marks = np.empty(pool.rows.shape[0], np.uint8)
    for i in range(marks.shape[0]):
        row = pool.rows[i]
        marks[i] = pool.marks_of[0, row.kind] | pool.marks_of[1, row.origin] | pool.marks_of[2, row.traits]
        if weights.as_of - row.create_time > weights.echo_window_s:
            marks[i] &= np.uint8(255 - SAID)
    return marks


@helper()
def _copies_of(texts: Longs, rows: Rows) -> Longs:
    """Copy hashes of the candidates that have one of these texts."""
    copies = np.empty(rows.shape[0], np.uint64)
    size = 0
    for i in range(rows.shape[0]):
        copies[size] = rows[i].copy_hash
        size += _is_among(rows[i].text_hash, texts)
    return copies[:size]


@helper(borrows=True)
def _has_newer_copy(row: int, near: Indices, pool: Pool, tally: Indices) -> bool:
    copy_hash, create_time = pool.rows[row].copy_hash, pool.rows[row].create_time
    for i in range(near.shape[0]):
        other = near[i]
        if pool.rows[other].copy_hash != copy_hash or other == row:
            continue
        if pool.rows[other].create_time == create_time:
            tally[3] += 1
            if pool.tie[other] < pool.tie[row]:
                return True
        elif pool.rows[other].create_time > create_time:
            return True
    return False


@helper(borrows=True)
def _is_of_the_time(row: int, time_match: Vector) -> bool:
    """True if the candidate's time is exactly the query's."""
    return time_match.shape[0] > 0 and bool(time_match[row] >= np.float32(1))


@helper(borrows=True)
def _is_far(row: int, similarity: Vector, pool: Pool, weights: Weights) -> bool:
    if pool.found_by[row] & _EXEMPT or pool.evidence[row] >= np.float32(1) or _is_of_the_time(row, pool.time_match):
        return False
    # A missing cosine counts as less than any.
    is_best = pool.cosine[row] >= np.float32(weights.best_cosine)
    minimum = np.float32(weights.min_of_best) if is_best else np.float32(weights.min_similarity)
    return bool(similarity[row] < minimum)


@helper()
def _kept(
    similarity: Vector, pool: Pool, marks: Flags, echo_hashes: Longs, weights: Weights, tally: Indices
) -> Indices:
    """Rows that stay; `tally` counts echoes, older copies, too dissimilar ones and ties."""
    echoes = _copies_of(echo_hashes, pool.rows)
    near = np.empty(similarity.shape[0], np.int64)
    size = 0
    for row in range(similarity.shape[0]):
        if marks[row] & SAID and _is_among(pool.rows[row].copy_hash, echoes):
            tally[0] += 1
        elif _is_far(row, similarity, pool, weights):
            tally[2] += 1
        else:
            near[size] = row
            size += 1
    near = near[:size]
    kept = np.empty(size, np.int64)
    size = 0
    for i in range(near.shape[0]):
        if _has_newer_copy(near[i], near, pool, tally):
            tally[1] += 1
        else:
            kept[size] = near[i]
            size += 1
    return kept[:size]


@helper(borrows=True)
def _best(values: Vector, rows: Indices) -> np.float32:
    """The largest of these values, at least 0."""
    best = np.float32(0)
    for i in range(rows.shape[0]):
        if values[rows[i]] > best:
            best = values[rows[i]]
    return best


@helper(borrows=True)
def _most_terms(matched: Words, rows: Indices) -> int:
    most = 0
    for i in range(rows.shape[0]):
        most = max(most, int(bit_count(matched[rows[i]])))
    return most


@helper()
def _shares(closest: float, covered: int, has_keyword: bool, term_count: int, weights: Weights) -> Vector:
    """Weights of the vector path for prose and for code, and of late interaction.

    They depend on the pool's best similarity, on the largest number of matched query terms, and on whether any
    candidate has a keyword score.
    """
    by_name = weights.name_odds if covered >= term_count else 1.0
    shortfall = max(1.0, weights.enough_terms * term_count / max(1, covered))
    odds = (closest / weights.even_similarity) ** weights.steepness * shortfall**weights.scarcity * by_name
    understood = (closest - weights.late_from) / (weights.late_full - weights.late_from)
    shares = np.ones(3, np.float32)
    if has_keyword:
        shares[0] = weights.vector_share * odds / (odds + 1)
        shares[1] = weights.vector_share * odds * weights.code_odds / (odds * weights.code_odds + 1)
    shares[2] = weights.late_share * weights.vector_share * min(1.0, max(0.0, understood)) * by_name
    return shares


@helper(borrows=True)
def _of_best(value: np.float32, best: np.float32) -> np.float32:
    return max(value, np.float32(0)) / best if best > 0 else np.float32(0)


@helper()
def _joined(rows: Indices, similarity: Vector, pool: Pool, marks: Flags, shares: Vector, mean: Doubles) -> Vector:
    """The paths' scores, each divided by the pool's best, joined by `_shares`; their means are added to `mean`.

    A candidate without a vector is scored by keyword only: a pending vector is no evidence against it.
    """
    keyword, late = pool.keyword, pool.late
    best_similarity, best_keyword, best_late = _best(similarity, rows), _best(keyword, rows), _best(late, rows)
    joined = np.empty(rows.shape[0], np.float32)
    for i in range(rows.shape[0]):
        row = rows[i]
        share = shares[1] if marks[row] & CODE else shares[0]
        if np.isnan(pool.cosine[row]):
            share = np.float32(0)
        by_vector = _of_best(similarity[row], best_similarity)
        by_keyword = _of_best(keyword[row], best_keyword)
        joined[i] = share * by_vector + (np.float32(1) - share) * by_keyword
        mean[0] += share / rows.shape[0]
        if not np.isnan(late[row]):
            by_late = _of_best(late[row], best_late)
            joined[i] = (np.float32(1) - shares[2]) * joined[i] + shares[2] * by_late
            mean[1] += shares[2] / rows.shape[0]
    return joined


@helper()
def _lend(joined: Vector, rows: Indices, pool: Pool, marks: Flags, weights: Weights) -> None:
    """Sentences gain from their neighbours in the session; the best of them keeps its score, others follow suit.

    A question lends more to its answer: the next sentence of another speaker within two, otherwise the next one. If a
    sentence ends in a question, and is answered here, it loses a part of its own score.
    """
    every = pool.rows
    weight, answer_weight = np.float32(weights.neighbour_weight), np.float32(weights.answer_weight)
    places = np.empty(rows.shape[0], np.int64)
    size = 0
    for i in range(rows.shape[0]):
        if every[rows[i]].session != 0 and marks[rows[i]] & SENTENCE:
            places[size] = i
            size += 1
    own = joined[places[:size]]
    has_answer = np.zeros(size, np.bool_)
    for i in range(size):
        row = rows[places[i]]
        for j in range(size):
            has_answer[i] |= _answers(every[rows[places[j]]], every[row])
    before, after = np.float32(0), np.float32(0)
    for i in range(size):
        row = rows[places[i]]
        is_answered = has_answer[i]
        for j in range(size):
            other = rows[places[j]]
            ahead = every[row].session_position - every[other].session_position
            if every[other].session != every[row].session or ahead == 0 or abs(ahead) > 2:
                continue
            # If both sides of a conversation have one speaker, the answer is the next sentence.
            is_answer = ahead == 1 if not has_answer[j] else _answers(every[row], every[other])
            if is_answer and marks[other] & (ASKING | ASKING_FIRST) != 0:
                joined[places[i]] += answer_weight * own[j]
            elif abs(ahead) == 1:
                joined[places[i]] += weight * own[j]
            is_answered |= ahead == -1
        if marks[row] & ASKING and is_answered:
            joined[places[i]] -= np.float32(weights.asking_loss) * own[i]
        before, after = max(before, own[i]), max(after, joined[places[i]])
    for i in range(size if after > before else 0):
        joined[places[i]] *= before / after


@helper(borrows=True)
def _answers(row: Any, asked: Any) -> bool:
    """True if a sentence answers another, by position and speaker; without known speakers, the next sentence does."""
    ahead = row.session_position - asked.session_position
    if row.session != asked.session or ahead < 1 or ahead > 2:
        return False
    is_told = row.speaker != 0 and asked.speaker != 0
    return bool(row.speaker != asked.speaker if is_told else ahead == 1)


@helper(borrows=True)
def _has_holders(found_by: Flags, rows: Indices) -> bool:
    has_holders = False
    for i in range(rows.shape[0]):
        has_holders |= found_by[rows[i]] & HOLDER != 0
    return bool(has_holders)


class _Aged(NamedTuple):
    """Sort keys of candidates, (m,) each.

    Attributes:
        first: 2 for domains that the query names, 1 for holders of the name that it is, otherwise 0.
        lifted: Joined scores with the bonuses of the paths' marks, times the verdicts; may exceed 1 by these.
        log_decay: Logarithms of the factors of age.
        order: Logarithms of the scores, aged; float32 scores of old memories would underflow.
    """

    first: Flags
    lifted: Vector
    log_decay: Doubles
    order: Doubles


@helper()
def _aged(joined: Vector, rows: Indices, pool: Pool, marks: Flags, has_holders: bool, weights: Weights) -> _Aged:
    first = np.zeros(rows.shape[0], np.uint8)
    lifted = joined.copy()
    log_decay = np.zeros(rows.shape[0], np.float64)
    order = np.empty(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        found_by = pool.found_by[rows[i]]
        if found_by & KEY_FILE:
            lifted[i] += (np.float32(1) - lifted[i]) * np.float32(weights.key_file_evidence)
        if has_holders:
            first[i] = found_by & HOLDER != 0
            lifted[i] = (lifted[i] + first[i]) / np.float32(2)
        if found_by & NAMED:
            first[i] = 2
            lifted[i] = 1
        if pool.verdict.shape[0] > 0:
            lifted[i] *= pool.verdict[rows[i]]
        if weights.decay_rate > 0 and not marks[rows[i]] & AGELESS:
            age_days = max(0.0, (weights.as_of - pool.rows[rows[i]].create_time) / 86400.0)
            log_decay[i] = -weights.decay_rate * age_days
            if weights.decay_floor > 0:
                left = weights.decay_floor + (1.0 - weights.decay_floor) * math.exp(log_decay[i])
                log_decay[i] = math.log(left)
        order[i] = (math.log(lifted[i]) if lifted[i] > 0 else -np.inf) + log_decay[i]
    return _Aged(first, lifted, log_decay, order)


@helper(borrows=True)
def _goes_before(one: int, other: int, first: Flags, order: Doubles, similarity: Vector, tie: Docs) -> bool:
    if first[one] != first[other]:
        return bool(first[one] > first[other])
    if order[one] != order[other]:
        return bool(order[one] > order[other])
    if similarity[one] != similarity[other]:
        return bool(similarity[one] > similarity[other])
    return bool(tie[one] < tie[other])


@helper()
def _sorted(first: Flags, order: Doubles, similarity: Vector, tie: Docs) -> Indices:
    """Places in order (Shell sort, 1959, Knuth's gaps): NumPy's sort takes one key, and a second to compile."""
    places = np.arange(first.shape[0])
    gap = 1
    while gap < places.shape[0] // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, places.shape[0]):
            place = places[i]
            at = i
            while at >= gap and _goes_before(place, places[at - gap], first, order, similarity, tie):
                places[at] = places[at - gap]
                at -= gap
            places[at] = place
        gap //= 3
    return places


@helper(borrows=True)
def _count_ties(first: Flags, order: Doubles, similarity: Vector) -> int:
    """Number of candidates, in order, that differ only in `tie` from the one before."""
    ties = 0
    for i in range(1, first.shape[0]):
        ties += first[i] == first[i - 1] and order[i] == order[i - 1] and similarity[i] == similarity[i - 1]
    return ties


@helper()
def _shown(aged: _Aged, places: Indices, has_holders: bool, fit: float) -> tuple[Vector, Vector]:
    """Relevance and the score to show, in order; `fit` is how well the best candidate fits."""
    relevance = np.empty(places.shape[0], np.float32)
    score = np.empty(places.shape[0], np.float32)
    for i in range(places.shape[0]):
        place = places[i]
        relevance[i] = min(1.0, aged.lifted[place] * math.exp(aged.log_decay[place]))
        score[i] = relevance[i] * (1.0 if aged.first[place] else fit)
        if has_holders and i > 0 and aged.first[places[i - 1]] < 2:
            # Holders may be old; later candidates must not show a better score.
            relevance[i] = min(relevance[i], relevance[i - 1])
            score[i] = min(score[i], score[i - 1])
    return relevance, score


@helper(borrows=True)
def _count(pool: Pool, tally: Indices, measures: Doubles) -> None:
    """Count the candidates by path, kind of place and origin, and note the range and the mean of their cosines."""
    total, compared = 0.0, 0
    for row in range(pool.cosine.shape[0]):
        found_by = pool.found_by[row]
        tally[4] += found_by & VECTOR != 0
        tally[5] += found_by & KEYWORD != 0
        tally[6] += found_by & (NAMED | KEY_FILE) != 0
        tally[7] += found_by & (NAMED | HOLDER) != 0
        tally[8] += pool.rows[row].session != 0
        tally[9] += pool.rows[row].speaker != 0
        tally[10] += pool.rows[row].file != 0
        tally[_COUNTS + pool.rows[row].origin % ORIGINS] += 1
        cosine = np.float64(pool.cosine[row])
        if not np.isnan(cosine):
            measures[2] = min(cosine, measures[2]) if compared else cosine
            measures[4] = max(cosine, measures[4]) if compared else cosine
            total += cosine
            compared += 1
    if compared:
        measures[3] = total / compared


_FLOATS = Tuple((OUT_F32_1D, OUT_F32_1D, OUT_F32_1D, OUT_F32_1D, OUT_F64_1D))


@kernel(Tuple((OUT_I64_1D, _FLOATS, OUT_I64_1D, OUT_F64_1D))(POOL, U64_1D, I64, WEIGHTS))
def rank(
    pool: Pool, echo_hashes: Longs, term_count: int, weights: Weights
) -> tuple[Indices, tuple[Vector, Vector, Vector, Vector, Doubles], Indices, Doubles]:
    """Candidates by relevance: echoes, too dissimilar ones and older copies left out, paths joined, ages counted.

    Left out are, in this order: sentences equal to the query; candidates below the minimum without evidence from a
    name, words or the exact time; all but the newest of equal texts. The others score the convex sum of similarity and
    keyword score, each divided by the best of the pool; the weights depend on the pool's best similarity and on the
    largest number of matched query terms. Late interaction has its share of that in the same way. Sentences gain from
    their neighbours in the session; then the query's times have their share. Fragments of key files are raised, and
    verdicts raise or lower. Domains that the query names come first, then the holders of the name that it is, then the
    others, by the logarithm of the score less the loss by age. Ties go to the more similar, then to the smaller `tie`.

    Args:
        pool: The candidates.
        echo_hashes: Hashes of the query's own text.
        term_count: Terms of the query.
        weights: Weights of the paths.

    Returns:
        Rows in order, (m,). Of each: the paths' joined score in [0, 1]; calibrated similarity, 0 without a vector;
        relevance in [0, 1], which is the joined score raised and aged; the score to show, which is that times the fit
        of the best candidate; the logarithm of the factor of age. Counts of the whole pool: a `Tally`, then the number
        of each origin. Mean shares of the vector path and of late interaction, and the least, the mean and the greatest
        cosine of the pool, NaN without any (5,).

    Source: Bruch, Gai & Ingber, TOIS 2023 (convex combination of normalised scores).
    """
    tally = np.zeros(_COUNTS + ORIGINS, np.int64)
    measures = np.full(5, np.nan)
    measures[:2] = 0
    _count(pool, tally, measures)
    similarity = _similarities(pool.cosine, np.float32(weights.unrelated))
    marks = _marks(pool, weights)
    rows = _kept(similarity, pool, marks, echo_hashes, weights, tally)

    closest = np.float64(_best(similarity, rows))
    covered = _most_terms(pool.matched, rows)
    shares = _shares(closest, covered, bool(_best(pool.keyword, rows) > 0), term_count, weights)
    joined = _joined(rows, similarity, pool, marks, shares, measures)
    if weights.neighbour_weight > 0:
        _lend(joined, rows, pool, marks, weights)
    if pool.time_match.shape[0] > 0:
        share = np.float32(weights.time_share)
        joined = (np.float32(1) - share) * joined + share * pool.time_match[rows]

    has_holders = _has_holders(pool.found_by, rows)
    aged = _aged(joined, rows, pool, marks, has_holders, weights)
    places = _sorted(aged.first, aged.order, similarity[rows], pool.tie[rows])
    fit = min(1.0, max(closest, covered / max(1, term_count)))
    relevance, score = _shown(aged, places, has_holders, fit)
    rows = rows[places]
    similarity = similarity[rows]
    tally[3] += _count_ties(aged.first[places], aged.order[places], similarity)
    return rows, (joined[places], similarity, relevance, score, aged.log_decay[places]), tally, measures
