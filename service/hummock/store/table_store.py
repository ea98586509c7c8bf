"""Stores over an engine of tables, read from views where they are loaded: one with the writer, and one without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.errors import SeqNotReached, Unavailable
from hummock.core.memory import EventPage, Filter, Memory
from hummock.core.project import GraphReport, Project, StoreStatus
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.core.threads import Cores, usable_cores
from hummock.core.transfer import ExportPage
from hummock.ports.learning import LearningReader
from hummock.ports.store import Generation, LookedUp, Outdated, Page, Snapshot
from hummock.ports.writes import Claims, Reply, TextKey, Written
from hummock.store.errors import DamageMet, MemoryDamaged, ProjectGone
from hummock.store.settled_clock import SettledClock
from hummock.store.snapshot import TableSnapshot
from hummock.store.tables import keys, record_codec, text_vectors
from hummock.store.tables.engine import Engine, Health, Room
from hummock.store.tables.keys import NO_PROJECT
from hummock.store.tables.learning_log import StoredLearning
from hummock.store.tables.lookups import doc_of, expired, find_by_text, project_number, project_record
from hummock.store.tables.op_log import events_behind, export_behind
from hummock.store.tables.reads import TableProject, TableProjects
from hummock.store.tables.review import ReviewReads
from hummock.store.tables.sessions import SessionReads
from hummock.store.views.view_cache import ViewCache
from hummock.store.write import idempotency
from hummock.store.write.spaces import SpaceBeside, drop_left_spaces
from hummock.store.write.writer import Writer

_ALL = Filter()
_NO_PAGE = Page(memories=(), next_after=None)

Read = TypeVar("Read")

_ATTEMPTS = 16  # Attempts of a read that writes between its view and its transaction make outdated.
_TOLERANT = 2  # Attempts after which removed memories are left out of the result instead of causing another attempt.


class StoreReads:
    """The reads of `ports.Store`, each consistent at one moment; alone, of a store that another process writes."""

    def __init__(self, engine: Engine, projects: TableProjects, views: ViewCache) -> None:
        self._engine = engine
        self._tables = engine.tables
        self._projects = projects
        self.views = views
        self._cores = Cores(usable_cores(), "hummock-search")
        self.sessions = SessionReads(engine)
        self.review = ReviewReads(engine)

    def load(self, project: str, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        number = self.views.number_of(project)
        if number is None:
            return [None] * len(docs)
        try:
            # Cached memories are valid as long as no later write exists.
            with self._projects.looking(number, self._projects.seq(number)) as stored:
                stored.prefetch(docs, full=full, keep=True)
                return [self._sound(project, stored, doc, full=full) for doc in docs]
        except ProjectGone:
            self.views.forget(project)
            return [None] * len(docs)

    def _sound(self, project: str, stored: TableProject, doc: int, *, full: bool) -> Memory | None:
        """The memory, or None if it is missing or damaged; the project's next view leaves a damaged one out."""
        try:
            return stored.memory(doc, full=full)
        except MemoryDamaged:
            self.views.forget(project)
            return None

    def get(self, project: str, memory_ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        def read(stored: TableProject) -> list[Memory | None]:
            # Checked before the memories are read, which may be from later writes.
            _require_seq(min_seq, stored.record().seq if min_seq else 0)
            return stored.named(memory_ids, full=full)

        def look(stored: TableProject) -> list[Memory | None]:
            found = read(stored)
            for memory_id, memory in zip(memory_ids, found, strict=True):
                if memory is None and doc_of(stored.txn, self._tables, stored.number, memory_id) is not None:
                    raise Outdated
            return found

        try:
            found = self._projects.look(project, look)
        except Outdated:  # one expired, or was rewritten between the reads of its number and of its record
            with self._projects.reading_by_name(project) as stored:
                found = None if stored is None else read(stored)
        if found is None:
            _require_seq(min_seq, 0)
            return [None] * len(memory_ids)
        return found

    def superseded_by(self, project: str, memory_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        record = self._projects.look(project, TableProject.record)
        if record is None or not record.has_superseding:
            return {}

        return self.read(project, lambda snapshot: snapshot.superseded_by(memory_ids))

    def look_up(self, project: str, memory_ids: Sequence[str], keys: Sequence[TextKey]) -> LookedUp:
        def look(stored: TableProject) -> LookedUp:
            memories = stored.named(memory_ids, full=False) if memory_ids else []
            holders = [find_by_text(stored.txn, self._tables, stored.number, key) for key in keys]
            return LookedUp(stored.settings(), memories, holders)

        nothing = LookedUp(NO_SETTINGS, [None] * len(memory_ids), [None] * len(keys))
        return self._projects.look(project, look) or nothing

    def pending(self, project: str, limit: int) -> list[int]:
        with self._projects.reading_by_name(project) as stored:
            if stored is None:
                return []
            waiting = keys.entries(stored.txn, self._tables.pending, keys.project_prefix(stored.number))
            docs = (keys.doc_of_doc_key(key) for key, _ in waiting)
            if stored.record().has_expiring:
                docs = (doc for doc in docs if self._sound(project, stored, doc, full=False) is not None)
            return list(islice(docs, limit))

    def vectors(self, digests: Sequence[bytes]) -> list[Embedding | None]:
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
        if limit <= 0:
            return _NO_PAGE
        if where == _ALL and not contains:
            return self._page_of_all(project, after, limit, full=full, newest_first=newest_first)
        return self.read(
            project,
            lambda snapshot: snapshot.page(
                where, after, limit, full=full, newest_first=newest_first, contains=contains
            ),
        )

    def _page_of_all(self, project: str, after: int, limit: int, *, full: bool, newest_first: bool) -> Page:
        """A page read from the tables, so that the first page of a large project need not wait for its view."""
        with self._projects.reading_by_name(project) as stored:
            behind = () if stored is None else stored.memories_behind(after, full=full, newest_first=newest_first)
            found = list(islice(behind, limit + 1))
        return Page(
            memories=tuple(memory for _, memory in found[:limit]),
            next_after=found[limit - 1][0] if len(found) > limit else None,
        )

    def memory_events(self, project: str, after: int, *, full: bool) -> EventPage:
        with self._projects.reading_by_name(project) as stored:
            if stored is None:
                return EventPage(events=(), seq=0, is_reset=after > 0)
            now = self._projects.now()
            return events_behind(self._engine, stored.txn, stored.number, after, now, full=full)

    def export(self, project: str, after: int, after_seq: int, *, with_vectors: bool) -> ExportPage:
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

    def generation(self, project: str) -> Generation:
        view = self.views.loaded_view(project)
        if view is None:
            # The settings may be newer than the record; they are part of the cache key, so no answer is outdated.
            found = self._projects.look(project, lambda stored: (stored.settings(), stored.record()))
            if found is None:
                return Generation(seq=0, content_seq=0)
            settings, record = found
            if not record.has_expiring:
                return Generation(seq=record.seq, content_seq=record.content_seq, settings=settings)
            view = self.views.view(project)
        if view is None:
            return Generation(seq=0, content_seq=0)
        now = view.at(self._projects.now())
        return Generation(seq=now.seq, content_seq=now.content_seq, settings=now.settings, expired_at=now.expired_at)

    def settings(self, project: str) -> ProjectSettings:
        return self._projects.look(project, TableProject.settings) or NO_SETTINGS

    def read_learning(self, project: str, read: Callable[[LearningReader], Read]) -> Read:
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project) or NO_PROJECT
            return read(StoredLearning(txn, self._tables, self._engine.damage, number))

    def project(self, name: str) -> Project | None:
        record = self._projects.look(name, TableProject.record)
        return None if record is None else self._project(record)

    def graph(self, project: str) -> GraphReport | None:
        view = self.views.view_at_hand(project)
        return None if view is None or view.graph is None else view.graph.report

    def projects(self, after: str, limit: int) -> list[Project]:
        found: list[Project] = []
        start = keys.project_name_key(after)
        with self._engine.answering() as txn:
            for key, value in keys.entries(txn, self._tables.project, keys.project_name_key(""), start):
                if len(found) >= limit:
                    break
                if key != start:
                    found.append(self._project(project_record(txn, self._engine, keys.unpack_project(value))))
        return found

    def read(
        self, project: str, work: Callable[[Snapshot], Read], *, min_seq: int = 0, allow_stale: bool = False
    ) -> Read:
        for attempt in range(_ATTEMPTS):
            view = (self.views.view(project) or self.views.empty).at(self._projects.now())
            is_last = attempt >= _TOLERANT
            try:
                with TableSnapshot(view, self._projects, self._engine, self._cores, is_last=is_last) as snapshot:
                    snapshot.require(min_seq)
                    return work(snapshot)
            except DamageMet:
                self.views.forget(project)
            except Outdated:
                self.views.newer_view(project)
        raise Unavailable(f"project {project} is being changed all the time; try again")

    def read_at_once(self, project: str, work: Callable[[Snapshot], Read | None]) -> Read | None:
        view = self.views.view_at_hand(project)
        # A project large enough for sign bits keeps a core busy; its search belongs on a worker thread.
        if view is None or view.row_doc.size >= view.plans.sign_rows:
            return None
        try:
            timely = view.at(self._projects.now())
            with TableSnapshot(timely, self._projects, self._engine, self._cores) as snapshot:
                return work(snapshot)
        except Outdated:
            return None

    def close(self) -> None:
        self._cores.close()
        self.views.close()
        self._engine.close()

    def _project(self, record: record_codec.ProjectRecord) -> Project:
        return record_codec.project_of(record, self._engine.space.id)


class WritableStore(StoreReads):
    """The implementation of `ports.Store`; created by the `opening` module of each engine."""

    def __init__(
        self,
        engine: Engine,
        projects: TableProjects,
        views: ViewCache,
        writer: Writer,
        request_kept_s: float,
        room: Room,
        health: Health,
        claims: Claims,
        clock: SettledClock,
    ) -> None:
        super().__init__(engine, projects, views)
        self.claims = claims
        self._clock = clock
        self._health = health
        self._writer = writer
        # Writes and removals are queued, and the clock is asked, without a step between; see `ports.Store`.
        self.write = self.remove_project = writer.submit
        self.settled_now = clock.settled
        self._request_kept_s = request_kept_s
        self._room = room

    def earlier(
        self, project: str, request_id: str, fingerprint: bytes, reply_type: type[Reply]
    ) -> Written[Reply] | None:
        oldest = self._clock.settled() - self._request_kept_s
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return None
            record = idempotency.earlier(txn, self._tables, number, request_id, fingerprint, oldest)
        return None if record is None else idempotency.written(record, reply_type)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        self._writer.follow(follower)

    def expired(self, limit: int) -> list[tuple[str, str]]:
        return expired(self._engine, self._clock.settled(), limit)

    def space_beside(self, space: EmbeddingSpace) -> SpaceBeside:
        """Vectors of another space beside those in use, of which a later start can make use (`write/spaces.py`)."""
        return SpaceBeside(self._engine, self._room, space)

    def drop_left_spaces(self) -> None:
        """Remove the vectors of spaces that were left some time ago, or are not wanted any more."""
        drop_left_spaces(self._engine, self._clock.settled())

    def status(self) -> StoreStatus:
        with self._engine.answering() as txn:
            used_bytes = self._engine.used_bytes(txn)
            # Each project has a name and a record.
            project_count = self._engine.count(txn, self._tables.project) // 2
            pending_count = self._engine.pending_count(txn)
        loaded_project_count, loaded_bytes = self.views.usage()
        return StoreStatus(
            directory=self._engine.place,
            used_bytes=used_bytes,
            quota_bytes=self._room.quota_bytes,
            project_count=project_count,
            loaded_project_count=loaded_project_count,
            loaded_bytes=loaded_bytes,
            pending_count=pending_count,
            damaged_count=self._engine.damage.count,
            write_fault=self._writer.stopped or self._health.write_fault,
            clock_ahead_s=self._clock.ahead_s(),
        )

    def trouble(self) -> str:
        return self._writer.stopped or self._health.trouble

    def close(self) -> None:
        """Finish the queued writes and release the directory. Reads must have ended."""
        self._writer.close()
        self.claims.close()
        super().close()


def _require_seq(min_seq: int, seq: int) -> None:
    if seq < min_seq:
        raise SeqNotReached(min_seq, seq)
