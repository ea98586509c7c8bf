"""A twin of each kernel, written to be read; tests compare the two. Arguments and results are the kernels'."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from hummock_kernels._types import Bytes, Docs, Doubles, Flags, Halves, Indices, Longs, Matrix, Vector, Words


def score_rows(rows: Halves, query: Vector, picks: Indices) -> Vector:
    """Twin of `cosine.score_rows`."""
    return decode_rows(rows, picks) @ query


def scan(
    rows: Halves, row_doc: Docs, allowed: Flags, query: Vector, minimum: float, k: int
) -> tuple[Indices, Indices, Vector]:
    """Twin of `cosine.scan`."""
    scores = score_rows(rows, query, np.arange(len(rows)))
    best: dict[int, tuple[float, int]] = {}
    for row, (doc, score) in enumerate(zip(row_doc.tolist(), scores.tolist(), strict=True)):
        if allowed[doc] and math.isfinite(score) and (doc not in best or score > best[doc][0]):
            best[doc] = (score, row)
    kept = [(-score, doc, row) for doc, (score, row) in best.items() if score >= minimum]
    hits = sorted(kept)[: max(k, 0)]
    return (
        np.array([doc for _, doc, _ in hits], np.int64),
        np.array([row for _, _, row in hits], np.int64),
        np.array([-score for score, _, _ in hits], np.float32),
    )


def decode_rows(rows: Halves, picks: Indices) -> Matrix:
    """Twin of `cosine.decode_rows`."""
    return rows[picks].view(np.float16).astype(np.float32)


def top_k(scores: Vector, allowed: Flags, k: int) -> Indices:
    """Twin of `topk.top_k`."""
    candidates = np.flatnonzero(np.isfinite(scores) & (allowed != 0))
    order = np.argsort(-scores[candidates], kind="stable")
    return candidates[order][: max(k, 0)].astype(np.int64)


def decay_scores(similarity: Vector, age_days: Doubles, half_life_days: float, exempt: Flags, rate: float) -> Doubles:
    """Twin of `decay.decay_scores`."""
    positive = similarity > 0
    logarithm = np.log(np.where(positive, similarity, 1), dtype=np.float64)
    loss = np.where(exempt != 0, 0.0, rate * np.maximum(age_days, 0) / half_life_days)
    return np.where(positive, logarithm - loss, -np.inf)


def mmr(vectors: Matrix, relevance: Vector, weight: float, twin_bar: float, keep: int) -> Indices:
    """Twin of `mmr.mmr`."""
    similarity = np.nan_to_num(vectors @ vectors.T, nan=0.0)
    chosen: list[int] = []
    rest = list(range(len(vectors)))
    while rest and len(chosen) < keep:
        closest = [max((similarity[i, j] for j in chosen), default=np.float32(0)) for i in rest]
        gains = [_gain(relevance[i], near, np.float32(weight)) for i, near in zip(rest, closest, strict=True)]
        is_twin = [any(similarity[i, j] >= np.float32(twin_bar) for j in chosen) for i in rest]
        _, _, pick = min((twin, -gain, i) for twin, gain, i in zip(is_twin, gains, rest, strict=True))
        chosen.append(pick)
        rest.remove(pick)
    return np.array(chosen, np.int64)


def _gain(relevance: np.float32, closest: np.float32, weight: np.float32) -> float:
    gain = float(weight * relevance - (np.float32(1) - weight) * closest)
    return -math.inf if math.isnan(gain) else gain


def bm25_scores(
    indptr: Indices,
    post_doc: Docs,
    post_counts: Words,
    fwd_indptr: Indices,
    fwd_term: Words,
    fwd_counts: Words,
    base: int,
    query_terms: Words,
    idf: Vector,
    field_weights: Vector,
    doc_length: Vector,
    mean_length: float,
    k1: float,
    b: float,
) -> tuple[Vector, Words]:
    """Twin of `bm25.bm25_scores`."""
    scores = np.zeros(len(doc_length), np.float32)
    matched = np.zeros(len(doc_length), np.uint32)
    one, k1_, b_ = np.float32(1), np.float32(k1), np.float32(b)
    for position, term in enumerate(query_terms.tolist()):
        found = _postings(indptr, post_doc, post_counts, term) + _delta(fwd_indptr, fwd_term, fwd_counts, base, term)
        for doc, counts in found:
            tf = _weighted_count(counts, field_weights)
            if tf > 0:
                ratio = doc_length[doc] / np.float32(mean_length) if mean_length > 0 else np.float32(0)
                scores[doc] += idf[position] * (tf * (k1_ + one) / (tf + k1_ * (one - b_ + b_ * ratio)))
                matched[doc] |= np.uint32(1 << position) if position < 32 else np.uint32(0)
    return scores, matched


def _weighted_count(counts: int, field_weights: Vector) -> np.float32:
    total = np.float32(0)
    for weight, count in zip(field_weights, counts.to_bytes(4, "little"), strict=True):
        total += weight * np.float32(count)
    return total


def _postings(indptr: Indices, post_doc: Docs, post_counts: Words, term: int) -> list[tuple[int, int]]:
    if term >= len(indptr) - 1:
        return []
    part = slice(indptr[term], indptr[term + 1])
    return list(zip(post_doc[part].tolist(), post_counts[part].tolist(), strict=True))


def _delta(fwd_indptr: Indices, fwd_term: Words, fwd_counts: Words, base: int, term: int) -> list[tuple[int, int]]:
    return [
        (base + d, int(fwd_counts[p]))
        for d, (start, end) in enumerate(_slices(fwd_indptr))
        for p in range(start, end)
        if fwd_term[p] == term
    ]


def _slices(indptr: Indices) -> Sequence[tuple[int, int]]:
    return list(itertools.pairwise(indptr.tolist()))


def invert(fwd_indptr: Indices, fwd_term: Words, fwd_counts: Words, terms: int) -> tuple[Indices, Docs, Words]:
    """Twin of `bm25.invert`."""
    postings = sorted(
        (int(fwd_term[p]), d, int(fwd_counts[p]))
        for d, (start, end) in enumerate(_slices(fwd_indptr))
        for p in range(start, end)
        if fwd_term[p] < terms
    )
    sizes = np.bincount(np.array([term for term, _, _ in postings], np.int64), minlength=terms)
    return (
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([doc for _, doc, _ in postings], np.int32),
        np.array([counts for _, _, counts in postings], np.uint32),
    )


def merge_postings(
    indptr: Indices,
    post_doc: Docs,
    post_counts: Words,
    newer_indptr: Indices,
    newer_doc: Docs,
    newer_counts: Words,
    base: int,
    place: Docs,
) -> tuple[Indices, Docs, Words]:
    """Twin of `merge.merge_postings`."""
    merged: list[tuple[int, int]] = []
    sizes = [0]
    for term in range(len(newer_indptr) - 1):
        newer = _postings(newer_indptr, newer_doc, newer_counts, term)
        both = [*_postings(indptr, post_doc, post_counts, term), *((base + doc, counts) for doc, counts in newer)]
        merged += [(int(place[doc]), counts) for doc, counts in both if place[doc] >= 0]
        sizes.append(len(merged))
    return (
        np.array(sizes, np.int64),
        np.array([doc for doc, _ in merged], np.int32),
        np.array([counts for _, counts in merged], np.uint32),
    )


def mark_term(
    indptr: Indices, post_doc: Docs, fwd_indptr: Indices, fwd_term: Words, base: int, term: int, out: Flags
) -> None:
    """Twin of `bm25.mark_term`."""
    no_counts = np.zeros(len(post_doc), np.uint32)
    no_fwd_counts = np.zeros(len(fwd_term), np.uint32)
    for doc, _ in _postings(indptr, post_doc, no_counts, term) + _delta(
        fwd_indptr, fwd_term, no_fwd_counts, base, term
    ):
        out[doc] = 1


def max_sims(query: Bytes, tokens: Bytes, start: Indices) -> Vector:
    """Twin of `maxsim.max_sims`."""
    sims = np.full(len(start) - 1, np.nan, np.float32)
    for i, (first, end) in enumerate(itertools.pairwise(start.tolist())):
        if len(query) and first < end:
            dots = query.astype(np.int64) @ tokens[first:end].astype(np.int64).T
            sims[i] = dots.max(axis=1).sum() / 127**2 / len(query)
    return sims


def sign_bits(rows: Halves) -> Longs:
    """Twin of `signbit.sign_bits`."""
    dim = rows.shape[1]
    padded = np.zeros((len(rows), -(-dim // 64) * 64), np.bool_)
    padded[:, :dim] = np.signbit(rows.view(np.float16))
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def nearest_signs(bits: Longs, row_doc: Docs, allowed: Flags, query: Longs, keep: int) -> Indices:
    """Twin of `signbit.nearest_signs`."""
    signs, ones, twos = query
    rows = [row for row, doc in enumerate(row_doc.tolist()) if allowed[doc]]
    differing = {row: bits[row] ^ signs for row in rows}
    weight = {row: _bit_count(each & ones) + 2 * _bit_count(each & twos) for row, each in differing.items()}
    nearest = sorted(rows, key=lambda row: (weight[row], row))[: max(keep, 0)]
    return np.array(sorted(nearest), np.int64)


def _bit_count(words: Longs) -> int:
    return sum(int(word).bit_count() for word in words)


def add_turns(slots: Docs, session: Longs, position: Docs, first: int) -> int:
    """Twin of `turns.add_turns`: the turns stand in the free slots in their order."""
    turns = [place for place in range(first, len(session)) if session[place] and position[place] >= 0]
    free = np.flatnonzero(slots < 0)[: len(turns)]
    slots[free] = turns
    return len(turns)


def neighbours(slots: Docs, session: Longs, position: Docs, alive: Flags, places: Indices) -> Indices:
    """Twin of `turns.neighbours`: no table is needed where all turns are looked at."""
    at = {
        (session[place], position[place]): place
        for place in range(len(session))
        if alive[place] and session[place] and position[place] >= 0
    }
    return np.array(
        [[at.get((session[place], position[place] + step), -1) for step in (-1, 1)] for place in places], np.int64
    ).reshape(-1, 2)
