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
from hummock_kernels.cosine import best_chunks
from hummock_kernels.topk import top_k

Ordinals = NDArray[np.int64]

_NO_MINIMUM = -np.inf
_NOTHING: Ordinals = np.empty(0, np.int64)
_NO_VECTOR: NDArray[np.float32] = np.empty(0, np.float32)


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
            return _NOTHING
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
        known = self._view.domain_names
        asked = known.among(query.domain_names) | known.within(query.domain_text)
        if not asked:
            return (), _NOTHING
        domains = allowed & (self._view.columns.kind.values == MemoryKind.DOMAIN_KNOWLEDGE)
        holders_of = {name: marked(self._view, [number]) & domains for name, number in sorted(asked.items())}
        names = tuple(name for name, holders in holders_of.items() if holders.any())
        found = np.flatnonzero(np.any(list(holders_of.values()), axis=0))[-query.pool :] if query.pool > 0 else _NOTHING
        self._domains.append(found)
        return names, found

    def _by_key_file(self, query: GroupQuery, allowed: Flags) -> Ordinals:
        if not query.with_key_files or not self._domains:
            return _NOTHING
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
        marks = np.zeros(len(columns), np.uint8)
        for path, ordinals in found.items():
            marks[ordinals] |= np.uint8(path)
        at = np.flatnonzero(marks.view(np.bool_))
        start, count = columns.chunk_start.values, columns.chunk_count.values
        asked = _NO_VECTOR if query.vector is None else query.vector
        cosine, best_chunk, vector = best_chunks(self._view.vectors.values, start, count, at, asked)
        return Candidates(
            name=query.name,
            searched=searched,
            doc=columns.doc.values[at],
            ids=lambda: tuple([columns.ids[ordinal] for ordinal in at.tolist()]),
            kind=columns.kind.values[at],
            origin=columns.origin.values[at],
            create_time=columns.create_time.values[at],
            update_time=columns.update_time.values[at],
            text_hash=columns.text_hash.values[at],
            cosine=cosine,
            keyword=np.zeros(len(at), np.float32) if keywords is None else keywords.score[at],
            matched=np.zeros(len(at), np.uint32) if keywords is None else keywords.matched[at],
            found_by=marks[at],
            vector=vector,
            best_chunk=best_chunk,
            domain_names=domain_names,
        )


def _by_keyword(query: GroupQuery, allowed: Flags, keywords: _Keywords | None) -> Ordinals:
    if keywords is None:
        return _NOTHING
    best = top_k(keywords.score, allowed, query.pool)
    return best[keywords.score[best] > 0]
