"""Candidates of a group: the finds of its paths, united, with the scores and the columns of each."""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel, named, named_result
from hummock_kernels._types import (
    F32_1D,
    F64_1D,
    I32_1D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I64_1D,
    OUT_U8_1D,
    OUT_U32_1D,
    U8_1D,
    U8_2D,
    U32_1D,
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
from hummock_kernels.bm25 import QUERY, SATURATION, Query, Saturation, score_documents
from hummock_kernels.cosine import CHUNKS, Chunks, best_chunks_of, best_cosines_of
from hummock_kernels.pool import KEYWORD, OUT_ROWS, ROW, VECTOR, Rows
from hummock_kernels.postings import DELTA, INDEX, PRESENCE, Delta, Index, Presence
from hummock_kernels.topk import ascending_keys
from hummock_kernels.turns import turns_beside

NEIGHBOUR = 32
"""Bit of `found_by`: next to one of the best in its session."""

ASKS, ASKS_WITHIN = 1, 2
"""Bits of `traits`: the text ends in a question; it contains one."""

_DAY_S = 86_400.0


class Finds(NamedTuple):
    """What the paths of one group found, as documents.

    Attributes:
        by_vector: (v,) best first, and so the next.
        by_keyword: (k,).
        more: (m,) in any order, with repeats.
        more_by: (m,) the bits of the path that found each of `more`.
    """

    by_vector: Indices
    by_keyword: Indices
    more: Indices
    more_by: Flags


class Memories(NamedTuple):
    """Columns of all documents, (n,) each; `hummock.core.candidates.MemoryColumns` says what they hold.

    `is_turn`, (256,), is 1 for the origins of a conversation's turns.
    """

    alive: Flags
    doc: Indices
    create_time: Doubles
    event_time: Doubles
    text_hash: Longs
    apart: Words
    session: Longs
    session_position: Docs
    kind: Flags
    origin: Flags
    traits: Flags
    name_hash: Longs
    speaker: Words
    file: Words
    is_turn: Flags


class Taken(NamedTuple):
    """Candidates as columns, ascending by document; `hummock.core.candidates.Candidates` says what they hold."""

    at: Indices
    rows: Rows
    found_by: Flags
    cosine: Vector
    best_chunk: Indices
    vector_row: Indices
    keyword: Vector
    matched: Words


FINDS = named(Finds, I64_1D, I64_1D, I64_1D, U8_1D)
MEMORIES = named(
    Memories,
    U8_1D,
    I64_1D,
    F64_1D,
    F64_1D,
    U64_1D,
    U32_1D,
    U64_1D,
    I32_1D,
    U8_1D,
    U8_1D,
    U8_1D,
    U64_1D,
    U32_1D,
    U32_1D,
    U8_1D,
)
_TAKEN = named_result(
    Taken, OUT_I64_1D, OUT_ROWS, OUT_U8_1D, OUT_F32_1D, OUT_I64_1D, OUT_I64_1D, OUT_F32_1D, OUT_U32_1D
)


@helper()
def _beside(finds: Finds, most: int, memories: Memories, slots: Docs, allowed: Flags) -> Indices:
    """Allowed turns next to the first `most` of each path, and the second one after a question."""
    best = np.concatenate((finds.by_vector[:most], finds.by_keyword[:most]))
    pairs = turns_beside(slots, memories.session, memories.session_position, memories.alive, best)
    asking = np.empty(best.shape[0], np.int64)
    size = 0
    for i in range(best.shape[0]):
        asking[size] = pairs[i, 1]
        size += (memories.traits[best[i]] & (ASKS | ASKS_WITHIN)) != 0 and pairs[i, 1] >= 0
    behind = turns_beside(slots, memories.session, memories.session_position, memories.alive, asking[:size])
    found = np.concatenate((pairs.reshape(-1), behind[:, 1]))
    size = 0
    for i in range(found.shape[0]):
        if found[i] >= 0 and allowed[found[i]]:
            found[size] = found[i]
            size += 1
    return found[:size]


@helper()
def _united(finds: Finds, beside: Indices) -> tuple[Indices, Flags]:
    """Documents found by any path, ascending and unique, and the bits of the paths that found each."""
    vectors, words, more = finds.by_vector.shape[0], finds.by_keyword.shape[0], finds.more.shape[0]
    keys = np.empty(vectors + words + more + beside.shape[0], np.int64)
    keys[:vectors] = finds.by_vector * 256 + VECTOR
    keys[vectors : vectors + words] = finds.by_keyword * 256 + KEYWORD
    keys[vectors + words : vectors + words + more] = finds.more * 256 + finds.more_by
    keys[vectors + words + more :] = beside * 256 + NEIGHBOUR
    ascending_keys(keys)
    at, found_by = np.empty(keys.shape[0], np.int64), np.zeros(keys.shape[0], np.uint8)
    size = 0
    for i in range(keys.shape[0]):
        size += i == 0 or keys[i] >> 8 != keys[i - 1] >> 8
        at[size - 1] = keys[i] >> 8
        found_by[size - 1] |= np.uint8(keys[i] & 255)
    return at[:size], found_by[:size]


@helper(borrows=True)
def _copy_hash(memories: Memories, row: int) -> np.uint64:
    """Hash that is equal for copies, of which one is shown: same text, speaker and owner.

    For memories of an event it includes the day, but not for conversation turns, which are repeated on other days.
    """
    day = np.int64(0)
    time = memories.event_time[row]
    if not np.isnan(time) and not memories.is_turn[memories.origin[row]]:
        day = np.int64(np.floor(time / _DAY_S))
    apart = np.uint64(memories.apart[row]) << np.uint64(32)
    speaker = np.uint64(memories.speaker[row])
    return np.uint64(memories.text_hash[row] ^ apart ^ speaker ^ (np.uint64(day) << np.uint64(24)))


@kernel(_TAKEN(FINDS, MEMORIES, I32_1D, I64, U8_1D, CHUNKS, F32_1D, INDEX, DELTA, PRESENCE, QUERY, SATURATION))
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
    """The finds of all paths with the turns beside them, each with its scores and columns.

    Args:
        finds: What the paths found.
        memories: Columns of all documents.
        slots: The turns, filled by `turns.add_turns`.
        beside: Number of the best of each path whose neighbours in a session are added; 0 adds none.
        allowed: (documents,) nonzero for those that may be added.
        chunks: Vectors of all documents.
        vector: (dim,) the query's; (0,) without one.
        index: All but the newest documents.
        delta: The newest documents.
        presence: Bitmaps of the index's frequent terms.
        query: The query's terms; none give scores of 0.
        saturation: Parameters of the scores.
    """
    nothing = np.empty(0, np.int64)
    at, found_by = _united(finds, _beside(finds, beside, memories, slots, allowed) if beside > 0 else nothing)
    cosine, best_chunk, vector_row = best_chunks_of(chunks, at, vector)
    keyword, matched = score_documents(index, delta, presence, query, saturation, at)
    rows = np.empty(at.shape[0], ROW)
    for i in range(at.shape[0]):
        document = at[i]
        rows[i].doc = memories.doc[document]
        rows[i].create_time, rows[i].event_time = memories.create_time[document], memories.event_time[document]
        rows[i].text_hash, rows[i].copy_hash = memories.text_hash[document], _copy_hash(memories, document)
        rows[i].session, rows[i].name_hash = memories.session[document], memories.name_hash[document]
        rows[i].session_position = memories.session_position[document]
        rows[i].speaker, rows[i].file = memories.speaker[document], memories.file[document]
        rows[i].kind, rows[i].origin = memories.kind[document], memories.origin[document]
        rows[i].traits = memories.traits[document]
    return Taken(at, rows, found_by, cosine, best_chunk, vector_row, keyword, matched)


@kernel(
    Tuple((OUT_F32_1D, OUT_F32_1D, OUT_U32_1D))(
        CHUNKS, I64_1D, F32_1D, INDEX, DELTA, PRESENCE, QUERY, SATURATION, U32_1D
    )
)
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
    """Scores of ascending documents for a translated query: cosine, keyword score, and the query's own terms held.

    (c,) each; the cosine is NaN without a vector. Bit i of the last is set if the document holds a translation of
    term i.

    Args:
        chunks: Vectors of all documents.
        at: (c,) the documents.
        vector: (dim,) the translation's; (0,) without one.
        index: All but the newest documents.
        delta: The newest documents.
        presence: Bitmaps of the index's frequent terms.
        query: Terms of the translation, (t,).
        saturation: Parameters of the scores.
        stands_for: (t,) bits of the query's own terms that each stands for.
    """
    cosine = best_cosines_of(chunks, at, vector) if vector.shape[0] else np.full(at.shape[0], np.nan, np.float32)
    keyword, held = score_documents(index, delta, presence, query, saturation, at)
    matched = np.zeros(at.shape[0], np.uint32)
    for i in range(at.shape[0]):
        for term in range(stands_for.shape[0]):
            if held[i] >> np.uint32(term) & np.uint32(1):
                matched[i] |= stands_for[term]
    return cosine, keyword, matched


@kernel(Tuple((OUT_U8_1D, I64))(U8_1D, U8_1D, I32_1D, U8_2D, I64_1D))
def flags_of_signs(kind: Flags, token_sign: Flags, chunk_count: Docs, flags: Flags, at: Indices) -> tuple[Flags, int]:
    """Flags of some documents by their kind and the sign of their token vectors, (c,), and how many are above 1.

    Args:
        kind: (n,) of all documents, and so the next two.
        token_sign: Below the number of signs, less one.
        chunk_count: 0 for a document without vectors, whose sign is the last one.
        flags: (kinds, signs) a flag for each.
        at: (c,) the documents.
    """
    out, above = np.empty(at.shape[0], np.uint8), 0
    for i in range(at.shape[0]):
        document = at[i]
        sign = token_sign[document] if chunk_count[document] else np.uint8(flags.shape[1] - 1)
        out[i] = flags[kind[document], sign]
        above += out[i] > 1
    return out, above
