"""Twins of the kernels that gather a group's candidates; re-exported by `reference`."""

import numpy as np

from hummock_kernels._types import Counts, Docs, Flags, Indices, Vector, Words
from hummock_kernels.bm25 import Query, Saturation
from hummock_kernels.cosine import Chunks
from hummock_kernels.gather import ASKS, ASKS_WITHIN, NEIGHBOUR, Finds, Memories, Taken
from hummock_kernels.pool import KEYWORD, ROW, VECTOR
from hummock_kernels.postings import Delta, Index, Presence
from hummock_kernels.reference_vectors import best_chunks_of, best_cosines, neighbours
from hummock_kernels.reference_words import bm25_scores, paged_counts


def gather(
    finds: Finds,
    memories: Memories,
    slots: Docs,
    beside: int,
    allowed: Flags,
    chunks: Chunks,
    vector: Vector,
    index: Index,
    delta: Delta,
    presence: Presence,
    query: Query,
    saturation: Saturation,
) -> Taken:
    """Twin of `gather.gather`."""
    by_path = [(VECTOR, finds.by_vector), (KEYWORD, finds.by_keyword)]
    if beside:
        by_path.append((NEIGHBOUR, _beside(finds, beside, memories, slots, allowed)))
    bits: dict[int, int] = {}
    for bit, found in by_path:
        bits |= {document: bits.get(document, 0) | bit for document in found.tolist()}
    for document, bit in zip(finds.more.tolist(), finds.more_by.tolist(), strict=True):
        bits[document] = bits.get(document, 0) | bit
    at = np.array(sorted(bits), np.int64)
    cosine, best_chunk, vector_row = best_chunks_of(chunks, at, vector)
    keyword, matched = bm25_scores(index, delta, presence, query, saturation, at)
    day = np.floor(memories.event_time[at] / 86_400)
    tells = ~np.isnan(day) & (memories.is_turn[memories.origin[at]] == 0)
    days = np.where(tells, day, 0).astype(np.int64).view(np.uint64) << np.uint64(24)
    apart = memories.apart[at].astype(np.uint64) << np.uint64(32)
    rows = np.zeros(len(at), ROW)
    for name in set(ROW.fields or ()) - {"copy_hash"}:
        rows[name] = getattr(memories, name)[at]
    rows["copy_hash"] = memories.text_hash[at] ^ apart ^ memories.speaker[at] ^ days
    return Taken(
        at=at,
        found_by=np.array([bits[document] for document in at.tolist()], np.uint8),
        cosine=cosine,
        best_chunk=best_chunk,
        vector_row=vector_row,
        keyword=keyword,
        matched=matched,
        rows=rows,
    )


def _beside(finds: Finds, most: int, memories: Memories, slots: Docs, allowed: Flags) -> Indices:
    best = np.concatenate([finds.by_vector[:most], finds.by_keyword[:most]])

    def of(documents: Indices) -> Indices:
        return neighbours(slots, memories.session, memories.session_position, memories.alive, documents)

    pairs = of(best)
    asks = memories.traits[best] & np.uint8(ASKS | ASKS_WITHIN) != 0
    behind = of(pairs[asks & (pairs[:, 1] >= 0), 1])
    found = np.concatenate([pairs.reshape(-1), behind[:, 1]])
    found = found[found >= 0]
    passing: Indices = found[allowed[found] != 0]
    return passing


def score_translated(
    chunks: Chunks,
    at: Indices,
    vector: Vector,
    index: Index,
    delta: Delta,
    presence: Presence,
    query: Query,
    saturation: Saturation,
    stands_for: Words,
) -> tuple[Vector, Vector, Words]:
    """Twin of `gather.score_translated`."""
    cosine = best_cosines(chunks, at, vector) if len(vector) else np.full(len(at), np.nan, np.float32)
    keyword, held = bm25_scores(index, delta, presence, query, saturation, at)
    is_held = (held[:, None] >> np.arange(len(stands_for), dtype=np.uint32)) & np.uint32(1)
    return cosine, keyword, np.bitwise_or.reduce(is_held * stands_for, axis=1, initial=np.uint32(0))


def flags_of_signs(kind: Flags, token_sign: Flags, chunk_count: Docs, flags: Flags, at: Indices) -> tuple[Flags, int]:
    """Twin of `gather.flags_of_signs`."""
    found: Flags = flags[kind[at], np.where(chunk_count[at], token_sign[at], np.uint8(flags.shape[1] - 1))]
    return found, int(np.count_nonzero(found > 1))


def weigh_terms(
    pages: Counts,
    place: Docs,
    frequent: Indices,
    greatest: Vector,
    growth: float,
    terms: Words,
    weights: Vector,
    live: int,
) -> tuple[Vector, Indices, Vector, Vector]:
    """Twin of `bm25.weigh_terms`."""
    df = paged_counts(pages, place, terms).astype(np.float64)
    idf = np.log1p((live - df + 0.5) / (df + 0.5)).astype(np.float32)
    if len(weights):
        idf *= weights
    rows = {int(term): row for row, term in enumerate(frequent)}
    row = np.array([rows.get(int(term), -1) for term in terms], np.int64)
    share = np.ones(len(terms), np.float32)
    if len(greatest):
        share = np.minimum(greatest[np.minimum(terms, len(greatest) - 1)] * np.float32(growth), np.float32(1))
    return idf, row, share, idf / np.float32(np.log1p((live + 0.5) / 0.5))
