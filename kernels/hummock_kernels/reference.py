"""Readable twins of the kernels, with the same arguments and results; tests compare the two."""

import itertools
import math

import numpy as np

from hummock_kernels import reference_gather, reference_messages, reference_text, reference_vectors, reference_words
from hummock_kernels._types import Docs, Doubles, Flags, Halves, Indices, Longs, Vector, Words
from hummock_kernels.files import FileShares
from hummock_kernels.mmr import OVER, TWIN, Cap
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
    SAID,
    SENTENCE,
    VECTOR,
    Pool,
    Rows,
    Weights,
)
from hummock_kernels.reference_vectors import decoded
from hummock_kernels.replaced import Replacing

analyse = reference_text.analyse
token_estimates = reference_text.token_estimates
numbers_of = reference_text.numbers_of
remember_numbers = reference_text.remember_numbers
pack_lists = reference_text.pack_lists
split_lists = reference_text.split_lists
words_in = reference_text.words_in
bm25_scores = reference_words.bm25_scores
best_by_bm25 = reference_words.best_by_bm25
presence_of = reference_words.presence_of
greatest_shares = reference_words.greatest_shares
paged_counts = reference_words.paged_counts
count_postings = reference_words.count_postings
put_postings = reference_words.put_postings
invert = reference_words.invert
merge_postings = reference_words.merge_postings
mark_term = reference_words.mark_term
score_rows = reference_vectors.score_rows
scan = reference_vectors.scan
max_sims = reference_vectors.max_sims
sign_bits = reference_vectors.sign_bits
put_signs = reference_vectors.put_signs
weigh_signs = reference_vectors.weigh_signs
take_lightest = reference_vectors.take_lightest
add_turns = reference_vectors.add_turns
neighbours = reference_vectors.neighbours
gather = reference_gather.gather
score_translated = reference_gather.score_translated
flags_of_signs = reference_gather.flags_of_signs
weigh_terms = reference_gather.weigh_terms
put_message = reference_messages.put_message


def top_k(scores: Vector, allowed: Flags, k: int) -> Indices:
    """Twin of `topk.top_k`."""
    candidates = np.flatnonzero(np.isfinite(scores) & (allowed != 0))
    order = np.argsort(-scores[candidates], kind="stable")
    return candidates[order][: max(k, 0)].astype(np.int64)


def rank(
    pool: Pool, echo_hashes: Longs, term_count: int, weights: Weights
) -> tuple[Indices, tuple[Vector, Vector, Vector, Vector, Doubles], Indices, Doubles]:
    """Twin of `rank.rank`."""
    cosine, keyword, matched, evidence, late, found_by = pool[1:7]
    time_match, verdict, tie = pool.time_match, pool.verdict, pool.tie
    text_hash, copy_hash, create_time, session, position, speaker = (
        pool.rows[name] for name in ("text_hash", "copy_hash", "create_time", "session", "session_position", "speaker")
    )
    marked = zip(pool.marks_of, ("kind", "origin", "traits"), strict=True)
    marks = np.bitwise_or.reduce([table[pool.rows[name]] for table, name in marked])
    marks = np.where(weights.as_of - create_time > weights.echo_window_s, marks & ~np.uint8(SAID), marks)
    similarity = np.nan_to_num((cosine - np.float32(weights.unrelated)) / np.float32(1 - weights.unrelated)).clip(-1, 1)
    is_echo = (marks & SAID != 0) & np.isin(copy_hash, copy_hash[np.isin(text_hash, echo_hashes)])
    # A missing cosine counts as less than any.
    is_best = cosine >= np.float32(weights.best_cosine)
    minimum = np.where(is_best, weights.min_of_best, weights.min_similarity).astype(np.float32)
    is_of_the_time = time_match >= 1 if len(time_match) else np.zeros(len(cosine), np.bool_)
    is_exempt = (found_by & (NAMED | KEY_FILE | HOLDER) != 0) | (evidence >= 1) | is_of_the_time
    is_far = ~is_echo & ~is_exempt & (similarity < minimum)
    near = np.flatnonzero(~is_echo & ~is_far).tolist()
    age = {row: (-create_time[row], tie[row]) for row in near}
    rows = np.array(
        [row for row in near if not any(copy_hash[o] == copy_hash[row] and age[o] < age[row] for o in near)], np.int64
    )
    closest = max(0.0, similarity[rows].max(initial=0))
    covered = max((int(word).bit_count() for word in matched[rows]), default=0)
    by_name = weights.name_odds if covered >= term_count else 1.0
    shortfall = max(1.0, weights.enough_terms * term_count / max(1, covered))
    odds = (closest / weights.even_similarity) ** weights.steepness * shortfall**weights.scarcity * by_name
    each = np.where(marks[rows] & CODE, odds * weights.code_odds, odds)
    share = weights.vector_share * each / (each + 1) if (keyword[rows] > 0).any() else np.ones(len(rows))
    share[np.isnan(cosine[rows])] = 0
    understood = (closest - weights.late_from) / (weights.late_full - weights.late_from)
    late_share = weights.late_share * weights.vector_share * min(1.0, max(0.0, understood)) * by_name
    late_shares = np.where(np.isnan(late[rows]), 0, late_share)

    joined = share * _of_best(similarity[rows]) + (1 - share) * _of_best(keyword[rows])
    joined = (1 - late_shares) * joined + late_shares * _of_best(np.nan_to_num(late[rows]))
    session = np.where(marks[rows] & SENTENCE, session[rows], np.uint64(0))
    if weights.neighbour_weight > 0:
        joined = _lent(joined, session, position[rows], speaker[rows], marks[rows], weights)
    if len(time_match):
        joined = (1 - weights.time_share) * joined + weights.time_share * time_match[rows]
    raised = joined + (1 - joined) * weights.key_file_evidence
    is_named, is_holder = (found_by[rows] & bit != 0 for bit in (NAMED, HOLDER))
    lifted = np.where(found_by[rows] & KEY_FILE, raised, joined)
    lifted = np.where(is_named, 1.0, (lifted + is_holder) / 2 if is_holder.any() else lifted)
    lifted = lifted * (verdict[rows] if len(verdict) else 1.0)
    is_first = np.where(is_named, 2, is_holder)
    age_days = np.maximum(0, weights.as_of - create_time[rows]) / 86400
    log_decay = np.where(marks[rows] & AGELESS, 0.0, -weights.decay_rate * age_days)
    if weights.decay_floor > 0:
        log_decay = np.log(weights.decay_floor + (1 - weights.decay_floor) * np.exp(log_decay))
    with np.errstate(divide="ignore"):
        order = np.log(lifted) + log_decay
    best_first = np.lexsort((tie[rows], -similarity[rows], -order, -is_first))
    fit = np.where(is_first, 1.0, min(1.0, max(closest, covered / max(1, term_count))))
    relevance = np.minimum(1.0, lifted * np.exp(log_decay))
    copies = sum(copy_hash[o] == copy_hash[row] and create_time[o] == create_time[row] for row in near for o in near)
    keys = list(zip(is_first[best_first], order[best_first], similarity[rows][best_first], strict=True))
    ties = copies - len(near) + sum(one == other for one, other in itertools.pairwise(keys))
    tally = [is_echo.sum(), len(near) - len(rows), is_far.sum(), ties, *_counts(pool)]
    floats = (joined, similarity[rows], relevance, relevance * fit)
    joined, similar, relevance, score = (column[best_first].astype(np.float32) for column in floats)
    behind = is_first[best_first] < 2 if is_holder.any() else np.zeros(len(rows), np.bool_)
    for shown in (relevance, score):
        shown[behind] = np.minimum.accumulate(shown[behind])
    means = [share.mean(), late_shares.mean()] if len(rows) else [0.0, 0.0]
    compared = cosine[~np.isnan(cosine)].astype(np.float64)
    range_of = [compared.min(), compared.mean(), compared.max()] if len(compared) else [math.nan] * 3
    columns = (joined, similar, relevance, score, log_decay[best_first])
    return rows[best_first], columns, np.array(tally), np.array([*means, *range_of])


def _counts(pool: Pool) -> list[int]:
    """The `Tally` of a pool from `by_vector` on, then its candidates by origin."""
    by_path = [pool.found_by & bits != 0 for bits in (VECTOR, KEYWORD, NAMED | KEY_FILE, NAMED | HOLDER)]
    known = (pool.rows[name] for name in ("session", "speaker", "file"))
    counts = [np.count_nonzero(column) for column in (*by_path, *known)]
    return [*counts, *np.bincount(pool.rows["origin"], minlength=ORIGINS).tolist()]


def _lent(joined: Doubles, session: Longs, position: Docs, speaker: Words, marks: Flags, weights: Weights) -> Doubles:
    same = (session[:, None] == session) & (session != 0)
    ahead = position[:, None] - position
    is_told = (speaker[:, None] != 0) & (speaker != 0)
    by_another = np.where(is_told, speaker[:, None] != speaker, abs(ahead) == 1)
    asks, lends_more = marks & ASKING != 0, marks & (ASKING | ASKING_FIRST) != 0
    by_place = same & by_another & (ahead > 0) & (ahead <= 2)
    answers = by_place | (same & (ahead == 1) & ~by_place.any(axis=0))
    beside = weights.neighbour_weight * (same & (abs(ahead) == 1))
    lends = np.where(answers & lends_more, weights.answer_weight, beside)
    lent = joined + lends @ joined - weights.asking_loss * asks * answers.any(axis=0) * joined
    before, after = (scores[session != 0].max(initial=0) for scores in (joined, lent))
    return np.where(session != 0, lent * (before / after if after > before else 1), joined)


def _of_best(scores: Vector) -> Doubles:
    positive = np.maximum(scores, 0).astype(np.float64)
    best = positive.max(initial=0)
    return positive / best if best > 0 else positive


def mmr(
    vectors: Halves,
    vector_row: Indices,
    candidates: Rows,
    rows: Indices,
    relevance: Vector,
    weight: float,
    alike: float,
    twin_bar: float,
    keep: int,
    cap: Cap,
) -> tuple[Indices, Flags]:
    """Twin of `mmr.mmr`."""
    its = np.zeros((len(rows), vectors.shape[1]), np.float32)
    its[vector_row[rows] >= 0] = decoded(vectors[vector_row[rows][vector_row[rows] >= 0]])
    similarity = np.nan_to_num(its @ its.T, nan=0.0)
    name = candidates["name_hash"][rows]
    are_twins = (similarity >= np.float32(twin_bar)) & (name[:, None] == name) & (name != 0)
    counted = np.minimum(similarity, np.float32(alike))
    writer = cap.writers[rows] if len(cap.writers) else np.zeros(len(rows), np.uint32)
    least = np.float32(cap.near) * max((one for one in relevance if not math.isnan(one)), default=np.float32(0))
    chosen: list[int] = []
    twins: list[bool] = []
    over: set[int] = set()
    rest = list(range(len(rows)))
    while rest and len(chosen) < keep:
        taken = [writer[i] for i in chosen] if len(chosen) < cap.first else []
        full = {one for one in taken if one and taken.count(one) >= cap.most}
        held = {i for i in rest if writer[i] in full}
        waits = [bool(full) and (i in held or not relevance[i] >= least) for i in rest]
        closest = [max((counted[i, j] for j in chosen), default=np.float32(0)) for i in rest]
        gains = [_gain(relevance[i], near, np.float32(weight)) for i, near in zip(rest, closest, strict=True)]
        is_twin = [any(are_twins[i, j] for j in chosen) for i in rest]
        order = ((wait, twin, -gain, i) for wait, twin, gain, i in zip(waits, is_twin, gains, rest, strict=True))
        wait, twin, _, pick = min(order)
        chosen.append(pick)
        twins.append(twin)
        rest.remove(pick)
        over |= set() if wait else {i for i in held if relevance[i] > relevance[pick]}
    marks = [TWIN * twin | OVER * (i in over) for i, twin in zip(chosen, twins, strict=True)]
    return np.array(chosen, np.int64), np.array(marks, np.uint8)


def replaced(
    vectors: Halves,
    vector_row: Indices,
    candidates: Rows,
    writers: Words,
    rows: Indices,
    relevance: Vector,
    rule: Replacing,
) -> tuple[Indices, Indices]:
    """Twin of `replaced.replaced`."""
    row, writer = candidates[rows], (writers if len(writers) else np.zeros(len(candidates), np.uint32))[rows]
    its = np.zeros((len(rows), vectors.shape[1]), np.float32)
    its[vector_row[rows] >= 0] = decoded(vectors[vector_row[rows][vector_row[rows] >= 0]])
    is_read = np.isnan(row["event_time"]) | (row["traits"] & rule.dated != 0)
    told = np.where(is_read, row["create_time"], row["event_time"])
    telling = np.flatnonzero(row["traits"] & rule.traits == rule.tells)
    telling = telling[np.argsort(told[telling], kind="stable")]
    is_model, speaker = row["origin"] == rule.model, row["speaker"]
    may_be = (told <= told[telling, None] - rule.least_age_s) & (row["kind"] == rule.note)
    may_be &= is_model == is_model[telling, None]
    may_be &= (speaker == speaker[telling, None]) | (speaker == 0) | (speaker[telling, None] == 0)
    may_be &= (writer[telling, None] == 0) | (writer == writer[telling, None])
    cosine = np.where(may_be, np.nan_to_num(its[telling] @ its.T), np.float32(-1)).astype(np.float32)
    closest = cosine.max(axis=1, initial=-1, keepdims=True)
    is_close = cosine >= np.maximum(closest - np.float32(rule.about_as_much), np.float32(rule.one_thing))
    older = is_close.argmax(axis=1) if len(rows) else np.zeros(0, np.int64)
    fits = is_close.any(axis=1) & (relevance[telling] >= np.float32(rule.fitting) * relevance[older])
    fits &= relevance[older] >= np.float32(rule.bearing) * relevance.max(initial=0)
    return telling[fits], older[fits]


def order_by_files(
    rows: Indices, relevance: Vector, score: Vector, candidates: Rows, shares: FileShares
) -> tuple[Indices, Vector, Vector]:
    """Twin of `files.order_by_files`."""
    file, name = candidates["file"], candidates["name_hash"]
    gained, places = relevance.copy(), np.flatnonzero(file[rows])
    for of_file in np.unique(file[rows[places]]):
        its = places[file[rows[places]] == of_file]
        names, own = name[rows[its]], relevance[its].astype(np.float64)
        best, next_one = own[: shares.supporters].sum(), own[: shares.supporters + 1].sum()
        sums = own + shares.support * np.where(np.arange(len(own)) < shares.supporters, next_one - own, best)
        sums[(names == 0) & names.any()] *= shares.head_factor
        gained[its] = np.maximum(sums - shares.second_loss * (sums < sums.max()), 0)
    if len(places) < 2 or gained[places].max() <= 0:
        return np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32)
    gained[places] *= relevance[places].max() / gained[places].max()
    shown = (score * (gained / np.maximum(relevance, np.finfo(np.float32).tiny))).astype(np.float32)
    order = np.argsort(-gained, kind="stable").astype(np.int64)
    return order, gained[order], shown[order]


def _gain(relevance: np.float32, closest: np.float32, weight: np.float32) -> float:
    gain = float(weight * relevance - (np.float32(1) - weight) * closest)
    return -math.inf if math.isnan(gain) else gain
