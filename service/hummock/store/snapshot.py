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
from hummock.core.project import GivenNames, Project, Stars
from hummock.core.threads import Cores
from hummock.ports.learning import LearningReader
from hummock.ports.store import Alike, ChangePage, Exchange, Neighbours, Outdated, Page, Snapshot
from hummock.store.errors import DamageMet, MemoryDamaged
from hummock.store.search.crossing import foreign_signs
from hummock.store.search.exchanges import exchange_docs, last_said, replies_to
from hummock.store.search.filters import page_of, passing, scan_for
from hummock.store.search.listing import changes_behind, pinned_docs, stars_behind, stars_of
from hummock.store.search.neighbours import neighbours_of
from hummock.store.search.search import Search
from hummock.store.tables import record_codec
from hummock.store.tables.engine import Engine
from hummock.store.tables.keys import NO_PROJECT
from hummock.store.tables.learning_log import StoredLearning
from hummock.store.tables.lookups import doc_of
from hummock.store.tables.reads import TableProject, TableProjects, all_present
from hummock.store.views.view import ProjectView

Found = TypeVar("Found")


class TableSnapshot(Snapshot):
    """A snapshot over views and tables, for one thread and valid until its `with` block ends.

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
        try:
            return Search(self._view, self.stored, self._cores).gather(queries)
        except MemoryDamaged as error:
            raise DamageMet from error

    def standing(self, query: GroupQuery, memory_id: str) -> Standing | None:
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

        return self._of(read)

    def rarest(self, terms: Sequence[str], most: int) -> tuple[str, ...]:
        counts = np.array(self.holders(terms), np.int64)
        kept = np.argsort(np.where(counts > 0, counts, np.iinfo(np.int64).max), kind="stable")[:most]
        return tuple(terms[place] for place in sorted(kept.tolist()))

    def holders(self, terms: Sequence[str]) -> tuple[int, ...]:
        view = self._view
        return tuple(view.postings.df.at(view.kept_terms.numbers(terms, self.stored.term_numbers)).tolist())

    def unheld(self, terms: Sequence[str]) -> list[int]:
        return self._view.query_terms(self.stored, terms).unheld

    def terms_with_prefix(self, prefix: str, most: int) -> Mapping[str, int]:
        numbers = self.stored.numbers_behind(prefix, most)
        counts = self._view.postings.df.at(np.array(list(numbers.values()), np.uint32)).tolist()
        return {prefix + rest: count for rest, count in zip(numbers, counts, strict=True) if count > 0}

    def holds_any(self, terms: Sequence[str]) -> bool:
        return self._projects.term_numbers.knows_any(self._view.number, terms) or self.stored.has_any_term(terms)

    def foreign(self, kinds: Collection[MemoryKind], mark: int) -> int:
        return int(np.vdot(self._view.columns.by_sign, foreign_signs(frozenset(kinds), mark)))

    def given_names(self) -> GivenNames:
        known = self._view.given_names.known
        return self._of(lambda view, stored: view.given_names.get(view.columns, stored)) if known is None else known

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        try:
            found = self.stored.load(docs, full=full)
        except MemoryDamaged as error:
            raise DamageMet from error
        if None in found and not self._is_last:
            raise Outdated
        return found

    def superseded_by(self, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        superseded = self._of(lambda view, stored: view.superseded(stored))
        if superseded is None:
            return {}
        ids, wanted = self._view.columns.ids, set(memory_ids)
        return {ids[old]: tuple(ids[one] for one in new) for old, new in superseded.by.items() if ids[old] in wanted}

    def neighbours(self, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Neighbours]:
        return self._of(lambda view, stored: neighbours_of(view, stored, docs, count, full=full, most_bytes=most_bytes))

    @property
    def has_turns(self) -> bool:
        return self._view.columns.turns.has_any

    def last_said(self, session_id: str, most: int) -> list[Memory]:
        if not self.has_turns:
            return []
        window = SessionWindow(session_id=session_id, turns=most)
        return self._present(self._of(lambda view, stored: last_said(view, stored, window)))

    def replies_to(self, text_hashes: Collection[int], where: Filter, window: SessionWindow | None) -> list[Memory]:
        return self._present(self._of(lambda view, stored: replies_to(view, stored, text_hashes, where, window)))

    def exchanges(self, memory_ids: Sequence[str], where: Filter, window: SessionWindow | None) -> list[Exchange]:
        found = self._of(lambda view, stored: exchange_docs(view, stored, memory_ids, where, window))
        docs = list(dict.fromkeys([doc for one in found for doc in (one.question, *one.replies) if doc is not None]))
        by_doc = dict(zip(docs, self.load(docs, full=True), strict=True)) if docs else {}
        return [
            Exchange(
                question=None if one.question is None else by_doc[one.question],
                replies=tuple([memory for doc in one.replies if (memory := by_doc[doc]) is not None]),
                answer_id=answer.id if one.answer is not None and (answer := by_doc[one.answer]) is not None else "",
            )
            for one in found
        ]

    def damaged(self) -> int:
        return len(self._engine.damage.of(self._view.number)) if self._engine.damage.is_any else 0

    def get(self, memory_ids: Sequence[str]) -> list[Memory | None]:
        return self.stored.named(memory_ids, full=True)

    def page(
        self, where: Filter, after: int, limit: int, *, full: bool, newest_first: bool = False, contains: str = ""
    ) -> Page:
        def read(view: ProjectView, stored: TableProject) -> Page:
            docs = view.columns.doc[np.flatnonzero(passing(view, where, stored))]
            scan = scan_for([contains], stored) if contains else None
            found, next_after = page_of(docs, after, limit, newest_first=newest_first, scan=scan)
            stored.prefetch(found, full=full)
            return Page(memories=all_present([stored.memory(doc, full=full) for doc in found]), next_after=next_after)

        return self._of(read)

    def first_passing(self, where: Filter, limit: int) -> tuple[tuple[str, ...], int]:
        found = np.flatnonzero(self._of(lambda view, stored: passing(view, where, stored)))
        return tuple(self._view.columns.ids[ordinal] for ordinal in found[:limit].tolist()), len(found)

    def stars(self, after: int, limit: int) -> Stars:
        return self._of(lambda view, stored: stars_behind(view, stored, after, limit))

    def stars_of(self, memory_ids: Sequence[str]) -> Stars:
        def read(view: ProjectView, stored: TableProject) -> Stars:
            docs = [doc_of(stored.txn, self._engine.tables, stored.number, memory_id) for memory_id in memory_ids]
            return stars_of(view, stored, [doc for doc in docs if doc is not None and is_there(view, stored, doc)])

        def is_there(view: ProjectView, stored: TableProject, doc: int) -> bool:
            try:
                return stored.memory(doc, full=False) is not None
            except MemoryDamaged:
                # The view is loaded again unless it leaves it out already.
                if len(view.columns.ordinals(np.array([doc], np.int64))):
                    raise
                return False

        return self._of(read)

    def pinned(self, where: Filter, most: int) -> list[Memory]:
        if not self._view.columns.live_pinned:
            return []
        return self._present(self._of(lambda view, stored: pinned_docs(view, where, stored, most)))

    def changes(self, after: int, most: int, alike: Alike) -> ChangePage:
        return self._of(lambda view, stored: changes_behind(view, stored, after, most, alike))

    def learning(self) -> LearningReader:
        if self._learning is None:
            engine = self._engine
            self._learning = StoredLearning(self.stored.txn, engine.tables, engine.damage, self._view.number)
        return self._learning

    @property
    def entries_version(self) -> tuple[int, int]:
        return self.stored.record().entries_seq, self.learning().state().keywords_event

    def project(self) -> Project | None:
        if self._view.number == NO_PROJECT:
            return None
        return record_codec.project_of(self.stored.record(), self._engine.space.id)

    def require(self, min_seq: int) -> None:
        if self.seq < min_seq:
            raise SeqNotReached(min_seq, self.seq)

    def _present(self, docs: Sequence[int]) -> list[Memory]:
        return [memory for memory in self.load(docs, full=True) if memory is not None]

    def _of(self, read: Callable[[ProjectView, TableProject], Found]) -> Found:
        """Result of `read`, called with the view and its tables. Raises: DamageMet."""
        try:
            return read(self._view, self.stored)
        except MemoryDamaged as error:
            raise DamageMet from error
