"""Answers from memory while a database cannot be reached: the last views, and recent reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from msgspec.structs import replace

from hummock.core import facets
from hummock.core.candidates import Gathered, GroupQuery, SessionWindow
from hummock.core.memory import Filter, Memory
from hummock.core.project import NO_NAMES, GivenNames
from hummock.core.threads import Cores
from hummock.ports.store import Exchange, Neighbours, Outdated
from hummock.store.postgresql.database import Database
from hummock.store.snapshot import TableSnapshot
from hummock.store.tables.engine import Engine
from hummock.store.tables.reads import TableProject, TableProjects
from hummock.store.tables.recent import DecodedMemories, RecentReads, Records
from hummock.store.tables.record_codec import ProjectRecord
from hummock.store.tables.row_codec import id_hash
from hummock.store.views.view import ProjectView

_NAMES_OF_CODE = facets.name("")
_NAMES_OF_DOMAINS = facets.domain("")


class StaleSnapshot(TableSnapshot):
    """A snapshot of a project's data in memory; it never asks the database, and changes no shared cache.

    Reads that cannot be answered from there raise Outdated, unless a part of the answer serves.
    """

    def __init__(
        self,
        view: ProjectView,
        age_s: float,
        projects: TableProjects,
        database: Database,
        recent: RecentReads,
        cores: Cores,
    ) -> None:
        """`view` has no expired memories and may be stale by `age_s` seconds; the database is not asked."""
        # A copy, so that incomplete results are not cached in the shared view.
        super().__init__(dataclasses.replace(view), projects, database, cores, is_last=True)
        self.stale_s = age_s
        self._recent = recent

    @cached_property
    def stored(self) -> TableProject:
        """What is cached of the project's tables."""
        return _Remembered(self._view, self._projects, self._engine, self._recent)

    def search(self, queries: Sequence[GroupQuery]) -> Gathered:
        """The candidates of each query; token vectors that are not in memory do not affect the order."""
        try:
            return super().search(queries)
        except Outdated:
            return super().search([_without_what_is_looked_up(query) for query in queries])

    def terms_with_prefix(self, prefix: str, most: int) -> Mapping[str, int]:
        """Returns nothing: the list of all terms is not in memory."""
        return {}

    def given_names(self) -> GivenNames:
        """Names in the project, if they were read since they changed."""
        return self._view.given_names.known or NO_NAMES

    def superseded_by(self, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Ids of the replacing memories, by id; empty if they are not in memory."""
        try:
            return super().superseded_by(memory_ids)
        except Outdated:
            return {}

    def neighbours(self, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Neighbours]:
        """Neighbours of these memories; none, marked as cut, if a needed memory is not cached."""
        try:
            return super().neighbours(docs, count, full=full, most_bytes=most_bytes)
        except Outdated:
            return [Neighbours(is_cut=True)] * len(docs)

    def replies_to(self, text_hashes: Collection[int], where: Filter, window: SessionWindow | None) -> list[Memory]:
        """The cached replies to turns with one of these texts; none if it cannot be told from what is cached."""
        try:
            return super().replies_to(text_hashes, where, window)
        except Outdated:
            return []

    def exchanges(self, memory_ids: Sequence[str], where: Filter, window: SessionWindow | None) -> list[Exchange]:
        """What belongs to these turns; nothing if it cannot be told from what is cached."""
        try:
            return super().exchanges(memory_ids, where, window)
        except Outdated:
            return [Exchange()] * len(memory_ids)


def _without_what_is_looked_up(query: GroupQuery) -> GroupQuery:
    return replace(
        query, domain_names=frozenset(), domain_text="", with_key_files=False, window=None, include_superseded=True
    )


class _Away:
    """The transaction of a database that is away."""

    def get(self, *_: Any, **__: Any) -> NoReturn:
        raise Outdated

    cursor = put = delete = pop = replace = get


class _Remembered(TableProject):
    """A project limited to cached reads. Raises Outdated where missing data would give wrong results.

    So no caller caches an incomplete list either.
    """

    def __init__(self, view: ProjectView, projects: TableProjects, engine: Engine, recent: RecentReads) -> None:
        super().__init__(engine, _Away(), view.number, projects.term_numbers, projects.now, DecodedMemories(), recent)
        self._view = view
        self._terms = projects.term_numbers
        self._reads = recent

    def record(self) -> ProjectRecord:
        found = self._reads.record(self.number)
        if found is None:
            raise Outdated
        return found

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The cached numbers of terms; None for other words, names of code and domains.

        Raises: Outdated: another facet is not cached, without which a filter would pass the wrong memories.
        """
        found = self._terms.known(self.number, terms)
        for term, number in zip(terms, found, strict=True):
            if number is None and facets.is_facet(term) and not term.startswith((_NAMES_OF_CODE, _NAMES_OF_DOMAINS)):
                raise Outdated
        return found

    def has_any_term(self, terms: Sequence[str]) -> bool:
        return self._terms.knows_any(self.number, terms)

    def prefetch(self, docs: Sequence[int], *, full: bool, keep: bool = False) -> None:
        """Does nothing: all that can be read is in memory."""

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The cached ones of these memories, in order; None for others."""
        return [self.memory(doc, full=full) for doc in docs]

    def named(self, memory_ids: Sequence[str], *, full: bool) -> list[Memory | None]:
        """The cached ones of these memories, in order; None for others."""
        return [self._named(memory_id, full=full) for memory_id in memory_ids]

    def _named(self, memory_id: str, *, full: bool) -> Memory | None:
        columns = self._view.columns
        found = np.flatnonzero((columns.id_hash == np.uint64(id_hash(memory_id))) & (columns.alive != 0))
        docs = [int(columns.doc[one]) for one in found.tolist() if columns.ids[one] == memory_id]
        return self.memory(docs[0], full=full) if docs else None

    def records(self, doc: int, *, full: bool) -> Records:
        found = self._reads.memory(self.number, None, doc)
        return (b"", b"") if found is None else found if full else (found[0], b"")

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        return [value or b"" for value in self._reads.tokens(self.number, None, list(chunks))]
