"""Reads of a store over an engine of tables: of views where they are in memory, else of the tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np

from hummock.core.candidates import Candidates, Gathered, GroupQuery, Standing
from hummock.core.embedding import Embedding
from hummock.core.errors import SeqNotReached, Unavailable
from hummock.core.facets import Stars
from hummock.core.memory import EventPage, Filter, Memory, MemoryKind
from hummock.core.project import NO_NAMES, GivenNames, Project
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.core.transfer import ExportPage
from hummock.ports.learning import LearningReader
from hummock.ports.store import Generation, Neighbours, Page
from hummock.ports.writes import TextKey
from hummock.store.errors import MemoryDamaged
from hummock.store.search.crossing import foreign_count
from hummock.store.search.filters import page_of, passing, scan_for
from hummock.store.search.halves import Halves
from hummock.store.search.neighbours import neighbours_of
from hummock.store.search.search import Search, held_behind, holders, rarest
from hummock.store.search.star_map import stars_behind, stars_of
from hummock.store.tables import keys, record_codec, text_vectors
from hummock.store.tables.engine import Engine
from hummock.store.tables.learning_log import StoredLearning
from hummock.store.tables.op_log import events_behind, export_behind
from hummock.store.tables.projects import project_number, project_record
from hummock.store.tables.reads import TableProject, doc_of, find_by_text
from hummock.store.tables.review import ReviewReads
from hummock.store.tables.sessions import SessionReads
from hummock.store.tables.stored_projects import TableProjects
from hummock.store.views.stored import Outdated, ProjectGone, all_present
from hummock.store.views.view import ProjectView
from hummock.store.views.view_cache import ViewCache

_ALL = Filter()

Read = TypeVar("Read")

_ATTEMPTS = 16
"""Times that a read begins again because a write came between its view and its transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsLoad:
    """Indexes in memory: how many, their bytes, how many were given up, and by how many operations one lags at most."""

    count: int
    nbytes: int
    evicted: int
    lag: int


class StoreReads:
    """The reads of `ports.Store`, each at one moment."""

    def __init__(self, engine: Engine, projects: TableProjects, views: ViewCache) -> None:
        self._engine = engine
        self._tables = engine.tables
        self._projects = projects
        self._views = views
        self._halves = Halves()
        self.sessions = SessionReads(engine)
        self.review = ReviewReads(engine)

    def views_load(self) -> ViewsLoad:
        """The indexes in memory, and how far behind they are."""
        count, nbytes = self._views.usage()
        return ViewsLoad(count=count, nbytes=nbytes, evicted=self._views.evicted(), lag=self._views.lag())

    def candidates(self, project: str, queries: Sequence[GroupQuery], min_seq: int, seen_seq: int = 0) -> Gathered:
        """What each query finds, read at one moment."""

        def gathered(view: ProjectView, stored: TableProject) -> Gathered:
            _require_seq(min_seq, view.seq)
            return Search(view, stored, self._halves).gather(queries)

        found = self._read(project, gathered, seen_seq)
        if found is not None:
            return found
        _require_seq(min_seq, 0)
        empty = tuple(Candidates.empty(query.name, self._engine.space.dim) for query in queries)
        return Gathered(seq=0, content_seq=0, groups=empty)

    def rarest(self, project: str, terms: Sequence[str], most: int) -> tuple[str, ...]:
        """Those of the terms that the fewest memories hold; see `ports.Store`."""
        found = self._read(project, lambda view, stored: rarest(view, stored, terms, most))
        return tuple(terms[:most]) if found is None else found

    def holders(self, project: str, terms: Sequence[str], seen_seq: int = 0) -> tuple[int, ...]:
        """How many memories hold each term; see `ports.Store`."""
        found = self._read(project, lambda view, stored: holders(view, stored, terms), seen_seq)
        return (0,) * len(terms) if found is None else found

    def held_behind(self, project: str, prefix: str, most: int, seen_seq: int = 0) -> Mapping[str, int]:
        """Terms that begin so, and how many memories hold each; see `ports.Store`."""
        found = self._read(project, lambda view, stored: held_behind(view, stored, prefix, most), seen_seq)
        return found or {}

    def standing(self, project: str, query: GroupQuery, memory_id: str) -> Standing | None:
        """Where one memory stands among all that pass the query's filter; see `ports.Store`."""

        def read(view: ProjectView, stored: TableProject) -> Standing | None:
            doc = doc_of(stored.txn, self._tables, stored.number, memory_id)
            if doc is None:
                return None
            ordinals = view.columns.ordinals(np.array([doc], np.int64))
            if not len(ordinals):
                if stored.memory(doc, full=False) is None:
                    return None
                raise Outdated
            return Search(view, stored, self._halves).standing(query, int(ordinals[0]))

        return self._read(project, read)

    def load(self, project: str, docs: Sequence[int], *, full: bool, seen_seq: int = 0) -> list[Memory | None]:
        """The memories of these numbers, in order; None where one was removed since."""
        number = self._views.number_of(project)
        if number is None:
            return [None] * len(docs)
        try:
            # What was read lately will do, as long as nothing has come behind it.
            seen_seq = seen_seq or self._projects.seq(number)
            with self._projects.looking(number, seen_seq) as stored:
                stored.prefetch(docs, full=full, keep=True)
                return [self._sound(project, stored, doc, full=full) for doc in docs]
        except ProjectGone:
            self._views.forget(project)
            return [None] * len(docs)

    def _sound(self, project: str, stored: TableProject, doc: int, *, full: bool) -> Memory | None:
        """None also of a memory that is damaged, which the next view of the project leaves out."""
        try:
            return stored.memory(doc, full=full)
        except MemoryDamaged:
            self._views.forget(project)
            return None

    def damaged(self, project: str) -> int:
        """How many memories of a project are known to be damaged; see `ports.Recallable`."""
        if not self._engine.damage.is_any:
            return 0
        number = self._projects.number_of(project)
        return 0 if number is None else len(self._engine.damage.of(number))

    def neighbours(
        self, project: str, docs: Sequence[int], count: int, *, full: bool, most_bytes: int
    ) -> list[Neighbours]:
        """At most `count` memories on either side of each of these numbers; see `ports.Store`."""

        def read(view: ProjectView, stored: TableProject) -> list[Neighbours]:
            return neighbours_of(view, stored, docs, count, full=full, most_bytes=most_bytes)

        return self._read(project, read) or [Neighbours()] * len(docs)

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none."""

        def read(stored: TableProject) -> list[Memory | None]:
            # Before the memories: they may be of later writes.
            _require_seq(min_seq, stored.record().seq if min_seq else 0)
            stored.prefetch_named(memory_ids, full=full)
            return [self._named(stored, memory_id, full=full) for memory_id in memory_ids]

        def look(stored: TableProject) -> list[Memory | None]:
            found = read(stored)
            for memory_id, memory in zip(memory_ids, found, strict=True):
                if memory is None and doc_of(stored.txn, self._tables, stored.number, memory_id) is not None:
                    raise Outdated
            return found

        try:
            found = self._projects.look(project, look)
        except Outdated:  # one was written again between its number and itself; or has expired
            with self._projects.reading_by_name(project) as stored:
                found = None if stored is None else read(stored)
        if found is None:
            _require_seq(min_seq, 0)
            return [None] * len(memory_ids)
        return found

    def _named(self, stored: TableProject, memory_id: str, *, full: bool) -> Memory | None:
        """Raises: MemoryDamaged."""
        doc = doc_of(stored.txn, self._tables, stored.number, memory_id)
        try:
            memory = None if doc is None else stored.memory(doc, full=full)
        except MemoryDamaged as error:
            raise MemoryDamaged(memory_id, error.doc) from error
        # An id that leads to another memory is as damaged as its record would be.
        if doc is not None and memory is not None and memory.id != memory_id:
            raise MemoryDamaged(memory_id, doc)
        return memory

    def superseded_by(self, project: str, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The ids of the memories that replace each of these, where there are any; see `ports.Store`."""
        record = self._projects.look(project, TableProject.record)
        if record is None or not record.has_superseding:
            return {}

        def read(view: ProjectView, stored: TableProject) -> dict[str, tuple[str, ...]]:
            superseded, ids = view.superseded(stored), view.columns.ids
            wanted = set(memory_ids)
            by = {} if superseded is None else superseded.by
            return {ids[old]: tuple(ids[one] for one in new) for old, new in by.items() if ids[old] in wanted}

        return self._read(project, read) or {}

    def find_by_text(self, project: str, keys: Sequence[TextKey]) -> list[str | None]:
        """The ids of the oldest memories that are the same as what has these keys, in order."""

        def look(stored: TableProject) -> list[str | None]:
            return [find_by_text(stored.txn, self._tables, stored.number, key) for key in keys]

        return self._projects.look(project, look) or [None] * len(keys)

    def pending(self, project: str, limit: int) -> list[int]:
        """Documents that wait for their vectors, by their numbers; see `ports.Store`."""
        with self._projects.reading_by_name(project) as stored:
            if stored is None:
                return []
            waiting = keys.entries(stored.txn, self._tables.pending, keys.project_prefix(stored.number))
            docs = (keys.doc_of_doc_key(key) for key, _ in waiting)
            if stored.record().has_expiring:
                docs = (doc for doc in docs if self._sound(project, stored, doc, full=False) is not None)
            return list(islice(docs, limit))

    def vectors(self, digests: Sequence[bytes]) -> list[Embedding | None]:
        """What texts were embedded as, in any project; see `ports.Store`."""
        token_dim = self._engine.space.token_dim
        found = [text_vectors.find(self._engine, digest) for digest in digests]
        return [
            parts
            and Embedding(
                vector=np.frombuffer(parts[0], "<f2").astype(np.float32),
                tokens=np.frombuffer(parts[1], np.int8).reshape(-1, token_dim),
                digest=digest,
            )
            for parts, digest in zip(found, digests, strict=True)
        ]

    def page(
        self,
        project: str,
        where: Filter,
        after: int,
        limit: int,
        *,
        full: bool,
        newest_first: bool = False,
        contains: str = "",
    ) -> Page:
        """Memories behind position `after`, a document's number; see `ports.Store`."""

        def read(view: ProjectView, stored: TableProject) -> Page:
            docs = view.columns.doc[np.flatnonzero(passing(view, where, stored))]
            scan = scan_for([contains], stored) if contains else None
            found, next_after = page_of(docs, after, limit, newest_first=newest_first, scan=scan)
            stored.prefetch(found, full=full)
            return Page(memories=all_present([stored.memory(doc, full=full) for doc in found]), next_after=next_after)

        none = Page(memories=(), next_after=None)
        if limit <= 0:
            return none
        if where == _ALL and not contains:
            return self._page_of_all(project, after, limit, full=full, newest_first=newest_first)
        return self._read(project, read) or none

    def _page_of_all(self, project: str, after: int, limit: int, *, full: bool, newest_first: bool) -> Page:
        """Read from the table: the first look at a large project does not wait for its view."""
        with self._projects.reading_by_name(project) as stored:
            behind = () if stored is None else stored.memories_behind(after, full=full, newest_first=newest_first)
            found = list(islice(behind, limit + 1))
        return Page(
            memories=tuple(memory for _, memory in found[:limit]),
            next_after=found[limit - 1][0] if len(found) > limit else None,
        )

    def first_passing(self, project: str, where: Filter, limit: int) -> tuple[tuple[str, ...], int]:
        """The ids of the first memories that pass, and how many do; see `ports.Store`."""

        def read(view: ProjectView, stored: TableProject) -> tuple[tuple[str, ...], int]:
            found = np.flatnonzero(passing(view, where, stored))
            return tuple(view.columns.ids[ordinal] for ordinal in found[:limit].tolist()), len(found)

        return self._read(project, read) or ((), 0)

    def stars(self, project: str, after: int, limit: int) -> Stars:
        """A part of the star map; see `ports.Store`."""
        return self._read(project, lambda view, stored: stars_behind(view, stored, after, limit)) or Stars()

    def stars_of(self, project: str, memory_ids: Sequence[str]) -> Stars:
        """These memories in the star map; see `ports.Store`."""

        def read(view: ProjectView, stored: TableProject) -> Stars:
            docs = [doc_of(stored.txn, self._tables, stored.number, memory_id) for memory_id in memory_ids]
            found = [doc for doc in docs if doc is not None]
            present = [doc for doc in found if self._sound(project, stored, doc, full=False) is not None]
            return stars_of(view, stored, present)

        return self._read(project, read) or Stars()

    def memory_events(self, project: str, after: int, *, full: bool) -> EventPage:
        """What happened to memories behind the write `after`; see `ports.Store`."""
        with self._projects.reading_by_name(project) as stored:
            if stored is None:
                return EventPage(events=(), seq=0, is_reset=after > 0)
            now = self._projects.now()
            return events_behind(self._engine, stored.txn, stored.number, after, now, full=full)

    def export(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> ExportPage:
        """All memories whole, page by page; see `ports.Store`."""
        with self._projects.reading_by_name(project) as stored:
            if stored is None:
                return ExportPage(memories=(), removed_ids=(), next_after=None, seq=0, is_reset=after_seq > 0)
            now = self._projects.now()
            return export_behind(
                self._engine,
                stored.txn,
                stored.number,
                after,
                after_seq,
                now,
                is_sound=stored.is_sound,
                with_vectors=with_vectors,
            )

    def inline_generation(self, project: str) -> Generation | None:
        """A project's newest generation, where a search takes a moment; see `ports.Recallable`."""
        view = self._views.view_at_hand(project)
        # Where an index is worth its while, a search keeps a core busy beside others; it is better off on a thread.
        if view is None or view.row_doc.size >= view.plans.sign_rows:
            return None
        return _generation(view.at(self._projects.now()))

    def holds_any(self, project: str, terms: Sequence[str]) -> bool:
        """Whether the project has one of these terms; see `ports.Store`."""
        view = self._views.lagging_view(project)
        if view is not None and self._projects.knows_any_term(view.number, terms):
            return True
        return bool(self._projects.look(project, lambda stored: stored.has_any_term(terms)))

    def foreign(self, project: str, kinds: Collection[MemoryKind], mark: int) -> int:
        """How many memories of these kinds may be in another language; see `ports.Recallable`."""
        view = self._views.view(project)
        return 0 if view is None else foreign_count(view.at(self._projects.now()), kinds, mark)

    def given_names(self, project: str) -> GivenNames:
        """What a project calls things; see `ports.Recallable`."""
        view = self._views.view(project)
        known = None if view is None else view.at(self._projects.now()).given_names.known
        if known is not None:
            return known
        return self._read(project, lambda view, stored: view.given_names.get(view.columns, stored)) or NO_NAMES

    def generation(self, project: str) -> Generation:
        """A project's newest generation; see `ports.Store`."""
        view = self._views.loaded_view(project)
        if view is None:
            # The settings may be later than the rest; an answer is kept under what they say, so that none is outdated.
            found = self._projects.look(project, lambda stored: (stored.settings(), stored.record()))
            if found is None:
                return Generation(seq=0, content_seq=0)
            settings, record = found
            if not record.has_expiring:
                return Generation(seq=record.seq, content_seq=record.content_seq, settings=settings)
            view = self._views.view(project)
        return Generation(seq=0, content_seq=0) if view is None else _generation(view.at(self._projects.now()))

    def settings(self, project: str) -> ProjectSettings:
        """What a project sets for itself; see `ports.Store`."""
        return self._projects.look(project, TableProject.settings) or NO_SETTINGS

    def read_learning(self, project: str, read: Callable[[LearningReader], Read]) -> Read:
        """What is read of a project's learning at one moment."""
        with self._engine.answering(project) as txn:
            # Numbers begin at 1: nothing is anybody's under 0.
            number = project_number(txn, self._engine, project) or 0
            return read(StoredLearning(txn, self._tables, self._engine.damage, number))

    def project(self, name: str) -> Project | None:
        """A project, or None."""
        record = self._projects.look(name, TableProject.record)
        return None if record is None else self._project(record)

    def projects(self, after: str, limit: int) -> list[Project]:
        """At most `limit` projects whose names come behind `after`, in the order of their names' UTF-8 bytes."""
        found: list[Project] = []
        start = keys.project_name_key(after)
        with self._engine.answering() as txn:
            for key, value in keys.entries(txn, self._tables.project, keys.project_name_key(""), start):
                if len(found) >= limit:
                    break
                if key != start:
                    found.append(self._project(project_record(txn, self._engine, keys.unpack_project(value))))
        return found

    def _read(self, project: str, read: Callable[[ProjectView, TableProject], Read], seen_seq: int = 0) -> Read | None:
        """What is read with the project's view and a transaction that began after it; None when there is no project.

        A view that has all up to `seen_seq` (above 0) will do the first time, whatever has been written behind that.

        A write in between may have removed what the view names, perhaps to put a newer version of it: then it is read
        again with a view that knows of the write.
        """
        for attempt in range(_ATTEMPTS):
            view = self._views.view(project) if attempt else self._views.lagging_view(project)
            if view is None:
                return None
            try:
                timely = view.at(self._projects.now())
                with self._projects.reading(view.number, view.seq) as stored:
                    # It may lack what was acknowledged before this read began; one that was brought up since does not.
                    has_seen = 0 < seen_seq <= view.seq
                    if not attempt and not has_seen and not self._views.has_all(view):
                        raise Outdated
                    return read(timely, stored)
            except Outdated:
                self._views.newer_view(project)
            except MemoryDamaged:
                # It is known by now, and the next view is without it.
                self._views.forget(project)
        raise Unavailable(f"project {project} is being changed all the time; try again")

    def _project(self, record: record_codec.ProjectRecord) -> Project:
        return record_codec.project_of(record, self._engine.space.id)


def _generation(view: ProjectView) -> Generation:
    return Generation(seq=view.seq, content_seq=view.content_seq, settings=view.settings, expired_at=view.expired_at)


def _require_seq(min_seq: int, seq: int) -> None:
    if seq < min_seq:
        raise SeqNotReached(min_seq, seq)
