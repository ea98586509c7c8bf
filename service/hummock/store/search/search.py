"""Search for a query's candidates: all paths of each group over one view, at one moment."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.candidates import Candidates, CorrectionScores, FoundBy, Gathered, GroupQuery, Standing, TokenVectors
from hummock.core.memory import DomainKnowledge, MemoryKind
from hummock.core.recall import CAPPED
from hummock.core.threads import Cores
from hummock.store.limits import MOST_HOLDERS, MOST_READ_FOR_A_NAME, NEIGHBOURS_OF
from hummock.store.search.crossing import Crossing
from hummock.store.search.filters import (
    Flags,
    SubstringScan,
    failed_conditions,
    holding,
    holds_name,
    last_turns,
    marked,
    passing,
    scan_for,
    superseded_by,
)
from hummock.store.search.nearest import Ordinals, by_graph, nearest
from hummock.store.tables.reads import TableProject, all_present
from hummock.store.views.postings import NO_TERM, QueryTerms
from hummock.store.views.view import ProjectView
from hummock.text.analyzer import exact_names
from hummock_kernels.cosine import scan
from hummock_kernels.gather import Finds, gather

_NO_MINIMUM = -np.inf
_AGES_A_SCORE = 10
"""Keyword scores of substring matches fall by at most a tenth from the newest to the oldest."""
_HOLDER = FoundBy.KEYWORD | FoundBy.HOLDER
_NOTHING: Ordinals = np.empty(0, np.int64)
_BY_NOTHING: Flags = np.empty(0, np.uint8)
_NO_VECTOR: NDArray[np.float32] = np.empty(0, np.float32)
_OTHERS = CAPPED
"""Minimum candidates from other writers when one writer fills a path's pool: as many as the cap leaves room for."""


class Search:
    """Search of all groups of one call on one view; later groups use the domains that earlier ones found."""

    def __init__(self, view: ProjectView, stored: TableProject, cores: Cores) -> None:
        """Create a search; `stored` is the same project in a transaction later than the view."""
        self._view = view
        self._stored = stored
        self._cores = cores
        self._domains: list[Ordinals] = []
        self._asked: dict[tuple[str, ...], QueryTerms] = {}
        self._names_held: dict[tuple[int, str], bool] = {}
        # Recall of the graph that found the group's nearest, if one did.
        self._graph_recall: float | None = None

    def gather(self, queries: Sequence[GroupQuery]) -> Gathered:
        """Candidates of each query, with token vectors of their best chunks if the query asks for them."""
        groups = [self._group(query) for query in queries]
        with_tokens = [
            replace(group, tokens=self._tokens(group)) if query.with_tokens else group
            for group, query in zip(groups, queries, strict=True)
        ]
        return Gathered(seq=self._view.seq, content_seq=self._view.content_seq, groups=tuple(with_tokens))

    def standing(self, query: GroupQuery, ordinal: int) -> Standing:
        """Rank of one memory among all that pass the query's filter."""
        allowed = self._current(query, passing(self._view, query.filter, self._stored))
        window = last_turns(self._view, query.window, self._stored)
        allowed, _ = window.left_out(allowed)
        searched = int(np.count_nonzero(allowed))
        allowed = allowed.copy()
        allowed[ordinal] = 1
        cosine, vector_rank = self._standing_by_vector(query, allowed, ordinal)
        keyword, matched, keyword_rank = self._standing_by_keyword(query, allowed, ordinal)
        return Standing(
            failed=failed_conditions(self._view, query.filter, self._stored, ordinal),
            turns_ago=window.turn_of(ordinal),
            superseded_by=() if query.include_superseded else superseded_by(self._view, self._stored, ordinal),
            searched=searched,
            cosine=cosine,
            keyword=keyword,
            matched=matched,
            vector_rank=vector_rank,
            keyword_rank=keyword_rank,
        )

    def _standing_by_vector(self, query: GroupQuery, allowed: Flags, ordinal: int) -> tuple[float, int]:
        if query.vector is None:
            return np.nan, 0
        order, cosine = scan(self._view.chunks, allowed, query.vector, _NO_MINIMUM, len(allowed))
        place = np.flatnonzero(order == ordinal)
        return (float(cosine[place[0]]), int(place[0]) + 1) if len(place) else (np.nan, 0)

    def _standing_by_keyword(self, query: GroupQuery, allowed: Flags, ordinal: int) -> tuple[float, int, int]:
        if query.substrings:
            scan_of = scan_for(query.substrings, self._stored)
            order = self._newest_holding(scan_of, replace(query, pool=len(self._view.columns)), allowed)
            place = np.flatnonzero(order == ordinal)
            matched = scan_of.held(int(self._view.columns.doc[ordinal]))
            return 0.0, matched, int(place[0]) + 1 if len(place) else 0
        asked = self._asked_for(query.terms)
        if asked is None:
            return 0.0, 0, 0
        place = np.flatnonzero(asked.best(allowed, len(allowed)) == ordinal)
        if not len(place):
            return 0.0, 0, 0
        (score,), (of_terms,) = asked.scores(np.array([ordinal], np.int64))
        return float(score), int(of_terms), int(place[0]) + 1

    def _group(self, query: GroupQuery) -> Candidates:
        dim = self._view.vectors.buffer.shape[1]
        if query.vector is not None and query.vector.shape != (dim,):
            raise ValueError(f"the query vector has shape {query.vector.shape}; the store's dim is {dim}")
        columns = self._view.columns
        allowed, in_window = self._current(query, passing(self._view, query.filter, self._stored)), 0
        if query.window:
            allowed, in_window = last_turns(self._view, query.window, self._stored).left_out(allowed)
        # Before `_by_domain`: domains found by the same group do not count.
        key_files = self._by_key_file(query, allowed) if query.with_key_files and self._domains else _NOTHING
        domain_names, by_domain = self._by_domain(query, allowed)
        texts = scan_for(query.substrings, self._stored) if query.substrings else None
        asked = None if texts else self._asked_for(query.terms)
        self._graph_recall = None
        by_keyword, by_vector = self._by_both(query, allowed, asked)
        if texts:
            by_keyword = self._newest_holding(texts, query, allowed)
        others_by_keyword, others_by_vector = _NOTHING, _NOTHING
        if query.with_others and columns.has_writers:
            others_by_keyword, others_by_vector = self._others(query, allowed, asked, by_keyword, by_vector)
        crossing = Crossing(self._view, self._stored, query.bridge) if query.bridge else None
        foreign_by_keyword, foreign_by_vector = crossing.best(allowed, query.pool) if crossing else (_NOTHING, _NOTHING)
        spelling = query.spelling
        spelt = self._view.query_terms(self._stored, spelling.terms, spelling.weights) if spelling else None
        by_spelling = spelt.best(allowed, query.pool) if spelt else _NOTHING
        others = (
            (FoundBy.VECTOR, foreign_by_vector),
            (FoundBy.VECTOR, others_by_vector),
            (FoundBy.KEYWORD, foreign_by_keyword),
            (FoundBy.KEYWORD, by_spelling),
            (FoundBy.KEYWORD, others_by_keyword),
            (_HOLDER, self._holders(query, allowed) if query.name_terms else _NOTHING),
            (FoundBy.DOMAIN, by_domain),
            (FoundBy.KEY_FILE, key_files),
            (FoundBy.TIME, self._by_time(query, allowed, asked) if query.times else _NOTHING),
        )
        finds = Finds(by_vector, by_keyword, *_joined(others))
        candidates, at = self._candidates(query, allowed, finds, asked, domain_names)
        if crossing:
            candidates = replace(candidates, bridged=crossing.said(at))
        if spelt:
            keyword, held = spelt.scores(at)
            candidates = replace(candidates, spelt=CorrectionScores(keyword=keyword, held=held))
        pending = self._pending(allowed) if query.vector is not None and columns.pending else 0
        if in_window or pending:
            candidates = replace(candidates, in_window=in_window, pending=pending)
        if self._graph_recall is not None:
            candidates = replace(candidates, graph_recall=self._graph_recall)
        return _with_substrings(candidates, texts) if texts else candidates

    def _current(self, query: GroupQuery, allowed: Flags) -> Flags:
        """The flags without replaced memories, unless the query includes them."""
        if query.include_superseded:
            return allowed
        superseded = self._view.superseded(self._stored)
        return allowed if superseded is None else allowed & superseded.current

    def _pending(self, allowed: Flags) -> int:
        """Number of allowed memories without vectors yet."""
        columns = self._view.columns
        return int(np.count_nonzero((columns.chunk_count == 0) & (allowed != 0)))

    def _by_both(self, query: GroupQuery, allowed: Flags, asked: QueryTerms | None) -> tuple[Ordinals, Ordinals]:
        """The best by keyword and by vector; in a large project in parallel if a core is free."""
        if asked is None or query.vector is None or len(self._view.columns.doc) < self._view.plans.halved_memories:
            return _by_keyword(query, allowed, asked), self._by_vector(query, allowed)
        with self._cores.one():
            nearest, named = self._cores.at_once(
                partial(self._by_vector, query, allowed), partial(_by_keyword, query, allowed, asked)
            )
        return named, nearest

    def _by_vector(self, query: GroupQuery, allowed: Flags) -> Ordinals:
        if query.vector is None:
            return _NOTHING
        # float16 rows are not exactly of length 1, so a cosine may be slightly below -1.
        minimum = query.minimum_cosine if query.minimum_cosine > -1 else _NO_MINIMUM
        if self._view.graph is not None:
            found = by_graph(self._view, allowed, query.vector, minimum, query.pool)
            if found is not None:
                self._graph_recall = found.recall
                return found.ordinals
        return nearest(self._view, allowed, query.vector, minimum, query.pool)

    def _others(
        self, query: GroupQuery, allowed: Flags, asked: QueryTerms | None, by_keyword: Ordinals, by_vector: Ordinals
    ) -> tuple[Ordinals, Ordinals]:
        """Candidates of others, by keyword and by vector, if one unverified writer fills a path's pool."""
        theirs_by_keyword = self._beside(by_keyword, query.pool, allowed)
        theirs_by_vector = self._beside(by_vector, query.pool, allowed)
        few = replace(query, pool=_OTHERS)
        return (
            _NOTHING if theirs_by_keyword is None else _by_keyword(few, theirs_by_keyword, asked),
            _NOTHING if theirs_by_vector is None else self._by_vector(few, theirs_by_vector),
        )

    def _beside(self, found: Ordinals, pool: int, allowed: Flags) -> Flags | None:
        """Allowed memories except those of the writer who fills a pool; None if others have room in it."""
        if len(found) < max(pool, 1):
            return None
        writers = self._view.columns.writer
        # A writer with more than half of the entries is at the median.
        middle = np.sort(writers[found])[len(found) // 2]
        if not middle or np.count_nonzero(writers[found] != middle) >= min(_OTHERS, pool // 2):
            return None
        others: Flags = allowed & (writers != middle)
        return others

    def _by_time(self, query: GroupQuery, allowed: Flags, asked: QueryTerms | None) -> Ordinals:
        """Memories of events within the query's times.

        If they exceed the pool: the nearest by vector, or without one the best by keyword and then the newest.
        """
        columns = self._view.columns
        intervals = [self._view.event_times.between(columns, start, end) for start, end in query.times]
        of_any = np.unique(np.concatenate(intervals))
        found: Ordinals = of_any[allowed[of_any] != 0]
        if len(found) <= query.pool:
            return found
        within = np.zeros(len(columns), np.uint8)
        within[found] = 1
        if query.vector is not None:
            return nearest(self._view, within, query.vector, _NO_MINIMUM, query.pool)
        by_words = _NOTHING if asked is None else asked.best(within, query.pool)
        rest = np.setdiff1d(found, by_words, assume_unique=True)
        chosen: Ordinals = np.concatenate([by_words, rest[len(rest) + len(by_words) - query.pool :]])
        return chosen

    def _newest_holding(self, scan: SubstringScan, query: GroupQuery, allowed: Flags) -> Ordinals:
        """The newest memories with one of the substrings, by creation time (S0-11)."""
        places = np.flatnonzero(allowed)
        newest = places[np.lexsort((places, self._view.columns.create_time[places]))][::-1]
        docs = self._view.columns.doc
        held = set(scan.first(docs[newest].tolist(), query.pool))
        return newest[np.isin(docs[newest], list(held))] if held else _NOTHING

    def _holders(self, query: GroupQuery, allowed: Flags) -> Ordinals:
        """Memories that contain the whole name, if they are few: BM25 may prefer others with parts of it.

        Of a name of several parts only those that write it in the same capitals, if there are any.
        """
        found = np.flatnonzero(self._with_all(query.name_terms) & allowed)
        if len(found) > (1 if len(query.name_terms) > 1 else MOST_HOLDERS):
            # Inflected forms share the terms of a word, and so do names with and without surrounding underscores.
            written = [facets.name(name) for name in exact_names(query.exact_name)]
            as_written = found[self._with_all(written)[found] != 0]
            if len(as_written) or len(found) > MOST_HOLDERS:
                found = as_written
        if MOST_HOLDERS < len(found) <= MOST_READ_FOR_A_NAME:
            found = self._holding_it_as_written(found, query.exact_name)
        return found if len(found) <= MOST_HOLDERS else _NOTHING

    def _with_all(self, terms: Sequence[str]) -> Flags:
        """Memories with all of these terms or facets."""
        holders = np.ones(len(self._view.columns), np.uint8)
        for number in self._view.kept_terms.numbers(terms, self._stored.term_numbers).tolist():
            holders &= 0 if number == NO_TERM else marked(self._view, [number])
        return holders

    def _holding_it_as_written(self, holders: Ordinals, name: str) -> Ordinals:
        """Memories whose texts contain the name exactly; stops reading once they are too many."""
        docs = self._view.columns.doc[holders].tolist()
        found: list[int] = []
        for place, doc in zip(holders.tolist(), docs, strict=True):
            if len(found) > MOST_HOLDERS:
                break
            if self._holds(doc, name):
                found.append(place)
        return np.array(found, np.int64)

    def _holds(self, doc: int, name: str) -> bool:
        """Whether a document contains the name; cached, as groups check the same records."""
        if (doc, name) not in self._names_held:
            self._names_held[doc, name] = holds_name(self._stored, doc, name)
        return self._names_held[doc, name]

    def _asked_for(self, terms: tuple[str, ...]) -> QueryTerms | None:
        """Look-up of the terms in the index, shared by groups with the same terms; None without terms."""
        if not terms:
            return None
        if terms not in self._asked:
            self._asked[terms] = self._view.query_terms(self._stored, terms)
        return self._asked[terms]

    def _by_domain(self, query: GroupQuery, allowed: Flags) -> tuple[tuple[str, ...], Ordinals]:
        """The query's names of allowed domains, and the newest of those domains."""
        if not query.domain_names and not query.domain_text:
            return (), _NOTHING
        known = self._view.domain_names.get(self._stored)
        asked = known.within(query.domain_text)
        if query.domain_names:
            asked |= known.among(query.domain_names)
        if not asked:
            return (), _NOTHING
        domains = allowed & (self._view.columns.kind == MemoryKind.DOMAIN_KNOWLEDGE)
        holders_of = {name: marked(self._view, [number]) & domains for name, number in sorted(asked.items())}
        names = tuple(name for name, holders in holders_of.items() if holders.any())
        found = np.flatnonzero(np.any(list(holders_of.values()), axis=0))[-query.pool :] if query.pool > 0 else _NOTHING
        self._domains.append(found)
        return names, found

    def _by_key_file(self, query: GroupQuery, allowed: Flags) -> Ordinals:
        docs = self._view.columns.doc[np.unique(np.concatenate(self._domains))]
        details = [payload.detail for payload in all_present([self._stored.payload(doc) for doc in docs.tolist()])]
        paths = [path for detail in details if isinstance(detail, DomainKnowledge) for path in detail.key_files]
        holders = holding(self._view, [facets.path(path) for path in paths], self._stored) & allowed
        if query.vector is not None:
            return nearest(self._view, holders, query.vector, _NO_MINIMUM, query.pool)
        return np.flatnonzero(holders)[: query.pool]

    def _tokens(self, found: Candidates) -> TokenVectors:
        chunks = self._stored.tokens(zip(found.rows["doc"].tolist(), found.best_chunk.tolist(), strict=True))
        token_dim = self._stored.token_dim
        counts = [len(chunk) // token_dim for chunk in chunks]
        return TokenVectors(
            values=np.frombuffer(b"".join(chunks), np.int8).reshape(-1, token_dim),
            start=np.fromiter(itertools.accumulate(counts, initial=0), np.int64, len(chunks) + 1),
        )

    def _candidates(
        self, query: GroupQuery, allowed: Flags, finds: Finds, asked: QueryTerms | None, domain_names: tuple[str, ...]
    ) -> tuple[Candidates, Ordinals]:
        """The finds with the turns beside them, and the ordinal of each, ascending."""
        columns, chunks = self._view.columns, self._view.chunks
        terms = asked or self._view.query_terms(self._stored, ())
        taken = gather(
            finds,
            columns.memories,
            columns.turns.slots,
            NEIGHBOURS_OF if query.with_neighbours and columns.turns.has_any else 0,
            allowed,
            chunks,
            _NO_VECTOR if query.vector is None else query.vector,
            terms.index,
            terms.delta,
            terms.presence,
            terms.query,
            terms.saturation,
        )
        at = taken.at
        helpful, wrong = columns.voices(at)
        return Candidates(
            name=query.name,
            searched=int(np.count_nonzero(allowed)),
            ids=lambda: tuple([columns.ids[ordinal] for ordinal in at.tolist()]),
            rows=taken.rows,
            helpful=helpful,
            wrong=wrong,
            writer=columns.writer[at] if columns.has_writers else columns.writer[:0],
            cosine=taken.cosine,
            keyword=taken.keyword,
            matched=taken.matched,
            found_by=taken.found_by,
            vectors=chunks.rows,
            vector_row=taken.vector_row,
            best_chunk=taken.best_chunk,
            rarity=_NO_VECTOR if asked is None else asked.rarity,
            domain_names=domain_names,
        ), at


def _joined(finds: Sequence[tuple[FoundBy, Ordinals]]) -> tuple[Ordinals, Flags]:
    """All ordinals, and the path that found each."""
    some = [(path, ordinals) for path, ordinals in finds if len(ordinals)]
    if not some:
        return _NOTHING, _BY_NOTHING
    places = np.concatenate([ordinals for _, ordinals in some])
    return places, np.repeat(np.array([path for path, _ in some], np.uint8), [len(ordinals) for _, ordinals in some])


def _by_keyword(query: GroupQuery, allowed: Flags, asked: QueryTerms | None) -> Ordinals:
    return _NOTHING if asked is None else asked.best(allowed, query.pool)


def _with_substrings(found: Candidates, scan: SubstringScan) -> Candidates:
    """The candidates with the scan's matches and scores, including those found by other paths."""
    matched = np.array([scan.held(doc) for doc in found.rows["doc"].tolist()], np.uint32)
    newest_first = np.lexsort((found.rows["doc"], found.rows["create_time"]))[::-1]
    age = np.empty(len(found), np.int64)
    age[newest_first] = np.arange(len(found))
    score = np.where(matched > 0, 1 - age / (_AGES_A_SCORE * max(1, len(found))), 0)
    return replace(found, matched=matched, keyword=score.astype(np.float32), is_cut=scan.is_cut)
