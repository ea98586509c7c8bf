"""Answers from memory while a database cannot be reached: the last views, and recent reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from hummock.core import facets
from hummock.core.candidates import Gathered, GroupQuery
from hummock.core.errors import SeqNotReached, StoreUnreachable
from hummock.core.memory import Memory, MemoryKind
from hummock.core.project import NO_NAMES, GivenNames, Project
from hummock.core.settings import ProjectSettings
from hummock.ports.store import Generation, Neighbours
from hummock.store.postgresql.connections import DatabaseUnreachable
from hummock.store.postgresql.database import Database
from hummock.store.postgresql.seen_views import SeenViews
from hummock.store.search.crossing import foreign_count
from hummock.store.search.halves import Halves
from hummock.store.search.neighbours import neighbours_of
from hummock.store.search.search import Search, holders, rarest
from hummock.store.tables import record_codec
from hummock.store.tables.reads import DecodesRecords
from hummock.store.tables.recent import RecentReads
from hummock.store.tables.sessions import SessionReads
from hummock.store.tables.term_dictionary import TermNumbers
from hummock.store.views.row_codec import id_hash
from hummock.store.views.stored import Changes, Listed, Outdated, Progress, Records, StoredMemories
from hummock.store.views.view import ProjectView

_NAMES_OF_CODE = facets.name("")
_NAMES_OF_DOMAINS = facets.domain("")

Read = TypeVar("Read")


class SeenReads:
    """A `LastSeen`. Its reads change nothing that others share."""

    def __init__(
        self,
        database: Database,
        views: SeenViews,
        recent: RecentReads,
        terms: TermNumbers,
        halves: Halves,
        now: Callable[[], float],
    ) -> None:
        """The reads of what is in memory.

        Args:
            database: Is never asked; knows whether it could be.
            views: Of the projects that are in memory.
            recent: What was read of them.
            terms: Those that were looked up.
            halves: For searches.
            now: Tells Unix seconds.
        """
        self._database = database
        self._views = views
        self._recent = recent
        self._terms = terms
        self._halves = halves
        self._now = now
        # Messages are in the database alone: whoever asks for them is told that it cannot be reached.
        self.sessions = SessionReads(database)

    def away(self) -> StoreUnreachable | None:
        """Why the database cannot be reached; see `ports.LastSeen`."""
        return self._database.away

    def seen(self, project: str) -> tuple[int, float]:
        """The newest seq seen, and its age in seconds; see `ports.LastSeen`."""
        view, age_s = self._seen(project)
        return view.seq, age_s

    def candidates(self, project: str, queries: Sequence[GroupQuery], min_seq: int, seen_seq: int = 0) -> Gathered:
        """The candidates of each query; token vectors that are not in memory do not affect the order."""
        view = self._view(project)
        if view.seq < min_seq:
            raise SeqNotReached(min_seq, view.seq)
        remembered = self._remembered(view)
        try:
            return Search(view, remembered, self._halves).gather(queries)
        except Outdated:
            plain = [_without_what_is_looked_up(query) for query in queries]
        return self._known(lambda: Search(view, remembered, self._halves).gather(plain))

    def damaged(self, project: str) -> int:
        """Number of memories known to be damaged."""
        return len(self._database.damage.of(self._view(project).number))

    def rarest(self, project: str, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """Those of the terms that the fewest memories hold."""
        view = self._view(project)
        return self._known(lambda: rarest(view, self._remembered(view), terms, most))

    def holders(self, project: str, terms: Sequence[str], seen_seq: int = 0) -> tuple[int, ...]:
        """Number of memories that hold each term."""
        view = self._view(project)
        return self._known(lambda: holders(view, self._remembered(view), terms))

    def held_behind(self, project: str, prefix: str, most: int, seen_seq: int = 0) -> Mapping[str, int]:
        """Returns nothing: the list of all terms is not in memory."""
        return {}

    def holds_any(self, project: str, terms: Sequence[str]) -> bool:
        """Whether one of the terms was looked up and found."""
        return self._terms.knows_any(self._view(project).number, terms)

    def foreign(self, project: str, kinds: Collection[MemoryKind], mark: int) -> int:
        """Number of memories of these kinds that may be in another language."""
        return foreign_count(self._view(project), kinds, mark)

    def given_names(self, project: str) -> GivenNames:
        """Names in the project, if they were read since it changed."""
        return self._view(project).given_names.known or NO_NAMES

    def load(self, project: str, docs: Sequence[int], *, full: bool, seen_seq: int = 0) -> list[Memory | None]:
        """Those of these memories that were read lately."""
        view = self._view(project)
        remembered = self._remembered(view)
        return [self._memory(remembered, doc, full=full) for doc in docs]

    def superseded_by(self, project: str, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The memory that replaces each of these, where that is known."""
        view = self._view(project)
        try:
            superseded = view.superseded(self._remembered(view))
        except Outdated:
            return {}
        ids, wanted = view.columns.ids, set(memory_ids)
        by = {} if superseded is None else superseded.by
        return {ids[old]: tuple(ids[one] for one in new) for old, new in by.items() if ids[old] in wanted}

    def neighbours(
        self, project: str, docs: Sequence[int], count: int, *, full: bool, most_bytes: int
    ) -> list[Neighbours]:
        """Neighbours of these memories in their sessions; none where one of them is not in memory."""
        view = self._view(project)
        try:
            return neighbours_of(view, self._remembered(view), docs, count, full=full, most_bytes=most_bytes)
        except Outdated:
            return [Neighbours(is_cut=True)] * len(docs)

    def inline_generation(self, project: str) -> Generation | None:
        """Always None: the caller runs on a worker."""
        return None

    def generation(self, project: str) -> Generation:
        """The generation that was seen last."""
        view = self._view(project)
        return Generation(
            seq=view.seq, content_seq=view.content_seq, settings=view.settings, expired_at=view.expired_at
        )

    def project(self, name: str) -> Project | None:
        """The project as it was seen last."""
        record = self._recent.record(self._view(name).number)
        return None if record is None else record_codec.project_of(record, self._database.space.id)

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """Those of these memories that were read lately."""
        view = self._view(project)
        remembered = self._remembered(view)
        return [self._named(view, remembered, memory_id, full=full) for memory_id in memory_ids]

    def _named(self, view: ProjectView, remembered: _Remembered, memory_id: str, *, full: bool) -> Memory | None:
        columns = view.columns
        found = np.flatnonzero((columns.id_hash == np.uint64(id_hash(memory_id))) & (columns.alive != 0))
        docs = [int(columns.doc[one]) for one in found.tolist() if columns.ids[one] == memory_id]
        return self._memory(remembered, docs[0], full=full) if docs else None

    def _memory(self, remembered: _Remembered, doc: int, *, full: bool) -> Memory | None:
        records = remembered.records(doc, full=full)
        memory = remembered.decoded(records) if records[0] else None
        return None if memory is None or memory.is_over(self._now()) else memory

    def _seen(self, project: str) -> tuple[ProjectView, float]:
        """Raises: StoreUnreachable."""
        seen = self._views.seen(project)
        if seen is None:
            raise self._not_here()
        return seen

    def _view(self, project: str) -> ProjectView:
        # A copy keeps what is found out of it to itself: that may be less than what is so.
        return dataclasses.replace(self._seen(project)[0].at(self._now()))

    def _remembered(self, view: ProjectView) -> _Remembered:
        return _Remembered(view, self._recent, self._terms, self._database.space.token_dim)

    def _known(self, read: Callable[[], Read]) -> Read:
        """The result of a read. Raises: StoreUnreachable: too little is in memory."""
        try:
            return read()
        except Outdated as error:
            raise self._not_here() from error

    def _not_here(self) -> StoreUnreachable:
        return self._database.away or DatabaseUnreachable(self._database.place, "and what was asked is not in memory")


def _without_what_is_looked_up(query: GroupQuery) -> GroupQuery:
    """The query without domains, their files, the turns it leaves out, and what others replace."""
    return replace(
        query,
        domain_names=frozenset(),
        domain_text="",
        with_key_files=False,
        window=None,
        include_superseded=True,
    )


class _Remembered(DecodesRecords):
    """A `StoredProject` of which no more is there than was read lately.

    Raises Outdated for what must not be guessed.
    """

    def __init__(self, view: ProjectView, recent: RecentReads, terms: TermNumbers, token_dim: int) -> None:
        self._view = view
        self._recent = recent
        self._terms = terms
        self.number = view.number
        self.token_dim = token_dim

    def progress(self) -> Progress:
        """Position of the view."""
        return Progress(self._view.seq, self._view.content_seq, self._view.seq)

    def settings(self) -> ProjectSettings:
        """The project's own settings."""
        return self._view.settings

    def memories(self, listed: Listed) -> StoredMemories:
        """Not available from memory. Raises: Outdated."""
        raise Outdated

    def memories_of(self, docs: Sequence[int]) -> StoredMemories:
        """Not available from memory. Raises: Outdated."""
        raise Outdated

    def changes(self, after_seq: int) -> Changes:
        """Not available from memory. Raises: Outdated."""
        raise Outdated

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms; None for words and names of code that were not looked up.

        Raises: Outdated: a facet was not, without which a filter would let the wrong memories pass.
        """
        found = self._terms.known(self.number, terms)
        for term, number in zip(terms, found, strict=True):
            if number is None and facets.is_facet(term) and not term.startswith((_NAMES_OF_CODE, _NAMES_OF_DOMAINS)):
                raise Outdated
        return found

    def numbers_behind(self, prefix: str, most: int | None = None) -> dict[str, int]:
        """Raises: Outdated: no list of all terms is in memory, and what asks for one keeps it."""
        raise Outdated

    def records(self, doc: int, *, full: bool) -> Records:
        """A memory and its payload; nothing where it was not read lately."""
        found = self._recent.memory(self.number, None, doc)
        return (b"", b"") if found is None else found if full else (found[0], b"")

    def called(self, limit: int) -> list[tuple[str, ...]]:
        """Raises: Outdated: what is called how is not in memory, and what asks for it keeps it."""
        raise Outdated

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        """The token vectors of chunks; nothing where they were not read lately."""
        return [value or b"" for value in self._recent.tokens(self.number, None, list(chunks))]
