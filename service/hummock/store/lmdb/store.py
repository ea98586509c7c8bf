"""The store over LMDB: reads of views and tables, and, in the process that may write, the writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeVar

import lmdb
import numpy as np

from hummock.core.candidates import Candidates, Gathered, GroupQuery, Standing
from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import SeqNotReached, Unavailable
from hummock.core.memory import EventPage, Filter, Memory
from hummock.core.project import Project, StoreStatus
from hummock.core.transfer import ExportPage
from hummock.ports.models import Clock
from hummock.ports.store import Generation, LearningReader, Neighbours, Page, Reply, TextKey, WriteRequest, Written
from hummock.store.limits import DEFAULT_LIMITS, MAP_BYTES, MAX_SUBSTRING_BYTES, StoreLimits
from hummock.store.lmdb import keys, record_codec
from hummock.store.lmdb import keys as scan
from hummock.store.lmdb.changes import events_behind, export_behind
from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.group import GroupCommit
from hummock.store.lmdb.idempotency import RequestReads
from hummock.store.lmdb.learning_log import StoredLearning
from hummock.store.lmdb.memories import Outdated, ProjectReading, all_present, page_of
from hummock.store.lmdb.reanalyse import Say, reanalyse
from hummock.store.lmdb.sessions import SessionReads
from hummock.store.lmdb.settings_records import read_settings
from hummock.store.lmdb.unit_of_work import doc_of, find_by_text
from hummock.store.lmdb.writer import Writer
from hummock.store.search.filters import Dictionary, passing
from hummock.store.search.neighbours import Reading, Surroundings, record_bytes
from hummock.store.search.search import Search, with_tokens
from hummock.store.search.substrings import SubstringScan
from hummock.store.views.view import ProjectView
from hummock.store.views.view_cache import FollowingProjects, ResidentProjects, project_number

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

    def neighbours(
        self, project: str, docs: Sequence[int], count: int, *, full: bool, most_bytes: int
    ) -> list[Neighbours]:
        """At most `count` memories on either side of each of these numbers; see `ports.Store`."""

        def read(view: ProjectView | None) -> list[Neighbours]:
            if view is None:
                return [Neighbours()] * len(docs)
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

    def export(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> ExportPage:
        """All memories whole, page by page; see `ports.Store`."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return ExportPage(memories=(), removed_ids=(), next_after=None, seq=0, is_reset=after_seq > 0)
            return export_behind(self._environment, txn, number, after, after_seq, with_vectors=with_vectors)

    def inline_generation(self, project: str) -> Generation | None:
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
        return record_codec.project_of(self._environment.project_record(txn, number), self._environment.space.id)


def open_store(
    directory: Path,
    *,
    space: EmbeddingSpace,
    clock: Clock,
    map_bytes: int = MAP_BYTES,
    quota_bytes: int,
    memory_budget_bytes: int,
    limits: StoreLimits = DEFAULT_LIMITS,
    say: Say = lambda line: None,
) -> EmbeddedStore:
    """A store that is ready for use.

    Args:
        directory: Made when it is not there.
        space: Of all vectors; a directory keeps the first one that it was opened with.
        clock: The time.
        map_bytes: Most that the data file may ever take; address space only, the file grows as it is needed.
        quota_bytes: Most that live data may take.
        memory_budget_bytes: For projects in memory; the one last read may be larger alone.
        limits: The rest.
        say: Takes a line for people where opening takes long: terms of an earlier analyzer are made anew.

    Raises: StartError: the directory is in use, unusable, of another space, or of a newer version or analyzer.
    """
    environment = Environment(directory, space, map_bytes)
    try:
        reanalyse(environment, say)
        residents = ResidentProjects(environment, memory_budget_bytes, limits)
        group = GroupCommit(environment, clock, quota_bytes, limits)
        requests = RequestReads(environment, clock, limits.request_kept_s)
        writer = Writer(group, residents.publish, residents.catch_up_one, limits.group_jobs)
        return EmbeddedStore(environment, residents, writer, requests, group.quota_bytes)
    except BaseException:
        environment.close()
        raise


def open_reads(
    directory: Path,
    *,
    space: EmbeddingSpace,
    map_bytes: int = MAP_BYTES,
    memory_budget_bytes: int,
    limits: StoreLimits = DEFAULT_LIMITS,
) -> ReadOnlyStore:
    """The reads of a store that another process of this machine has open. Every read sees what that one has committed.

    Args:
        directory: Where that store is.
        space: Of all its vectors.
        map_bytes: As that process has it.
        memory_budget_bytes: For projects in memory; the one last read may be larger alone.
        limits: As that process has them.

    Raises: StartError: the directory is unusable, or of another space.
    """
    environment = Environment(directory, space, map_bytes, is_read_only=True)
    return ReadOnlyStore(environment, FollowingProjects(environment, memory_budget_bytes, limits))


class ReadOnlyStore(StoreReads):
    """What `open_reads` makes."""

    def close(self) -> None:
        """Lets go of the directory. Reads must have ended."""
        self._residents.close()
        self._environment.close()


class EmbeddedStore(StoreReads):
    """The embedded implementation of `ports.Store`; `open_store` makes it."""

    def __init__(
        self,
        environment: Environment,
        residents: ResidentProjects,
        writer: Writer,
        requests: RequestReads,
        quota_bytes: int,
    ) -> None:
        super().__init__(environment, residents)
        self._writer = writer
        self._requests = requests
        self._quota_bytes = quota_bytes

    def write(self, project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        """Queues a write; see `ports.Store`."""
        return self._writer.submit(project, request)

    def earlier(
        self, project: str, request_id: str, fingerprint: bytes, reply_type: type[Reply]
    ) -> Written[Reply] | None:
        """What a request was answered before; see `ports.Store`."""
        return self._requests.earlier(project, request_id, fingerprint, reply_type)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Tells of every write from now on; see `ports.Store`."""
        self._writer.follow(follower)

    def status(self) -> StoreStatus:
        """How full the store is."""
        with self._environment.reading() as txn:
            used_bytes = self._environment.used_bytes(txn)
            # Each project has a name and a record.
            project_count = txn.stat(self._tables.project)["entries"] // 2
        loaded_project_count, loaded_bytes = self._residents.usage()
        return StoreStatus(
            directory=str(self._environment.directory),
            used_bytes=used_bytes,
            quota_bytes=self._quota_bytes,
            project_count=project_count,
            loaded_project_count=loaded_project_count,
            loaded_bytes=loaded_bytes,
        )

    def close(self) -> None:
        """Finishes the queued writes and releases the directory. Reads must have ended."""
        self._writer.close()
        self._residents.close()
        self._environment.close()
