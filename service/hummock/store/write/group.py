"""Group commit: one transaction of several writes, in which a failed write does not affect the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from hummock.core.errors import HummockError, InvalidRequest, ProjectNotFound, StorageFull
from hummock.core.project import MAX_PROJECT_BYTES, DeletedProject
from hummock.ports.writes import ProjectRemoval, Reply, WriteRequest, Written
from hummock.store.limits import StoreLimits
from hummock.store.settled_clock import SettledClock
from hummock.store.tables import keys, op_log, record_codec, text_vectors
from hummock.store.tables.engine import Engine, Foreseen, Room, Transaction
from hummock.store.tables.forward_lists import unknown_terms
from hummock.store.tables.lookups import project_number, project_record
from hummock.store.tables.term_dictionary import TermDictionaries
from hummock.store.write import idempotency
from hummock.store.write.project_removal import REQUESTS, first_record, remove_project
from hummock.store.write.unit_of_work import Unit
from hummock.store.write.write_batch import WriteBatch

_TRIMMED = ("ops", "request_age")  # Tables that each write trims, in addition to the retired vectors of all projects.


@dataclass(slots=True, kw_only=True, eq=False)
class _OpenProject:
    """A project in the transaction: its record after the last request, and its operations so far."""

    number: int
    record: record_codec.ProjectRecord
    batch: WriteBatch
    is_new: bool
    operations: int = 0
    is_written_to: bool = False


class GroupTransaction:
    """Applies requests to a transaction. Their memories are pending until `finish` writes them."""

    def __init__(
        self, engine: Engine, txn: Transaction, dictionaries: TermDictionaries, clock: SettledClock, limits: StoreLimits
    ) -> None:
        self._engine = engine
        self._tables = engine.tables
        self._txn = txn
        self._dictionaries = dictionaries
        self._clock = clock
        self._limits = limits
        self._projects: dict[str, _OpenProject] = {}
        self.has_begun = False  # Whether the last request has changed anything in the transaction.
        self.operations = 0  # Number of operations of the last request; 1 for another change, 0 for none.
        self.has_removed = False  # Whether the last request has removed anything.
        self.has_grown = False  # Whether any request needs additional space.
        self.put_bytes = 0  # Approximate size of the stored memories and messages.

    def apply(self, project: str, request: WriteRequest[Reply]) -> Written[Reply]:
        """Apply a request, or find its earlier reply. A failed request leaves no trace in the pending memories."""
        self.has_begun, self.operations, self.has_removed = False, 0, False
        if request.claim is not None:
            self._engine.require_claim(self._txn, request.claim)
        now = self._clock.now()
        opened = self._projects.get(project) or self._open(project, now, creates=request.creates)
        oldest = self._clock.settled() - self._limits.request_kept_s
        earlier = idempotency.earlier(
            self._txn, self._tables, opened.number, request.request_id, request.fingerprint, oldest
        )
        if earlier is not None:
            return idempotency.written(earlier, request.reply_type)
        record = msgspec.structs.replace(opened.record, seq=opened.record.seq + 1, kinds=dict(opened.record.kinds))
        unit = Unit(self._engine, self._txn, opened.number, record, opened.batch, self._begin, now)
        reply = request.apply(unit)
        self._begin()
        unit.finish()
        record.content_seq += unit.has_changed
        if request.request_id:
            kept = record_codec.RequestRecord(request.fingerprint, record.seq, record_codec.encode(reply), now)
            idempotency.remember(self._txn, self._tables, opened.number, request.request_id, kept)
        opened.record, opened.is_written_to = record, True
        opened.operations += unit.operations
        # Settings and what is said of a project change without an operation.
        self.operations, self.has_removed = max(unit.operations, unit.has_changed), unit.has_removed
        # The stored reply to a request that removes nothing needs space as well, and so does a new project.
        self.has_grown |= unit.has_grown or opened.is_new or (bool(request.request_id) and not unit.has_removed)
        self.put_bytes += unit.put_bytes + unit.sessions.put_bytes
        return Written(seq=record.seq, reply=reply)

    def remove(self, project: str, request: ProjectRemoval) -> Written[DeletedProject]:
        """Remove a project with its pending writes, or find the earlier reply. Raises: ProjectNotFound."""
        self.has_begun, self.operations, self.has_removed = False, 0, False
        now = self._clock.now()
        oldest = self._clock.settled() - self._limits.request_kept_s
        earlier = idempotency.earlier(
            self._txn, self._tables, REQUESTS, request.request_id, request.fingerprint, oldest
        )
        if earlier is not None:
            return idempotency.written(earlier, DeletedProject)
        number = project_number(self._txn, self._engine, project)
        if number is None:
            raise ProjectNotFound(project)
        self._begin()
        opened = self._projects.pop(project, None)
        record = project_record(self._txn, self._engine, number) if opened is None else opened.record
        seq, deleted = remove_project(self._engine, self._txn, number, record)
        # Its cached term numbers are no longer valid.
        self._dictionaries.forget(project)
        if request.request_id:
            kept = record_codec.RequestRecord(request.fingerprint, seq, record_codec.encode(deleted), now)
            idempotency.remember(self._txn, self._tables, REQUESTS, request.request_id, kept)
        idempotency.trim(self._txn, self._tables, REQUESTS, oldest, self._limits)
        self._engine.tell(self._txn, project, seq)
        return Written(seq=seq, reply=deleted)

    def finish(self) -> None:
        """Write the pending memories, trim outdated entries, and store the projects' records."""
        now = self._clock.settled()
        oldest = now - self._limits.request_kept_s
        text_vectors.trim(self._txn, self._engine, now, self._limits)
        for name, opened in self._projects.items():
            if not opened.is_written_to:
                continue
            opened.batch.write(opened.record)
            idempotency.trim(self._txn, self._tables, opened.number, oldest, self._limits)
            most = self._limits.trimmed_entries + opened.operations
            op_log.trim(self._txn, self._tables, opened.number, opened.record, self._limits.ops_kept, most)
            self._txn.put(
                keys.project_number_key(opened.number), record_codec.encode(opened.record), db=self._tables.project
            )
            self._engine.tell(self._txn, name, opened.record.seq)

    def _begin(self) -> None:
        self.has_begun = True

    def _open(self, name: str, now: float, *, creates: bool) -> _OpenProject:
        known = project_number(self._txn, self._engine, name)
        if known is not None:
            number, record = known, project_record(self._txn, self._engine, known)
        elif creates:
            number, record = self._create(name, now)
        else:
            raise ProjectNotFound(name)
        batch = WriteBatch(self._engine, self._txn, number, self._dictionaries.of(name, number))
        opened = _OpenProject(number=number, record=record, batch=batch, is_new=known is None)
        self._projects[name] = opened
        return opened

    def _create(self, name: str, now: float) -> tuple[int, record_codec.ProjectRecord]:
        if not name or len(name.encode()) > MAX_PROJECT_BYTES:
            raise InvalidRequest("project", f"has {len(name.encode())} bytes; it must be 1 to {MAX_PROJECT_BYTES}")
        self._begin()
        number = self._engine.next_number(self._txn)
        self._txn.put(keys.project_name_key(name), keys.pack_project(number), db=self._tables.project)
        space = self._engine.space_number
        record = record_codec.ProjectRecord(name=name, create_time=now, active_space=space)
        return number, first_record(self._txn, self._tables, number, record)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A queued write."""

    project: str
    request: WriteRequest[Any] | ProjectRemoval
    future: Future[Written[Any]]
    is_bulk: bool  # Whether interactive jobs go first.

    def apply(self, group: GroupTransaction) -> Outcome:
        """Apply the write to a transaction."""
        if isinstance(self.request, ProjectRemoval):
            written: Written[Any] = group.remove(self.project, self.request)
        else:
            written = group.apply(self.project, self.request)
        return Outcome(job=self, written=written, operations=group.operations, has_removed=group.has_removed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Result of a job, a durable write or an error, before the caller gets it."""

    job: Job
    written: Written[Any] | None = None
    operations: int = 0  # Number of the write's operations; 1 for another change, 0 if it changed no content.
    has_removed: bool = False  # Whether one of them removed something.
    error: BaseException | None = None

    def tell(self) -> None:
        """Complete the caller's future."""
        if self.error is not None:
            self.job.future.set_exception(self.error)
        elif self.written is not None:
            self.job.future.set_result(self.written)


class GroupCommit:
    """Commits jobs together."""

    def __init__(self, engine: Engine, room: Room, clock: SettledClock, limits: StoreLimits) -> None:
        self._engine = engine
        self._room = room
        self._clock = clock
        self._dictionaries = TermDictionaries(limits.dictionary_bytes)
        self._limits = limits

    def commit(self, jobs: Sequence[Job], is_awaited: Callable[[], bool] = lambda: False) -> list[Outcome]:
        """Apply as many of the jobs as fit one transaction, at least one, and make them durable.

        With `is_awaited` true an interactive write waits: the transaction ends after the current bulk write.

        Returns outcomes of the first jobs, in order. If the commit itself runs out of space, each job is tried alone:
        only jobs that need space fail. Raises: One of the engine's fatal failures: it must be opened again.
        """
        try:
            return self._commit(jobs, is_awaited)
        except self._engine.fatal:
            raise
        except HummockError as error:
            # The data file was replaced or cut: no write is accepted.
            return [Outcome(job=job, error=error) for job in jobs]
        except self._engine.failures as error:
            self._dictionaries.clear()
            failure = self._room.failure_of(error)
            if not isinstance(failure, StorageFull):
                return [Outcome(job=job, error=failure) for job in jobs]
            if len(jobs) == 1:
                return [Outcome(job=jobs[0], error=failure)]
            return [outcome for job in jobs for outcome in self.commit([job], is_awaited)]

    def _commit(self, jobs: Sequence[Job], is_awaited: Callable[[], bool]) -> list[Outcome]:
        """Commit without nested transactions first: they copy every page they touch, and are rarely needed."""
        projects = sorted({job.project for job in jobs})
        try:
            with self._engine.writing(projects=projects, foreseen=self._foreseen(jobs)) as txn:
                return self._together(txn, jobs, is_awaited)
        except _Spoilt as spoilt:
            self._dictionaries.clear()
            if len(jobs) == 1:
                return [self._failed(jobs[0], spoilt.error)]
        with self._engine.writing(projects=projects, foreseen=self._foreseen(jobs)) as txn:
            return self._apart(txn, jobs, is_awaited)

    def _together(self, txn: Transaction, jobs: Sequence[Job], is_awaited: Callable[[], bool]) -> list[Outcome]:
        """Run the jobs in the group's own transaction. Raises: _Spoilt: a failed job has written to it."""
        group = self._group(txn)
        outcomes: list[Outcome] = []
        for job in jobs:
            try:
                outcome = job.apply(group)
            except Exception as error:
                # After a failed statement the transaction accepts no more.
                if group.has_begun or isinstance(error, self._engine.failures):
                    raise _Spoilt(error) from error
                outcomes.append(self._failed(job, error))
            else:
                outcomes.append(outcome)
            if group.put_bytes > self._most_bytes(job) or (job.is_bulk and is_awaited()):
                break
        try:
            self._finish(group, txn)
        except Exception as error:
            raise _Spoilt(error) from error
        return outcomes

    def _apart(self, txn: Transaction, jobs: Sequence[Job], is_awaited: Callable[[], bool]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        put_bytes = 0
        for job in jobs:
            known = self._dictionaries.size_of(job.project)
            try:
                with self._engine.writing(txn) as nested:
                    group = self._group(nested)
                    outcome = job.apply(group)
                    self._finish(group, nested)
            except Exception as error:
                # The term numbers assigned by an undone write will be assigned to other terms.
                if self._dictionaries.size_of(job.project) != known:
                    self._dictionaries.forget(job.project)
                outcomes.append(self._failed(job, error))
            else:
                put_bytes += group.put_bytes
                outcomes.append(outcome)
            if put_bytes > self._most_bytes(job) or (job.is_bulk and is_awaited()):
                break
        return outcomes

    def _foreseen(self, jobs: Sequence[Job]) -> dict[str, Foreseen]:
        """Likely reads by project, for engines with a round trip for each: a guess, without effect."""
        requests: dict[str, list[WriteRequest[Any]]] = {}
        for job in jobs:
            if isinstance(job.request, WriteRequest):
                requests.setdefault(job.project, []).append(job.request)
        return {
            project: partial(_likely_reads, project, some, self._dictionaries, is_first=not place)
            for place, (project, some) in enumerate(requests.items())
        }

    def _most_bytes(self, job: Job) -> int:
        """Size at which the transaction ends after this job, so that interactive jobs need not wait long."""
        return self._limits.bulk_group_bytes if job.is_bulk else self._limits.group_bytes

    def _group(self, txn: Transaction) -> GroupTransaction:
        return GroupTransaction(self._engine, txn, self._dictionaries, self._clock, self._limits)

    def _finish(self, group: GroupTransaction, txn: Transaction) -> None:
        """Write the group's pending data. Raises: StorageFull: it exceeds the quota; never for removals alone."""
        group.finish()
        if group.has_grown:
            self._room.require(txn)
        self._dictionaries.keep_within_budget()

    def _failed(self, job: Job, error: Exception) -> Outcome:
        return Outcome(
            job=job, error=self._room.failure_of(error) if isinstance(error, self._engine.failures) else error
        )


class _Spoilt(Exception):
    """A job failed whose changes can only be undone together with those of the whole group."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _likely_reads(
    project: str, requests: Sequence[WriteRequest[Any]], dictionaries: TermDictionaries, number: int, *, is_first: bool
) -> tuple[Mapping[str, Sequence[bytes]], Mapping[str, Sequence[bytes]]]:
    lookups = [one.lookups for one in requests if one.lookups is not None]
    terms = [each for one in lookups for each in one.terms()]
    prefix = keys.project_prefix(number)
    wanted = {
        "settings": [prefix],
        "request": keys.name_keys(number, [one.request_id for one in requests if one.request_id]),
        "by_id": _distinct(keys.name_keys(number, list(chain.from_iterable(one.ids for one in lookups)))),
        "session": _distinct(keys.name_keys(number, list(chain.from_iterable(one.session_ids for one in lookups)))),
        "term": _distinct(keys.name_keys(number, unknown_terms(terms, dictionaries.of(project, number)))),
    }
    texts = [
        keys.text_prefix(number, text)
        for one in lookups
        for key in one.texts
        for text in (keys.text_bytes(key), *keys.earlier_text_bytes(key))
    ]
    starts = {"by_text": _distinct(texts), **{name: [prefix] for name in _TRIMMED}}
    if is_first:
        starts["retired_age"] = [b""]
    return wanted, {name: some for name, some in starts.items() if some}


def _distinct(several: Sequence[bytes]) -> list[bytes]:
    return list(dict.fromkeys(several))
