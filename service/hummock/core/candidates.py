"""Candidates that the store finds for a query, as columns, before ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hummock.core.memory import Filter


class MemoryColumns(Struct, frozen=True, kw_only=True, eq=False):
    """Row i of every column is the same memory. Stored rows have the same fields in the same order.

    A new column goes to the end, and is 0 in rows that were stored before it.

    Attributes:
        doc: The store's number; never reused.
        create_time: Unix seconds, as all times.
        event_time: NaN when not known.
        text_hash: Equal for texts that differ only in case, width, spaces, faces and final marks.
        id_hash: Hash of the memory's id.
        length: Terms with repetitions.
        session_position: Ascending in a session; -1 without one.
        chunk_count: Number of its vector rows; 0 while it waits for vectors.
        session: Equal for memories of one session; 0 without one.
        traits: `text.questions.Trait` of a conversation turn.
        name_hash: Equal for possible versions of one thing; 0 without a name.
        supersedes: 1 if it names memories that it replaces.
        speaker: Equal for memories of one speaker; 0 without one.
        file: Equal for fragments of one file; 0 for memories that are not code.
        helpful: Number of voices that judged its text helpful; `wrong` likewise.
        expire_time: 0 if it never ends.
        token_sign: `store.tables.row_codec.TokenSign`.
        writer: Equal for unvouched memories of one caller; 0 for all others.
        apart: Differs for texts that are never copies, however alike (`text.likeness`).
        pinned: 1 if it is in every prompt of its scope.
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
    pinned: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.doc)


@cache
def dtypes_of(columns: type[Struct]) -> Mapping[str, np.dtype[Any]]:
    """The type of each field that is an array, in the order of the fields."""
    hints = get_type_hints(columns)
    arrays = {
        name: hints[name] for name in columns.__struct_fields__ if get_origin(hints[name]) in (np.ndarray, NDArray)
    }
    return {name: np.dtype(_scalar_of(get_args(hint)[-1])) for name, hint in arrays.items()}


def _scalar_of(argument: Any) -> Any:
    """The scalar type in the last argument of an array's type: a dtype's, or from NumPy 2.5 on the scalar itself."""
    return get_args(argument)[0] if get_origin(argument) is np.dtype else argument


class FoundBy(IntFlag):
    """Paths that found a candidate, as bits.

    HOLDER comes with KEYWORD: one of few memories that hold all of the name that the query is. NEIGHBOUR is adjacent to
    one of the best in its session. TIME matches a time that the query names.
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
    """A query translated into another language.

    Attributes:
        vector: (dim,) float32, the vector of its translation; its products are cosines. None if there is none.
        terms: Terms of the translation, unique, at most 32.
        weights: (terms,) float32 in (0, 1], the weight of each.
        stands_for: (terms,) uint32, bit i is set if the term translates terms[i] of the query.
        foreign_mark: Sign of the last component of token vectors of texts in the other language; 0 if the sign does not
            show the language.
        prose: (dim,) float32, the vector that is compared with prose; None if that is `vector`, as for code.
    """

    vector: NDArray[np.float32] | None
    terms: tuple[str, ...]
    weights: NDArray[np.float32]
    stands_for: NDArray[np.uint32]
    foreign_mark: int
    prose: NDArray[np.float32] | None = None


class Spelling(Struct, frozen=True, kw_only=True, eq=False):
    """Corrections for words of a query that no memory holds; fields as in `Bridge`.

    No term is one of the query's own. Bits of `stands_for` are set only for sure corrections.
    """

    terms: tuple[str, ...]
    weights: NDArray[np.float32]
    stands_for: NDArray[np.uint32]


def stood_for(held: NDArray[np.uint32], stands_for: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the query's terms that each candidate holds in translation or correction, (n,) bits.

    `held` has (n,) bits of the other terms that each candidate holds, `stands_for` is as in `Bridge`.
    """
    is_held = (held[:, None] >> np.arange(len(stands_for), dtype=np.uint32)) & np.uint32(1)
    bits: NDArray[np.uint32] = np.bitwise_or.reduce(is_held * stands_for, axis=1, initial=np.uint32(0))
    return bits


class GroupQuery(Struct, frozen=True, kw_only=True, eq=False):
    """Query for one group of candidates; the fields of a disabled path are empty.

    Attributes:
        name: "main", "code" or "domains".
        window: Recent turns to exclude; None excludes nothing.
        vector: (dim,) float32 unit vector, or None.
        minimum_cosine: The vector path stops at this cosine.
        terms: Analysed terms of the query, at most 32.
        exact_name: A query that is one name, as written; empty for any other.
        name_terms: All terms of `exact_name`.
        substrings: Strings to search in the texts themselves, newest first, in place of terms; at most 32.
        domain_names: Names of domains to look up exactly, normalised as prose.
        domain_text: A text that is also searched for names of domains (`text.windows`).
        times: Intervals that the query names, start and end (exclusive) in Unix seconds, to find memories by time.
        pool: Candidates per path.
        with_key_files: Adds fragments of the key files of domains that an earlier group found by name.
        include_superseded: Whether replaced memories may answer as well.
        with_neighbours: Adds neighbours, in a session, of the best of each path.
        with_tokens: Whether to load the token vectors of the candidates' best chunks.
        bridge: The query's translation; None if there is none.
        spelling: Corrections of unknown words; None if there are none.
        with_others: Whether a path also returns memories of other writers if one writer fills its pool.
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


class CorrectionScores(Struct, frozen=True, kw_only=True, eq=False):
    """Matches of a query's corrections; a row is a candidate.

    `keyword` is the (n,) float32 BM25 score of its terms; bit i of `held`, (n,) uint32, is set where the candidate
    holds terms[i] of the spelling.
    """

    keyword: NDArray[np.float32]
    held: NDArray[np.uint32]


class Credit(NamedTuple):
    """What candidates in the other language are credited with for words that they cannot hold.

    Attributes:
        keyword: (n,) float32, as a BM25 score.
        late: (n,) float32, as a max-sim; NaN for none.
    """

    keyword: NDArray[np.float32]
    late: NDArray[np.float32]


class Bridged(Struct, frozen=True, kw_only=True, eq=False):
    """Matches of a query's translation; a row is a candidate.

    Attributes:
        is_foreign: (n,) bool, whether it is in that language rather than in the query's own.
        cosine: (n,) float32 of the best chunk; NaN without a vector.
        keyword: (n,) float32 BM25 score of the translated terms.
        matched: (n,) uint32, bit i is set if the candidate holds a translation of terms[i] of the query.
        credit: The least scores that count when paths are fused; None for none.
    """

    is_foreign: NDArray[np.bool_]
    cosine: NDArray[np.float32]
    keyword: NDArray[np.float32]
    matched: NDArray[np.uint32]
    credit: Credit | None = None


class TokenVectors(Struct, frozen=True, kw_only=True, eq=False):
    """Token vectors of candidates, concatenated.

    Attributes:
        values: (t, token_dim) int8, unit vectors times 127.
        start: (n + 1,) int64, from 0 to t: candidate i has those from start[i] to start[i + 1], perhaps none.
    """

    values: NDArray[np.int8]
    start: NDArray[np.int64]


class Candidates(Struct, frozen=True, kw_only=True, eq=False):
    """One group's candidates as columns, (n,) each where nothing else is said. Order is not specified.

    `helpful` and `wrong`, as in `MemoryColumns`, are (0,) if the project has no feedback, `writer` if all its memories
    are of one writer.

    Attributes:
        name: Name of the group.
        searched: Memories that passed the filter, outside the window.
        ids: Returns the n memory ids. They only break ties, and reading them costs as much as all columns.
        rows: Their columns that do not depend on the query, named as in `MemoryColumns` (`hummock_kernels.pool.ROW`).
        cosine: Cosine of the best chunk, also for candidates of other paths; NaN without a vector.
        keyword: BM25 score, also for candidates of other paths; 0 if no term matched. With substrings: 1 for the newest
            match, less for older ones, 0 without a match.
        matched: Bit i is set when terms[i], or substrings[i], of the query matched.
        found_by: FoundBy.
        vectors: (m, dim) float16 vectors of the project.
        vector_row: Row in `vectors` of the best chunk (the first one without a query vector); -1 without any.
        best_chunk: Index of the chunk of `cosine` and `vector_row`; 0 also without any.
        rarity: (t,) in (0, 1], rarity of each term of the query: its inverse document frequency, relative to that of a
            term that no memory holds; (0,) without terms.
        domain_names: Domain names of the project that the query names, sorted.
        tokens: Token vectors of the best chunks; None unless requested.
        bridged: Matches of the query's bridge; None without one.
        spelt: Matches of the query's spelling; None without one.
        in_window: Memories that passed the filter, inside the window.
        pending: Number of searched memories that wait for vectors; 0 without a query vector.
        graph_recall: Proven recall of the graph that found the nearest by vector; None where a scan or sign bits did.
        is_cut: Whether some texts were not searched for the substrings, since there are too many.
    """

    name: str
    searched: int
    ids: Callable[[], tuple[str, ...]]
    rows: NDArray[np.void]
    helpful: NDArray[np.uint8]
    wrong: NDArray[np.uint8]
    writer: NDArray[np.uint32]
    cosine: NDArray[np.float32]
    keyword: NDArray[np.float32]
    matched: NDArray[np.uint32]
    found_by: NDArray[np.uint8]
    vectors: NDArray[np.uint16]
    vector_row: NDArray[np.int64]
    best_chunk: NDArray[np.int64]
    rarity: NDArray[np.float32]
    domain_names: tuple[str, ...] = ()
    tokens: TokenVectors | None = None
    bridged: Bridged | None = None
    spelt: CorrectionScores | None = None
    in_window: int = 0
    pending: int = 0
    graph_recall: float | None = None
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def vector(self, at: NDArray[np.int64]) -> NDArray[np.float32]:
        """(m,) places -> (m, dim), the vector of each best chunk; zero without any."""
        row = self.vector_row[at]
        found = np.zeros((len(row), self.vectors.shape[1]), np.float32)
        found[row >= 0] = self.vectors[row[row >= 0]].view(np.float16)
        return found

    @property
    def memory_id(self) -> tuple[str, ...]:
        """The n ids."""
        return self.ids()


class Gathered(Struct, frozen=True, kw_only=True, eq=False):
    """All groups' candidates, in the order of the queries, read at one moment: its seq and generation of content."""

    seq: int
    content_seq: int
    groups: tuple[Candidates, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Rank of one memory among all that pass a query's filter, whether it is a candidate or not.

    Attributes:
        failed: Names of the filter's fields whose condition it does not meet.
        superseded_by: Ids of the memories that replace it, in write order; empty if the query includes replaced ones.
        turns_ago: Its turn in the session, counted from the last, 1; 0 outside the window.
        searched: As in `Candidates`, as are `cosine` and `matched`.
        keyword: BM25 score; 0 if no term matched, and with substrings.
        vector_rank: Rank by cosine, from 1, ties by age in the store; counts it even if it fails. 0 without a vector.
        keyword_rank: Rank by words, likewise; with substrings the newest first. 0 without a match.
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
