"""The candidates of a view: cosine, BM25F and look-ups by domain name, each behind the same filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.candidates import Candidates, FoundBy, Gathered, GroupQuery
from hummock.core.memory import MemoryKind
from hummock.store.filters import Flags, TermNumbers, holding, marked, passing
from hummock.store.limits import MAX_QUERY_TERMS
from hummock.store.planner import nearest
from hummock.store.postings import NO_TERM
from hummock.store.view import ProjectView
from hummock_kernels.cosine import decode_rows, score_rows
from hummock_kernels.topk import top_k

Ordinals = NDArray[np.int64]

_NO_MINIMUM = -np.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Keywords:
    """BM25 of every memory."""

    score: NDArray[np.float32]
    matched: NDArray[np.uint32]


class Search:
    """The groups of one call on one view; later groups know what earlier ones found."""

    def __init__(
        self, view: ProjectView, numbers_of: TermNumbers, key_files_of: Callable[[Sequence[int]], list[str]]
    ) -> None:
        """Args: the view, its dictionary, and what names the key files of some domains, given their documents."""
        self._view = view
        self._numbers_of = numbers_of
        self._key_files_of = key_files_of
        self._domains: list[Ordinals] = []
        self._keywords: dict[tuple[str, ...], _Keywords] = {}

    def gather(self, queries: Sequence[GroupQuery]) -> Gathered:
        """What each query finds."""
        groups = tuple(self._group(query) for query in queries)
        return Gathered(seq=self._view.seq, content_seq=self._view.content_seq, groups=groups)

    def _group(self, query: GroupQuery) -> Candidates:
        dim = self._view.vectors.buffer.shape[1]
        if query.vector is not None and query.vector.shape != (dim,):
            raise ValueError(f"the query vector has shape {query.vector.shape}; the store's dim is {dim}")
        allowed = passing(self._view, query.filter, self._numbers_of)
        # Before the look-up below: the domains of this very group do not count.
        key_files = self._by_key_file(query, allowed)
        domain_names, by_domain = self._by_domain(query, allowed)
        keywords = self._scored(query.terms)
        found = {
            FoundBy.VECTOR: self._by_vector(query, allowed),
            FoundBy.KEYWORD: _by_keyword(query, allowed, keywords),
            FoundBy.DOMAIN: by_domain,
            FoundBy.KEY_FILE: key_files,
        }
        return self._candidates(query, int(np.count_nonzero(allowed)), found, keywords, domain_names)

    def _by_vector(self, query: GroupQuery, allowed: Flags) -> Ordinals:
        if query.vector is None:
            return np.empty(0, np.int64)
        # float16 rows are not quite of length 1, so that a cosine may fall a little below -1.
        minimum = query.minimum_cosine if query.minimum_cosine > -1 else _NO_MINIMUM
        return nearest(self._view, allowed, query.vector, minimum, query.pool)

    def _scored(self, terms: tuple[str, ...]) -> _Keywords | None:
        """Keyword scores of all memories; groups that ask for the same terms share them."""
        if not terms:
            return None
        if terms not in self._keywords:
            numbers = self._numbers_of(terms[:MAX_QUERY_TERMS])
            words = np.array([NO_TERM if number is None else number for number in numbers], np.uint32)
            columns = self._view.columns
            mean_length = columns.live_length / columns.live if columns.live else 0.0
            score, matched = self._view.postings.scores(words, columns.length.values, columns.live, mean_length)
            self._keywords[terms] = _Keywords(score=score, matched=matched)
        return self._keywords[terms]

    def _by_domain(self, query: GroupQuery, allowed: Flags) -> tuple[tuple[str, ...], Ordinals]:
        """The names that name an allowed domain, and the newest of those domains."""
        if not query.domain_names:
            return (), np.empty(0, np.int64)
        domains = allowed & (self._view.columns.kind.values == MemoryKind.DOMAIN_KNOWLEDGE)
        named = np.zeros(len(domains), np.uint8)
        names = []
        asked = sorted(query.domain_names) if domains.any() else []
        for name, number in zip(asked, self._numbers_of([facets.domain(name) for name in asked]), strict=True):
            if number is None:
                continue
            holders = marked(self._view, [number]) & domains
            if holders.any():
                names.append(name)
                named |= holders
        found = np.flatnonzero(named)[-query.pool :] if query.pool > 0 else np.empty(0, np.int64)
        self._domains.append(found)
        return tuple(names), found

    def _by_key_file(self, query: GroupQuery, allowed: Flags) -> Ordinals:
        if not query.with_key_files or not self._domains:
            return np.empty(0, np.int64)
        docs = self._view.columns.doc.values[np.unique(np.concatenate(self._domains))]
        paths = self._key_files_of(docs.tolist())
        holders = holding(self._view, [facets.path(path) for path in paths], self._numbers_of) & allowed
        if query.vector is not None:
            return nearest(self._view, holders, query.vector, _NO_MINIMUM, query.pool)
        return np.flatnonzero(holders)[: query.pool]

    def _candidates(
        self,
        query: GroupQuery,
        searched: int,
        found: dict[FoundBy, Ordinals],
        keywords: _Keywords | None,
        domain_names: tuple[str, ...],
    ) -> Candidates:
        columns = self._view.columns
        at = np.unique(np.concatenate(list(found.values())))
        found_by = np.zeros(len(at), np.uint8)
        for path, ordinals in found.items():
            found_by[np.searchsorted(at, ordinals)] |= np.uint8(path)
        cosine, vector, best_chunk = self._best_chunks(at, query.vector)
        return Candidates(
            name=query.name,
            searched=searched,
            doc=columns.doc.values[at],
            memory_id=tuple([columns.ids[ordinal] for ordinal in at.tolist()]),
            kind=columns.kind.values[at],
            origin=columns.origin.values[at],
            create_time=columns.create_time.values[at],
            update_time=columns.update_time.values[at],
            text_hash=columns.text_hash.values[at],
            cosine=cosine,
            keyword=np.zeros(len(at), np.float32) if keywords is None else keywords.score[at],
            matched=np.zeros(len(at), np.uint32) if keywords is None else keywords.matched[at],
            found_by=found_by,
            vector=vector,
            best_chunk=best_chunk,
            domain_names=domain_names,
        )

    def _best_chunks(
        self, at: Ordinals, query_vector: NDArray[np.float32] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], Ordinals]:
        """Cosine, vector and number of each memory's best chunk; of the first, and NaN, without a query vector."""
        rows = self._view.vectors.values
        count = self._view.columns.chunk_count.values[at].astype(np.int64)
        start = self._view.columns.chunk_start.values[at]
        cosine = np.full(len(at), np.nan, np.float32)
        vector = np.zeros((len(at), rows.shape[1]), np.float32)
        embedded = np.flatnonzero(count)
        best = start[embedded]
        if query_vector is not None and len(embedded):
            offsets = np.cumsum(count[embedded]) - count[embedded]
            picks = np.repeat(best - offsets, count[embedded]) + np.arange(count.sum())
            scores = score_rows(rows, query_vector, picks)
            cosine[embedded] = np.maximum.reduceat(scores, offsets)
            is_best = scores == np.repeat(cosine[embedded], count[embedded])
            # Of equal chunks the first: the last write to a place wins, so they are written backwards.
            owner = np.repeat(np.arange(len(embedded)), count[embedded])[is_best][::-1]
            best = best.copy()
            best[owner] = picks[is_best][::-1]
        vector[embedded] = decode_rows(rows, best)
        best_chunk = np.zeros(len(at), np.int64)
        best_chunk[embedded] = best - start[embedded]
        return cosine.clip(-1, 1), vector, best_chunk


def _by_keyword(query: GroupQuery, allowed: Flags, keywords: _Keywords | None) -> Ordinals:
    if keywords is None:
        return np.empty(0, np.int64)
    return top_k(keywords.score, allowed & (keywords.score > 0), query.pool)
