"""Candidates: what the store finds for a query, as columns, before ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from typing import Any, Self, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hummock.core.memory import Filter


class MemoryColumns(Struct, frozen=True, kw_only=True, eq=False):
    """Row i of every column is the same memory. Stored rows have the same fields in the same order.

    A new column goes to the end, and is 0 in rows that were stored before it.

    Attributes:
        doc: The store's number; never reused.
        create_time: Unix seconds.
        update_time: Unix seconds.
        event_time: Unix seconds; NaN when not known.
        text_hash: Equal for texts that differ in case, width, spaces, faces and final marks alone.
        id_hash: Of the memory's id.
        length: Terms with repetitions.
        session_position: Ascending in a session; -1 without one.
        chunk_count: Its vector rows; 0 while it waits for its vectors.
        kind: MemoryKind.
        origin: Origin.
        session: Equal for memories of one session; 0 without one.
        traits: `text.questions.Trait` of what was said.
        name_hash: Equal for what may be versions of one thing; 0 for what has no name.
        supersedes: 1 if it names memories that it replaces.
        speaker: Equal for memories of one speaker; 0 without one.
        file: Equal for fragments of one file; 0 for what is no code.
        helpful: Voices that said so of its text.
        wrong: Voices that said so of its text.
        expire_time: Unix seconds; 0 if it never ends.
        token_sign: `store.views.row_codec.TokenSign`.
        writer: Equal for what one caller wrote and nobody vouches for; 0 of all else.
        apart: Differs for texts that are never copies, however alike (`text.likeness`).
    """

    doc: NDArray[np.int64]
    create_time: NDArray[np.float64]
    update_time: NDArray[np.float64]
    event_time: NDArray[np.float64]
    text_hash: NDArray[np.uint64]
    id_hash: NDArray[np.uint64]
    length: NDArray[np.float32]
    session_position: NDArray[np.int32]
    chunk_count: NDArray[np.int32]
    kind: NDArray[np.uint8]
    origin: NDArray[np.uint8]
    session: NDArray[np.uint64]
    traits: NDArray[np.uint8]
    name_hash: NDArray[np.uint64]
    supersedes: NDArray[np.uint8]
    speaker: NDArray[np.uint32]
    file: NDArray[np.uint32]
    helpful: NDArray[np.uint8]
    wrong: NDArray[np.uint8]
    expire_time: NDArray[np.float64]
    token_sign: NDArray[np.uint8]
    writer: NDArray[np.uint32]
    apart: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.doc)


@cache
def dtypes_of(columns: type[MemoryColumns]) -> Mapping[str, np.dtype[Any]]:
    """The type of each field that is an array, in the order of the fields."""
    hints = get_type_hints(columns)
    arrays = {name: hints[name] for name in columns.__struct_fields__ if get_origin(hints[name]) is np.ndarray}
    return {name: np.dtype(get_args(get_args(hint)[1])[0]) for name, hint in arrays.items()}


class FoundBy(IntFlag):
    """Paths that found a candidate, as bits.

    HOLDER comes with KEYWORD: one of the few that hold all of the name which the query is. NEIGHBOUR stands beside one
    of the best in its session. TIME is told of a time that the query names.
    """

    VECTOR = 1
    KEYWORD = 2
    DOMAIN = 4
    KEY_FILE = 8
    HOLDER = 16
    NEIGHBOUR = 32
    TIME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """The last turns of a session, which the caller has already: so many USER_INPUTs and what follows them."""

    session_id: str
    turns: int


class Bridge(Struct, frozen=True, kw_only=True, eq=False):
    """A query in the words of another language.

    Attributes:
        vector: (dim,) float32, what its gloss is as a vector; its products are cosines. None where there is none.
        terms: Terms of the gloss, unique, at most 32.
        weights: (terms,) float32 in (0, 1], what each is worth.
        stands_for: (terms,) uint32, bit i is set where the term stands for terms[i] of the query.
        foreign_mark: Below 0 where token vectors that end in a negative number are those of texts in the other
            language, above 0 where the others are; 0 where they do not tell.
    """

    vector: NDArray[np.float32] | None
    terms: tuple[str, ...]
    weights: NDArray[np.float32]
    stands_for: NDArray[np.uint32]
    foreign_mark: int


class Spelling(Struct, frozen=True, kw_only=True, eq=False):
    """Corrections for words of a query that no memory holds.

    Attributes:
        terms: To look for, unique, none of the query's own, at most 32.
        weights: (terms,) float32 in (0, 1], what each is worth.
        stands_for: (terms,) uint32, bit i is set where the term surely stands for terms[i] of the query.
    """

    terms: tuple[str, ...]
    weights: NDArray[np.float32]
    stands_for: NDArray[np.uint32]


def stood_for(held: NDArray[np.uint32], stands_for: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The query's terms for which what each candidate holds stands, (n,) bits.

    Args:
        held: (n,) which of some other terms each holds, a bit each.
        stands_for: (terms,) the query's terms for which each of these stands, as bits.
    """
    is_held = (held[:, None] >> np.arange(len(stands_for), dtype=np.uint32)) & np.uint32(1)
    bits: NDArray[np.uint32] = np.bitwise_or.reduce(is_held * stands_for, axis=1, initial=np.uint32(0))
    return bits


class GroupQuery(Struct, frozen=True, kw_only=True, eq=False):
    """Query for one group of candidates; a path that is not wanted is empty.

    Attributes:
        name: "main", "code" or "domains".
        filter: What may answer.
        window: What may not, of that; None leaves nothing out.
        vector: (dim,) float32 unit vector, or None.
        minimum_cosine: The vector path stops at this cosine.
        terms: Analysed terms of the query, at most 32.
        exact_name: A query that is one name, as it is written; empty for any other.
        name_terms: All of its terms.
        substrings: Strings to look for in the texts themselves, newest first, in place of terms; at most 32.
        domain_names: Names of domains to look up exactly, normalised as prose.
        domain_text: A text that may hold names of domains (`text.windows`); looked through as well.
        times: Intervals that the query names, start and end (exclusive) in Unix seconds: what is told of them.
        pool: Candidates per path.
        with_key_files: Also fragments of the key files of the domains that any group before found by name.
        include_superseded: Whether what others replace may answer as well.
        with_neighbours: Also what stands beside the best of each path in a session.
        with_tokens: Whether the candidates bring the token vectors of their best chunks.
        bridge: The same query for texts in another language; None where there is nothing to look for.
        spelling: What words of it may mean that nobody holds; None where there is nothing to look for.
        with_others: Whether a path also brings what others have, where one writer fills its pool.
    """

    name: str
    filter: Filter
    window: SessionWindow | None = None
    vector: NDArray[np.float32] | None = None
    minimum_cosine: float = -1.0
    terms: tuple[str, ...] = ()
    exact_name: str = ""
    name_terms: tuple[str, ...] = ()
    substrings: tuple[str, ...] = ()
    domain_names: frozenset[str] = frozenset()
    domain_text: str = ""
    times: tuple[tuple[float, float], ...] = ()
    pool: int = 50
    with_key_files: bool = False
    include_superseded: bool = False
    with_neighbours: bool = False
    with_tokens: bool = False
    bridge: Bridge | None = None
    spelling: Spelling | None = None
    with_others: bool = True


class Spelt(Struct, frozen=True, kw_only=True, eq=False):
    """Matches of a query's corrections; a row is a candidate.

    Attributes:
        keyword: (n,) float32 BM25 score of its terms.
        held: (n,) uint32, bit i is set where the candidate holds terms[i] of the spelling.
    """

    keyword: NDArray[np.float32]
    held: NDArray[np.uint32]


class Bridged(Struct, frozen=True, kw_only=True, eq=False):
    """Matches of a query's translation; a row is a candidate.

    Attributes:
        is_foreign: (n,) bool, whether it is in that language rather than in the query's own.
        cosine: (n,) float32 of the best chunk; NaN without a vector.
        keyword: (n,) float32 BM25 score of the gloss's terms.
        matched: (n,) uint32, bit i is set where the candidate holds a term that stands for terms[i] of the query.
    """

    is_foreign: NDArray[np.bool_]
    cosine: NDArray[np.float32]
    keyword: NDArray[np.float32]
    matched: NDArray[np.uint32]


class TokenVectors(Struct, frozen=True, kw_only=True, eq=False):
    """Token vectors of candidates, one candidate's behind the other's.

    Attributes:
        values: (t, token_dim) int8, unit vectors times 127.
        start: (n + 1,) int64, from 0 to t: candidate i has those from start[i] to start[i + 1], perhaps none.
    """

    values: NDArray[np.int8]
    start: NDArray[np.int64]


class Candidates(MemoryColumns, frozen=True, kw_only=True, eq=False):
    """One group's candidates as columns: row i of every column is the same memory. Order is not specified.

    `helpful` and `wrong` are (0,) where nothing was ever said of a memory of the project, `writer` where all memories
    of the project are of one.

    Attributes:
        name: The group's.
        searched: Memories that passed the filter, outside the window.
        ids: Gives the n memory ids. They decide ties and nothing else, and reading them costs as much as all columns.
        copy_hash: Equal for copies, of which the newest is shown.
        cosine: That of the best chunk, also for candidates that another path found; NaN without a vector.
        keyword: BM25 score; 0 where no term matched, also for candidates that another path found. With substrings: 1
            for the newest that holds any, less for older ones, 0 for those that hold none.
        matched: Bit i is set when terms[i], or substrings[i], of the query matched.
        found_by: FoundBy.
        vector: (n, dim) of the best chunk (the first one without a query vector); zero when there is none.
        best_chunk: Which chunk `cosine` and `vector` are of; 0 also when there is none.
        rarity: (t,) in (0, 1], how rare each term of the query is among all memories: its inverse document frequency
            beside that of a term which none holds; (0,) where no terms were looked for.
        domain_names: The names of the query that named a domain of the project, sorted.
        tokens: Token vectors of the best chunks; None unless asked for.
        bridged: What the query's bridge says of them; None without one.
        spelt: What they hold of the query's spelling; None without one.
        in_window: Memories that passed the filter, inside the window.
        pending: Of those searched, how many wait for their vectors; 0 without a query vector.
        is_cut: Whether there were texts that were not searched for the substrings, since there are too many.
    """

    name: str
    searched: int
    ids: Callable[[], tuple[str, ...]]
    copy_hash: NDArray[np.uint64]
    cosine: NDArray[np.float32]
    keyword: NDArray[np.float32]
    matched: NDArray[np.uint32]
    found_by: NDArray[np.uint8]
    vector: NDArray[np.float32]
    best_chunk: NDArray[np.int64]
    rarity: NDArray[np.float32]
    domain_names: tuple[str, ...] = ()
    tokens: TokenVectors | None = None
    bridged: Bridged | None = None
    spelt: Spelt | None = None
    in_window: int = 0
    pending: int = 0
    is_cut: bool = False

    @property
    def memory_id(self) -> tuple[str, ...]:
        """The n ids."""
        return self.ids()

    @classmethod
    def empty(cls, name: str, dim: int) -> Self:
        """No candidates."""
        columns: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in dtypes_of(cls).items()}
        columns["vector"] = np.empty((0, dim), np.float32)
        return cls(name=name, searched=0, ids=tuple, **columns)


class Gathered(Struct, frozen=True, kw_only=True, eq=False):
    """All groups' candidates, read at one moment.

    Attributes:
        seq: Writes accepted by the project at that moment.
        content_seq: The generation of its content at that moment.
        groups: In the order of the queries.
    """

    seq: int
    content_seq: int
    groups: tuple[Candidates, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Rank of one memory among all that pass a query's filter, whether it is a candidate or not.

    Attributes:
        failed: Names of the filter's fields whose condition it does not meet.
        superseded_by: Ids of the memories that say that they replace it, in the order of their writes; none where the
            query asks for such as well.
        turns_ago: Which turn of its session it is, counted from the last, 1; 0 unless the window holds it.
        searched: Memories that pass the filter, outside the window.
        cosine: Of its best chunk; NaN without a vector.
        keyword: BM25 score; 0 where no term matched, and with substrings.
        matched: Bit i is set when terms[i], or substrings[i], of the query matched.
        vector_rank: By cosine, from 1, ties by age in the store; itself counts even if it fails. 0 without a vector.
        keyword_rank: The same by words; with substrings the newest first. 0 where it holds none.
    """

    failed: tuple[str, ...]
    turns_ago: int
    searched: int
    cosine: float
    keyword: float
    matched: int
    vector_rank: int
    keyword_rank: int
    superseded_by: tuple[str, ...] = ()
