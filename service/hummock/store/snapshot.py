"""One project at one moment: its view in memory, and a transaction that begins when something is read from disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from hummock.core.candidates import Gathered, GroupQuery, SessionWindow, Standing
from hummock.core.errors import SeqNotReached
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.core.project import GivenNames, Project
from hummock.core.threads import Cores
from hummock.ports.learning import LearningReader
from hummock.ports.store import Alike, ChangePage, Exchange, Neighbours, Outdated, Page
from hummock.store.errors import MemoryDamaged
from hummock.store.search.crossing import foreign_count
from hummock.store.search.exchanges import ExchangeDocs, exchange_docs, last_said, replies_to
from hummock.store.search.filters import page_of, passing, scan_for
from hummock.store.search.listing import changes_behind, pinned_docs
from hummock.store.search.neighbours import neighbours_of
from hummock.store.search.search import Search, holders, rarest, terms_with_prefix
from hummock.store.tables import record_codec
from hummock.store.tables.engine import Engine
from hummock.store.tables.learning_log import StoredLearning
from hummock.store.tables.lookups import doc_of
from hummock.store.tables.reads import TableProject
from hummock.store.tables.stored_projects import TableProjects
from hummock.store.views.stored import NO_PROJECT, DamageMet, StoredProject, all_present
from hummock.store.views.view import ProjectView

Found = TypeVar("Found")


class Snapshot:
    """A `ports.Snapshot`, for one thread and valid until its `with` block ends.

    The transaction may see later writes than the view. Memories are immutable, so the two differ only in memories
    removed in between: a read that meets one raises Outdated, and the store repeats the work with a newer snapshot.
    """

    def __init__(
        self, view: ProjectView, projects: TableProjects, engine: Engine, cores: Cores, *, is_last: bool = False
    ) -> None:
        """`view` has no expired memories. With `is_last`, missing memories are left out, as no attempt follows."""
        self._view = view
        self._projects = projects
        self._engine = engine
        self._cores = cores
        self._is_last = is_last
        self._opened = ExitStack()
        self._learning: StoredLearning | None = None
        self.seq, self.content_seq = view.seq, view.content_seq
        self.settings = view.settings
        self.expired_at = view.expired_at
        self.stale_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._opened.__exit__(*error)

    @cached_property
    def stored(self) -> TableProject:
        """The project's tables."""
        return self._opened.enter_context(self._projects.reading(self._view.number, self._view.seq))

    def search(self, queries: Sequence[GroupQuery]) -> Gathered:
        """The candidates of each query."""
        try:
            return Search(self._view, self.stored, self._cores).gather(queries)
        except MemoryDamaged as error:
            raise DamageMet from error

    def standing(self, query: GroupQuery, memory_id: str) -> Standing | None:
        """Rank of one memory among all that pass the query's filter; None if the memory does not exist."""

        def read(view: ProjectView, stored: TableProject) -> Standing | None:
            doc = doc_of(stored.txn, self._engine.tables, stored.number, memory_id)
            if doc is None:
                return None
            ordinals = view.columns.ordinals(np.array([doc], np.int64))
            if not len(ordinals):
                if stored.memory(doc, full=False) is None:
                    return None
                raise Outdated
            return Search(view, stored, self._cores).standing(query, int(ordinals[0]))

        return self.of(read)

    def rarest(self, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """The rarest of the terms by number of memories, at most `most`."""
        return rarest(self._view, self.stored, terms, most)

    def holders(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Number of memories that contain each term."""
        return holders(self._view, self.stored, terms)

    def unheld(self, terms: Sequence[str]) -> list[int]:
        """Places of the terms that no memory contains."""
        return self._view.query_terms(self.stored, terms).unheld

    def terms_with_prefix(self, prefix: str, most: int) -> Mapping[str, int]:
        """Terms that begin with the prefix, with the number of memories that contain each."""
        return terms_with_prefix(self._view, self.stored, prefix, most)

    def holds_any(self, terms: Sequence[str]) -> bool:
        """Whether any memory, present or removed, contains one of the terms."""
        return self._projects.term_numbers.knows_any(self._view.number, terms) or self.stored.has_any_term(terms)

    def foreign(self, kinds: Collection[MemoryKind], mark: int) -> int:
        """Number of memories of these kinds that may be in another language."""
        return foreign_count(self._view, kinds, mark)

    def given_names(self) -> GivenNames:
        """Names of the project's domains and entries."""
        known = self._view.given_names.known
        return self.of(lambda view, stored: view.given_names.get(view.columns, stored)) if known is None else known

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The memories with these document numbers, in order; None for one removed after the snapshot was taken."""
        try:
            found = self.stored.load(docs, full=full)
        except MemoryDamaged as error:
            raise DamageMet from error
        if None in found and not self._is_last:
            raise Outdated
        return found

    def superseded_by(self, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Ids of the replacing memories, by the id of each memory that has any."""
        return self.of(lambda view, stored: replacements(view, stored, memory_ids))

    def neighbours(self, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Neighbours]:
        """Neighbours of each memory in its session or file."""
        return self.of(lambda view, stored: neighbours_of(view, stored, docs, count, full=full, most_bytes=most_bytes))

    @property
    def has_turns(self) -> bool:
        """Whether any memory is, or was, a turn of a session."""
        return self._view.columns.turns.has_any

    def last_said(self, session_id: str, most: int) -> list[Memory]:
        """The last turns of a session's user; see `ports.Snapshot`."""
        if not self.has_turns:
            return []
        docs = self.of(lambda view, stored: last_said(view, stored, SessionWindow(session_id=session_id, turns=most)))
        return [memory for memory in self.load(docs, full=True) if memory is not None]

    def replies_to(self, text_hashes: Collection[int], where: Filter, window: SessionWindow | None) -> list[Memory]:
        """Replies to turns with one of these texts; see `ports.Snapshot`."""
        docs = self.of(lambda view, stored: replies_to(view, stored, text_hashes, where, window))
        return [memory for memory in self.load(docs, full=True) if memory is not None]

    def exchanges(self, memory_ids: Sequence[str], where: Filter, window: SessionWindow | None) -> list[Exchange]:
        """Question and replies of each of these turns; see `ports.Snapshot`."""
        found = self.of(lambda view, stored: exchange_docs(view, stored, memory_ids, where, window))
        return loaded_exchanges(found, self.load)

    def damaged(self) -> int:
        """Number of memories known to be damaged."""
        return len(self._engine.damage.of(self._view.number)) if self._engine.damage.is_any else 0

    def get(self, memory_ids: Sequence[str]) -> list[Memory | None]:
        """The memories with these ids, with payloads; None for an unknown id."""
        return self.stored.named(memory_ids, full=True)

    def page(
        self, where: Filter, after: int, limit: int, *, full: bool, newest_first: bool = False, contains: str = ""
    ) -> Page:
        """Memories after position `after`, a document number; see `ports.Store`."""

        def read(view: ProjectView, stored: TableProject) -> Page:
            docs = view.columns.doc[np.flatnonzero(passing(view, where, stored))]
            scan = scan_for([contains], stored) if contains else None
            found, next_after = page_of(docs, after, limit, newest_first=newest_first, scan=scan)
            stored.prefetch(found, full=full)
            return Page(memories=all_present([stored.memory(doc, full=full) for doc in found]), next_after=next_after)

        return self.of(read)

    def pinned(self, where: Filter, most: int) -> list[Memory]:
        """Pinned memories of prompts with this filter; see `ports.Snapshot`."""
        if not self._view.columns.live_pinned:
            return []
        docs = self.of(lambda view, stored: pinned_docs(view, where, stored, most))
        return [memory for memory in self.load(docs, full=True) if memory is not None]

    def changes(self, after: int, most: int, alike: Alike) -> ChangePage:
        """Notes that tell a change, after position `after`; see `ports.Snapshot`."""
        return self.of(lambda view, stored: changes_behind(view, stored, after, most, alike))

    def learning(self) -> LearningReader:
        """The project's learning, of the moment of the first read from disk."""
        if self._learning is None:
            engine = self._engine
            self._learning = StoredLearning(self.stored.txn, engine.tables, engine.damage, self._view.number)
        return self._learning

    @property
    def entries_version(self) -> tuple[int, int]:
        """Seq of the newest write of an entry, and the newest event of a keyword."""
        return self.stored.record().entries_seq, self.learning().state().keywords_event

    def project(self) -> Project | None:
        """The project's record; None if it does not exist."""
        if self._view.number == NO_PROJECT:
            return None
        return record_codec.project_of(self.stored.record(), self._engine.space.id)

    def require(self, min_seq: int) -> None:
        """Check that the project has accepted `min_seq` writes. Raises: SeqNotReached."""
        if self.seq < min_seq:
            raise SeqNotReached(min_seq, self.seq)

    def of(self, read: Callable[[ProjectView, TableProject], Found]) -> Found:
        """Result of `read`, called with the view and its tables. Raises: DamageMet."""
        try:
            return read(self._view, self.stored)
        except MemoryDamaged as error:
            raise DamageMet from error


def replacements(view: ProjectView, stored: StoredProject, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Ids of the replacing memories, by the id of each memory that has any. Raises: Outdated."""
    superseded, ids, wanted = view.superseded(stored), view.columns.ids, set(memory_ids)
    by = {} if superseded is None else superseded.by
    return {ids[old]: tuple(ids[one] for one in new) for old, new in by.items() if ids[old] in wanted}


def loaded_exchanges(found: Sequence[ExchangeDocs], load: Callable[..., list[Memory | None]]) -> list[Exchange]:
    """The exchanges of these numbers, without memories that `load` does not give."""
    docs = list(dict.fromkeys([doc for one in found for doc in (one.question, *one.replies) if doc is not None]))
    by_doc = dict(zip(docs, load(docs, full=True), strict=True)) if docs else {}
    return [
        Exchange(
            question=None if one.question is None else by_doc[one.question],
            replies=tuple([memory for doc in one.replies if (memory := by_doc[doc]) is not None]),
            answer_id=answer.id if one.answer is not None and (answer := by_doc[one.answer]) is not None else "",
        )
        for one in found
    ]
