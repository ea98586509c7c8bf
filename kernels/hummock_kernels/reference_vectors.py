"""Twins of the kernels for vectors, sign bits and turns; re-exported by `reference`."""

import itertools

import numpy as np

from hummock_kernels._types import Bytes, Docs, Flags, Halves, Indices, Longs, Matrix, Vector
from hummock_kernels.cosine import Chunks


def score_rows(rows: Halves, query: Vector, picks: Indices) -> Vector:
    """Twin of `cosine.score_rows`."""
    return _similarity(decoded(rows[picks]), query)


def _similarity(rows: Matrix, query: Vector) -> Vector:
    """Similarity of each row to the query; dims before the first and after the last that the query uses are skipped."""
    asked = np.flatnonzero(query)
    first, end = (asked[0], asked[-1] + 1) if len(asked) else (len(query), len(query))
    between = slice(first // 32 * 32, end)
    similarity: Vector = rows[:, between] @ query[between]
    return similarity


def decoded(rows: Halves) -> Matrix:
    """The values of float16 rows in uint16."""
    return rows.view(np.float16).astype(np.float32)


def scan(chunks: Chunks, allowed: Flags, query: Vector, minimum: float, k: int) -> tuple[Indices, Vector]:
    """Twin of `cosine.scan`."""
    docs = np.flatnonzero(allowed)
    similarity, _, _ = best_chunks_of(chunks, docs, query, clip=False)
    kept = [(-score, doc) for doc, score in zip(docs.tolist(), similarity.tolist(), strict=True) if score >= minimum]
    hits = sorted(kept)[: max(k, 0)]
    return np.array([doc for _, doc in hits], np.int64), np.array([-score for score, _ in hits], np.float32)


def best_chunks_of(
    chunks: Chunks, docs: Indices, query: Vector, *, clip: bool = True
) -> tuple[Vector, Indices, Indices]:
    """Twin of `cosine.best_chunks_of`."""
    rows, start, count = chunks
    cosine = np.full(len(docs), np.nan, np.float32)
    number = np.zeros(len(docs), np.int64)
    best = np.full(len(docs), -1, np.int64)
    for i, doc in enumerate(docs.tolist()):
        chunk_rows = decoded(rows[start[doc] : start[doc] + count[doc]])
        scores = _similarity(chunk_rows, query) if len(query) else np.full(len(chunk_rows), np.nan, np.float32)
        finite = np.isfinite(scores)
        if finite.any():
            number[i] = np.argmax(np.where(finite, scores, -np.inf))
            cosine[i] = scores[number[i]].clip(-1, 1) if clip else scores[number[i]]
        if len(chunk_rows):
            best[i] = start[doc] + number[i]
    return cosine, number, best


def best_cosines(chunks: Chunks, docs: Indices, query: Vector) -> Vector:
    """Twin of `cosine.best_cosines`."""
    cosine, _, _ = best_chunks_of(chunks, docs, query)
    return cosine


def max_sims(query: Bytes, tokens: Bytes, start: Indices, asked: Flags) -> Vector:
    """Twin of `cosine.max_sims`."""
    sims = np.full(len(start) - 1, np.nan, np.float32)
    for i, (first, end) in enumerate(itertools.pairwise(start.tolist())):
        if len(query) and first < end and asked[i]:
            dots = query.astype(np.int64) @ tokens[first:end].astype(np.int64).T
            sims[i] = dots.max(axis=1).sum() / 127**2 / len(query)
    return sims


def sign_bits(rows: Halves) -> Longs:
    """Twin of `signbit.sign_bits`."""
    dim = rows.shape[1]
    padded = np.zeros((len(rows), -(-dim // 64) * 64), np.bool_)
    padded[:, :dim] = np.signbit(rows.view(np.float16))
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def put_signs(rows: Halves, first: int, bits: Longs) -> None:
    """Twin of `signbit.put_signs`."""
    for row, values in enumerate(rows.tolist(), first):
        lane = bits[row // 256, :, row // 64 % 4]
        lane &= np.uint64((1 << row % 64) - 1)
        lane |= np.array([*(value >> 15 for value in values), 0], np.uint64) << np.uint64(row % 64)


def weigh_signs(bits: Longs, row_doc: Docs, allowed: Flags, query: Longs) -> tuple[Longs, Longs]:
    """Twin of `signbit.weigh_signs`; weights of rows that are not allowed are 0."""
    dim = bits.shape[1] - 1
    negative, ones, twos = (query[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).reshape(3, -1)[:, :dim]
    lanes = bits.transpose(0, 2, 1)[:, :, :dim].reshape(-1, dim)
    words = -(-len(row_doc) // 256) * 4
    weights, passing = np.zeros((16, words), np.uint64), np.zeros(words, np.uint64)
    for row in np.flatnonzero(allowed[row_doc]).tolist():
        word, bit = divmod(row, 64)
        differing = (lanes[word] >> np.uint64(bit) & np.uint64(1)) ^ negative
        weight = int(differing @ (ones + 2 * twos))
        passing[word] |= np.uint64(1 << bit)
        weights[:, word] |= np.array([(weight >> plane & 1) << bit for plane in range(16)], np.uint64)
    return weights, passing


def take_lightest(weights: Longs, left: Longs, keep: int) -> Indices:
    """Twin of `signbit.take_lightest`."""
    rows = [row for row in range(64 * len(left)) if int(left[row // 64]) >> row % 64 & 1]
    weight = {
        row: sum((int(plane[row // 64]) >> row % 64 & 1) << place for place, plane in enumerate(weights))
        for row in rows
    }
    taken = sorted(sorted(rows, key=lambda row: (weight[row], row))[: max(keep, 0)])
    for row in taken:
        left[row // 64] &= ~np.uint64(1 << row % 64)
    return np.array(taken, np.int64)


def add_turns(slots: Docs, session: Longs, position: Docs, first: int) -> int:
    """Twin of `turns.add_turns`: the turns fill the free slots in order."""
    turns = [place for place in range(first, len(session)) if session[place] and position[place] >= 0]
    free = np.flatnonzero(slots < 0)[: len(turns)]
    slots[free] = turns
    return len(turns)


def neighbours(slots: Docs, session: Longs, position: Docs, alive: Flags, places: Indices) -> Indices:
    """Twin of `turns.neighbours`: it scans all turns and needs no table."""
    at = {
        (session[place], position[place]): place
        for place in range(len(session))
        if alive[place] and session[place] and position[place] >= 0
    }
    return np.array(
        [
            [at.get((session[place], position[place] + step), -1) if position[place] >= 0 else -1 for step in (-1, 1)]
            for place in places
        ],
        np.int64,
    ).reshape(-1, 2)
