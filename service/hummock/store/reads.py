"""What is read of all projects: LMDB on disk, views in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import lmdb
import numpy as np

from hummock.core.candidates import Candidates, Gathered, GroupQuery, Standing
from hummock.core.errors import SeqNotReached, Unavailable
from hummock.core.memory import Filter, Memory
from hummock.core.memory_events import EventPage
from hummock.core.project import Project
from hummock.core.transfer import KeptPage
from hummock.ports import Beside, Generation, LearningReader, Page, TextKey
from hummock.store import keys, scan
from hummock.store.environment import Environment
from hummock.store.kept import kept_behind
from hummock.store.learning import StoredLearning
from hummock.store.limits import MAX_SUBSTRING_BYTES
from hummock.store.memory_events import events_behind
from hummock.store.pages import page_of
from hummock.store.reading import Outdated, ProjectReading, all_present
from hummock.store.records import codec
from hummock.store.records.settings import read_settings
from hummock.store.searching.beside import Reading, Surroundings, record_bytes
from hummock.store.searching.dictionary import Dictionary
from hummock.store.searching.filters import passing
from hummock.store.searching.search import Search
from hummock.store.searching.substrings import SubstringScan
from hummock.store.searching.tokens import with_tokens
from hummock.store.session_reads import SessionReads
from hummock.store.views.residents import ResidentProjects, project_number
from hummock.store.views.view import ProjectView
from hummock.store.writing.unit import doc_of, find_by_text

Read = TypeVar("Read")

_ATTEMPTS = 16
"""Times that a read begins again because a write came between its view and its transaction."""


class StoreReads:
    """The reads of `ports.Store`, each at one moment."""

    def __init__(self, environment: Environment, residents: ResidentProjects) -> None:
        self._environment = environment
        self._tables = environment.tables
        self._residents = residents
        self._dictionary = Dictionary(environment.tables)
        self.sessions = SessionReads(environment)

    def candidates(self, project: str, queries: Sequence[GroupQuery], min_seq: int) -> Gathered:
        """What each query finds, read at one moment."""

        def gathered(view: ProjectView | None) -> Gathered:
            seq = 0 if view is None else view.seq
            if seq < min_seq:
                raise SeqNotReached(min_seq, seq)
            if view is None:
                dim = self._environment.space.dim
                empty = tuple(Candidates.empty(query.name, dim) for query in queries)
                return Gathered(seq=0, content_seq=0, groups=empty)
            with self._environment.reading() as txn:
                reading = ProjectReading(self._environment, txn, view.number)
                found = self._search(reading, view).gather(queries)
                return with_tokens(found, queries, reading.tokens, self._environment.space.token_dim)

        return self._read(project, gathered)

    def standing(self, project: str, query: GroupQuery, memory_id: str) -> Standing | None:
        """Where one memory stands among all that pass the query's filter; see `ports.Store`."""

        def read(view: ProjectView | None) -> Standing | None:
            if view is None:
                return None
            with self._environment.reading() as txn:
                doc = doc_of(txn, self._environment, view.number, memory_id)
                if doc is None:
                    return None
                ordinals = view.columns.ordinals(np.array([doc], np.int64))
                if not len(ordinals):
                    raise Outdated
                reading = ProjectReading(self._environment, txn, view.number)
                return self._search(reading, view).standing(query, int(ordinals[0]))

        return self._read(project, read)

    def load(self, project: str, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """The memories of these numbers, in order; None where one was removed since."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return [None] * len(docs)
            reading = ProjectReading(self._environment, txn, number)
            return [reading.memory(doc, full=full) for doc in docs]

    def beside(self, project: str, docs: Sequence[int], count: int, *, full: bool, most_bytes: int) -> list[Beside]:
        """At most `count` memories on either side of each of these numbers; see `ports.Store`."""

        def read(view: ProjectView | None) -> list[Beside]:
            if view is None:
                return [Beside()] * len(docs)
            with self._environment.reading() as txn:
                reading = ProjectReading(self._environment, txn, view.number)
                surroundings = Surroundings(view, self._dictionary.of(txn, view.number), reading.payload)
                records_of = partial(reading.records, full=full)
                room_bytes = most_bytes - sum(record_bytes(records_of(doc)) for doc in docs)
                neighbours = Reading(partial(reading.present_records, full=full), room_bytes)
                return [neighbours.beside(surroundings.of(doc, count)) for doc in docs]

        return self._read(project, read)

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            seq = 0 if number is None else self._environment.project_record(txn, number).seq
            if seq < min_seq:
                raise SeqNotReached(min_seq, seq)
            if number is None:
                return [None] * len(memory_ids)
            docs = [doc_of(txn, self._environment, number, memory_id) for memory_id in memory_ids]
            reading = ProjectReading(self._environment, txn, number)
            return [None if doc is None else reading.memory(doc, full=full) for doc in docs]

    def find_by_text(self, project: str, keys: Sequence[TextKey]) -> list[str | None]:
        """The ids of the oldest memories that were put with these keys, in order."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return [None] * len(keys)
            return [find_by_text(txn, self._environment, number, key) for key in keys]

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

        def read(view: ProjectView | None) -> Page:
            if view is None or limit <= 0:
                return Page(memories=(), next_after=None)
            with self._environment.reading() as txn:
                allowed = passing(view, where, self._dictionary.of(txn, view.number))
                docs = view.columns.doc.values[np.flatnonzero(allowed)]
                reading = ProjectReading(self._environment, txn, view.number)
                records_of = partial(reading.records, full=True)
                scan = SubstringScan([contains], records_of, MAX_SUBSTRING_BYTES) if contains else None
                found, next_after = page_of(docs, after, limit, newest_first=newest_first, scan=scan)
                memories = all_present([reading.memory(doc, full=full) for doc in found])
            return Page(memories=memories, next_after=next_after)

        return self._read(project, read)

    def memory_events(self, project: str, after: int, *, full: bool) -> EventPage:
        """What happened to memories behind the write `after`; see `ports.Store`."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return EventPage(events=(), seq=0, is_reset=after > 0)
            return events_behind(self._environment, txn, number, after, full=full)

    def kept(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> KeptPage:
        """All memories whole, page by page; see `ports.Store`."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return KeptPage(memories=(), removed_ids=(), next_after=None, seq=0, is_reset=after_seq > 0)
            return kept_behind(self._environment, txn, number, after, after_seq, with_vectors=with_vectors)

    def at_hand(self, project: str) -> Generation | None:
        """A project's newest generation, where a search takes a moment; see `ports.Recallable`."""
        view = self._residents.view_at_hand(project)
        # Where an index is worth its while, a search keeps a core busy beside others; it is better off on a thread.
        if view is None or view.row_doc.size >= view.plans.sign_rows:
            return None
        return Generation(seq=view.seq, content_seq=view.content_seq, settings=view.settings)

    def generation(self, project: str) -> Generation:
        """A project's newest generation; see `ports.Store`."""
        view = self._residents.loaded_view(project)
        if view is not None:
            return Generation(seq=view.seq, content_seq=view.content_seq, settings=view.settings)
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return Generation(seq=0, content_seq=0)
            record = self._environment.project_record(txn, number)
            settings = read_settings(txn, self._tables, number)
            return Generation(seq=record.seq, content_seq=record.content_seq, settings=settings)

    def read_learning(self, project: str, read: Callable[[LearningReader], Read]) -> Read:
        """What is read of a project's learning at one moment."""
        with self._environment.reading() as txn:
            # Numbers begin at 1: nothing is anybody's under 0.
            number = project_number(txn, self._environment, project) or 0
            return read(StoredLearning(txn, self._tables, number))

    def project(self, name: str) -> Project | None:
        """A project, or None."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, name)
            return None if number is None else self._project(txn, number)

    def projects(self, after: str, limit: int) -> list[Project]:
        """At most `limit` projects whose names come behind `after`, in the order of their names' UTF-8 bytes."""
        found: list[Project] = []
        start = keys.project_name_key(after)
        with self._environment.reading() as txn:
            names = scan.entries(txn, self._tables.project, keys.project_name_key(""), start)
            for key, value in names:
                if len(found) >= limit:
                    break
                if key != start:
                    found.append(self._project(txn, keys.unpack_project(value)))
        return found

    def _read(self, project: str, read: Callable[[ProjectView | None], Read]) -> Read:
        """What is read with the project's view and a transaction that began after it.

        A write in between may have removed what the view names, perhaps to put a newer version of it: then it is read
        again with a view that knows of the write.
        """
        for _ in range(_ATTEMPTS):
            try:
                return read(self._residents.view(project))
            except Outdated:
                self._residents.newer_view(project)
        raise Unavailable(f"project {project} is being changed all the time; try again")

    def _search(self, reading: ProjectReading, view: ProjectView) -> Search:
        return Search(
            view,
            self._dictionary.of(reading.txn, view.number),
            reading.key_files,
            partial(reading.records, full=True),
            partial(view.domain_names.get, self._environment, reading.txn, view.number),
        )

    def _project(self, txn: lmdb.Transaction[bytes], number: int) -> Project:
        return codec.project_of(self._environment.project_record(txn, number), self._environment.space.id)
