"""Search with a query's translation: a path in addition to those of the query itself."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Bridge, Bridged
from hummock.core.memory import MemoryKind
from hummock.store.search.filters import Flags
from hummock.store.search.nearest import Ordinals, nearest
from hummock.store.tables.reads import TableProject
from hummock.store.tables.row_codec import TokenSign
from hummock.store.views.view import ProjectView
from hummock_kernels.cosine import best_cosines_of
from hummock_kernels.gather import flags_of_signs, score_translated

POOL_PARTS = 2
"""Divisor of the pool for each path of a translation. Twice as many candidates found no further answer."""

_BY_TOKENS = 2
_NO_MINIMUM = -np.inf
_NOTHING: Ordinals = np.empty(0, np.int64)
_NO_VECTOR: NDArray[np.float32] = np.empty(0, np.float32)


class Crossing:
    """One group's search with a query's translation."""

    def __init__(self, view: ProjectView, stored: TableProject, bridge: Bridge) -> None:
        """Create a search; `stored` is the view's project in a transaction later than the view."""
        self._view = view
        self._stored = stored
        self._bridge = bridge
        self._asked = view.query_terms(stored, bridge.terms, bridge.weights)

    def best(self, allowed: Flags, pool: int) -> tuple[Ordinals, Ordinals]:
        """The best memories in the other language by keyword and by vector, at most half a `pool` each, best first."""
        most = -(-pool // POOL_PARTS)
        by_keyword = self._asked.best(allowed, most) if self._bridge.terms else _NOTHING
        vector = self._bridge.vector
        if vector is None:
            return by_keyword[self._are_foreign(by_keyword)], _NOTHING
        by_vector = nearest(self._view, allowed, vector, _NO_MINIMUM, most)
        # One call for both: its cost hardly depends on the number of memories.
        are_foreign = self._are_foreign(np.concatenate([by_keyword, by_vector]))
        return by_keyword[are_foreign[: len(by_keyword)]], by_vector[are_foreign[len(by_keyword) :]]

    def said(self, at: Ordinals) -> Bridged:
        """Scores of these ascending candidates for the translation."""
        asked, vector = self._asked, self._bridge.vector
        cosine, keyword, matched = score_translated(
            self._view.chunks,
            at,
            _NO_VECTOR if vector is None else vector,
            asked.index,
            asked.delta,
            asked.presence,
            asked.query,
            asked.saturation,
            self._bridge.stands_for,
        )
        if self._bridge.prose is not None:
            is_code = self._view.columns.kind[at] == MemoryKind.CODE_FRAGMENT
            cosine[~is_code] = best_cosines_of(self._view.chunks, at[~is_code], self._bridge.prose)
        return Bridged(is_foreign=self._are_foreign(at), cosine=cosine, keyword=keyword, matched=matched)

    def _are_foreign(self, at: Ordinals) -> NDArray[np.bool_]:
        """Flags of memories in the other language; token vectors are read where a row has no sign."""
        columns, foreign = self._view.columns, _foreign(self._bridge.foreign_mark)
        flags, unread = flags_of_signs(columns.kind, columns.token_sign, columns.chunk_count, foreign, at)
        if unread:
            open_at = at[flags == _BY_TOKENS]
            signs = self._view.kept_signs.of(open_at, len(columns), self._read_signs)
            flags[flags == _BY_TOKENS] = foreign[columns.kind[open_at], signs]
        return flags.view(np.bool_)

    def _read_signs(self, ordinals: Ordinals) -> list[TokenSign]:
        """Sign of the last component, an int8, of each memory's token vectors, which marks the model."""
        first_chunks = zip(self._view.columns.doc[ordinals].tolist(), itertools.repeat(0))
        return [TokenSign.of_bytes(tokens) for tokens in self._stored.tokens(first_chunks)]


@lru_cache(64)
def foreign_signs(kinds: frozenset[MemoryKind], mark: int) -> NDArray[np.int64]:
    """(kinds, signs) int64, 1 where a memory of these kinds may be in the other language, else 0."""
    is_asked = np.isin(np.arange(len(MemoryKind) + 1), list(kinds))[:, None]
    return (is_asked & (_foreign(mark) > 0)).astype(np.int64)


@lru_cache(3)
def _foreign(mark: int) -> Flags:
    """(kinds, signs) uint8, 1 if a memory of this kind and `TokenSign` is in the other language, else 0.

    It is _BY_TOKENS if the sign is not stored and must be read. The token vectors of its first chunk tell the model and
    so the language; without any, as with a caller's vector, only code counts. Memories that wait for vectors may be in
    either.
    """
    is_code: NDArray[np.bool_] = np.arange(len(MemoryKind) + 1)[:, None] == MemoryKind.CODE_FRAGMENT
    sign = np.arange(len(TokenSign))
    marked = TokenSign.POSITIVE if mark > 0 else TokenSign.NEGATIVE
    may_be = (sign == marked) | (sign == TokenSign.PENDING) | (sign == TokenSign.NOT_NOTED)
    is_foreign: NDArray[np.bool_] = may_be | (is_code & (sign == TokenSign.NO_TOKENS))
    if not mark:
        return (is_code & np.ones_like(is_foreign)).view(np.uint8)
    # Code counts as English, however much Chinese its tables and comments contain.
    flags = (is_foreign & ~is_code if mark > 0 else is_foreign).view(np.uint8)
    flags[:, TokenSign.NOT_NOTED] *= _BY_TOKENS
    return flags
