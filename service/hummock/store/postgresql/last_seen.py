"""Answers from memory while a database cannot be reached: the last views, and recent reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from hummock.core import facets
from hummock.core.candidates import Gathered, GroupQuery, SessionWindow
from hummock.core.errors import StoreUnreachable
from hummock.core.memory import Filter, Memory
from hummock.core.project import NO_NAMES, GivenNames, Project
from hummock.core.settings import ProjectSettings
from hummock.core.threads import Cores
from hummock.ports.store import Exchange, Neighbours, Outdated
from hummock.store.postgresql.connections import DatabaseUnreachable
from hummock.store.postgresql.database import Database
from hummock.store.search.exchanges import exchange_docs, replies_to
from hummock.store.search.neighbours import neighbours_of
from hummock.store.search.search import Search, holders, rarest
from hummock.store.snapshot import Snapshot, loaded_exchanges, replacements
from hummock.store.tables import record_codec
from hummock.store.tables.reads import DecodesRecords
from hummock.store.tables.recent import RecentReads
from hummock.store.tables.stored_projects import TableProjects
from hummock.store.tables.term_dictionary import TermNumbers
from hummock.store.views.row_codec import id_hash
from hummock.store.views.stored import Changes, Listed, Progress, Records, StoredMemories, StoredProject
from hummock.store.views.view import ProjectView

_NAMES_OF_CODE = facets.name("")
_NAMES_OF_DOMAINS = facets.domain("")

Read = TypeVar("Read")


class StaleSnapshot(Snapshot):
    """A snapshot of a project's data in memory; it never asks the database, and changes no shared cache."""

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
        view = dataclasses.replace(view)
        super().__init__(view, projects, database, cores, is_last=True)
        self.stale_s = age_s
        self._database = database
        self._recent = recent
        self._remembered = _Remembered(view, recent, projects.term_numbers, database.space.token_dim, projects.now)

    def search(self, queries: Sequence[GroupQuery]) -> Gathered:
        """The candidates of each query; token vectors that are not in memory do not affect the order."""
        try:
            return Search(self._view, self._remembered, self._cores).gather(queries)
        except Outdated:
            plain = [_without_what_is_looked_up(query) for query in queries]
        return self._known(lambda view, stored: Search(view, stored, self._cores).gather(plain))

    def rarest(self, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """The rarest of the terms by number of memories, at most `most`."""
        return self._known(lambda view, stored: rarest(view, stored, terms, most))

    def holders(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Number of memories that contain each term."""
        return self._known(lambda view, stored: holders(view, stored, terms))

    def unheld(self, terms: Sequence[str]) -> list[int]:
        """Places of the terms that no memory contains."""
        return self._known(lambda view, stored: view.query_terms(stored, terms).unheld)

    def terms_with_prefix(self, prefix: str, most: int) -> Mapping[str, int]:
        """Returns nothing: the list of all terms is not in memory."""
        return {}

    def holds_any(self, terms: Sequence[str]) -> bool:
        """Whether one of the terms is cached."""
        return self._projects.term_numbers.knows_any(self._view.number, terms)

    def given_names(self) -> GivenNames:
        """Names in the project, if they were read since they changed."""
        return self._view.given_names.known or NO_NAMES

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The cached ones of these memories, in order; None for others."""
        return [self._remembered.memory(doc, full=full) for doc in docs]

    def superseded_by(self, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Ids of the replacing memories, by id; empty if they are not in memory."""
        try:
            return replacements(self._view, self._remembered, memory_ids)
        except Outdated:
            return {}

    def neighbours(self, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Neighbours]:
        """Neighbours of these memories; none, marked as cut, if a needed memory is not cached."""
        try:
            return neighbours_of(self._view, self._remembered, docs, count, full=full, most_bytes=most_bytes)
        except Outdated:
            return [Neighbours(is_cut=True)] * len(docs)

    def replies_to(self, text_hashes: Collection[int], where: Filter, window: SessionWindow | None) -> list[Memory]:
        """The cached replies to turns with one of these texts; none if it cannot be told from what is cached."""
        try:
            docs = replies_to(self._view, self._remembered, text_hashes, where, window)
        except Outdated:
            return []
        return [memory for memory in self.load(docs, full=True) if memory is not None]

    def exchanges(self, memory_ids: Sequence[str], where: Filter, window: SessionWindow | None) -> list[Exchange]:
        """What belongs to these turns; nothing if it cannot be told from what is cached."""
        try:
            found = exchange_docs(self._view, self._remembered, memory_ids, where, window)
        except Outdated:
            return [Exchange()] * len(memory_ids)
        return loaded_exchanges(found, self.load)

    def get(self, memory_ids: Sequence[str]) -> list[Memory | None]:
        """The cached ones of these memories, in order; None for others."""
        return [self._named(memory_id) for memory_id in memory_ids]

    def project(self) -> Project | None:
        """The project's last known record."""
        record = self._recent.record(self._view.number)
        return None if record is None else record_codec.project_of(record, self._engine.space.id)

    def _known(self, read: Callable[[ProjectView, StoredProject], Read]) -> Read:
        """Result of `read`, called with the view and cached data. Raises: StoreUnreachable: too little is cached."""
        try:
            return read(self._view, self._remembered)
        except Outdated as error:
            raise not_here(self._database) from error

    def _named(self, memory_id: str) -> Memory | None:
        columns = self._view.columns
        found = np.flatnonzero((columns.id_hash == np.uint64(id_hash(memory_id))) & (columns.alive != 0))
        docs = [int(columns.doc[one]) for one in found.tolist() if columns.ids[one] == memory_id]
        return self._remembered.memory(docs[0], full=True) if docs else None


def not_here(database: Database) -> StoreUnreachable:
    """The error if the database is unreachable and the requested data are not in memory."""
    return database.away or DatabaseUnreachable(database.place, "and what was asked is not in memory")


def _without_what_is_looked_up(query: GroupQuery) -> GroupQuery:
    return replace(
        query, domain_names=frozenset(), domain_text="", with_key_files=False, window=None, include_superseded=True
    )


class _Remembered(DecodesRecords):
    """A `StoredProject` limited to cached reads. Raises Outdated where missing data would give wrong results.

    So no caller caches an incomplete list either.
    """

    def __init__(
        self, view: ProjectView, recent: RecentReads, terms: TermNumbers, token_dim: int, now: Callable[[], float]
    ) -> None:
        self._view = view
        self._now = now
        self._recent = recent
        self._terms = terms
        self.number = view.number
        self.token_dim = token_dim

    def progress(self) -> Progress:
        return Progress(self._view.seq, self._view.content_seq, self._view.seq)

    def settings(self) -> ProjectSettings:
        return self._view.settings

    def memories(self, listed: Listed) -> StoredMemories:
        raise Outdated

    def memories_of(self, docs: Sequence[int]) -> StoredMemories:
        raise Outdated

    def changes(self, after_seq: int) -> Changes:
        raise Outdated

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The cached numbers of terms; None for other words, names of code and domains.

        Raises: Outdated: another facet is not cached, without which a filter would pass the wrong memories.
        """
        found = self._terms.known(self.number, terms)
        for term, number in zip(terms, found, strict=True):
            if number is None and facets.is_facet(term) and not term.startswith((_NAMES_OF_CODE, _NAMES_OF_DOMAINS)):
                raise Outdated
        return found

    def numbers_behind(self, prefix: str, most: int | None = None) -> dict[str, int]:
        raise Outdated

    def records(self, doc: int, *, full: bool) -> Records:
        found = self._recent.memory(self.number, None, doc)
        return (b"", b"") if found is None else found if full else (found[0], b"")

    def memory(self, doc: int, *, full: bool) -> Memory | None:
        records = self.records(doc, full=full)
        memory = self.decoded(records) if records[0] else None
        return None if memory is None or memory.is_over(self._now()) else memory

    def called(self, limit: int) -> list[tuple[str, ...]]:
        raise Outdated

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        return [value or b"" for value in self._recent.tokens(self.number, None, list(chunks))]
