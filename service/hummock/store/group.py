"""One transaction of several writes, of which one that fails leaves its neighbours alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import lmdb
import msgspec

from hummock.core.errors import InvalidRequest, StorageFull
from hummock.ports import Clock, WriteRequest, Written
from hummock.store import codec, keys, operations, requests
from hummock.store.environment import Environment, is_full
from hummock.store.errors import DiskFull, MapFull
from hummock.store.limits import MAX_PROJECT_BYTES, StoreLimits
from hummock.store.unit import Unit, Writing
from hummock.store.vocabulary import Vocabularies

_NEXT_PROJECT_KEY = b"next_project"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A write that waits for its turn."""

    project: str
    request: WriteRequest[Any]
    future: Future[Written[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What became of a job: a durable write, or what went wrong. Nothing has been told to its caller.

    `used_bytes` is what the store took after a job that put something; 0 after others.
    """

    job: Job
    written: Written[Any] | None = None
    error: BaseException | None = None
    used_bytes: int = 0

    def tell(self) -> None:
        """Completes the caller's future."""
        if self.error is not None:
            self.job.future.set_exception(self.error)
        elif self.written is not None:
            self.job.future.set_result(self.written)


class GroupCommit:
    """Commits jobs together."""

    def __init__(self, environment: Environment, clock: Clock, quota_bytes: int, limits: StoreLimits) -> None:
        self._environment = environment
        self._clock = clock
        self._vocabularies = Vocabularies(limits.vocabulary_bytes)
        self._limits = limits
        # Even a removal needs pages before it frees some.
        most = int(environment.map_bytes * (1 - limits.map_reserve_share))
        self.quota_bytes = min(quota_bytes, most)
        self._over_quota = StorageFull if quota_bytes <= most else MapFull

    def commit(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Applies as many of the jobs as one transaction takes, at least one, and makes them durable.

        Returns:
            Outcomes of the first jobs, in order. Where the commit itself finds no room, each job is tried alone, so
            that only those that need room fail.

        Raises: lmdb.PanicError: LMDB gave up; it takes nothing any more until it is opened again.
        """
        try:
            return self._commit(jobs)
        except lmdb.PanicError:
            raise
        except lmdb.Error as error:
            self._vocabularies.clear()
            if not is_full(error):
                return [Outcome(job=job, error=error) for job in jobs]
            if len(jobs) == 1:
                return [Outcome(job=jobs[0], error=self._full(error))]
            return [outcome for job in jobs for outcome in self.commit([job])]

    def _commit(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Tries without nested transactions first: they copy every page that they touch, and are seldom needed."""
        try:
            with self._environment.writing() as txn:
                return self._outcomes(txn, jobs, self._attempt_plainly)
        except _Spoilt as spoilt:
            self._vocabularies.clear()
            if len(jobs) == 1:
                return [self._failed(jobs[0], spoilt.error)]
        with self._environment.writing() as txn:
            return self._outcomes(txn, jobs, self._attempt)

    def _outcomes(
        self,
        txn: lmdb.Transaction[bytes],
        jobs: Sequence[Job],
        attempt: Callable[[lmdb.Transaction[bytes], Job], Outcome],
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        start = self._environment.used_bytes(txn)
        for job in jobs:
            outcomes.append(attempt(txn, job))
            if outcomes[-1].used_bytes - start > self._limits.group_bytes:
                break
        self._vocabularies.keep_within_budget()
        return outcomes

    def _attempt_plainly(self, txn: lmdb.Transaction[bytes], job: Job) -> Outcome:
        """In the group's own transaction. Raises: _Spoilt when the job fails and has written something."""
        written = Writing()
        try:
            return self._apply(txn, job, written)
        except Exception as error:
            if written.has_begun:
                raise _Spoilt(error) from error
            return self._failed(job, error)

    def _attempt(self, txn: lmdb.Transaction[bytes], job: Job) -> Outcome:
        known = len(self._vocabularies.of(job.project))
        try:
            with self._environment.writing(txn) as nested:
                return self._apply(nested, job, Writing())
        except Exception as error:
            self._forget_since(job.project, known)
            return self._failed(job, error)

    def _failed(self, job: Job, error: Exception) -> Outcome:
        return Outcome(job=job, error=self._full(error) if isinstance(error, lmdb.Error) and is_full(error) else error)

    def _forget_since(self, project: str, known: int) -> None:
        """Numbers that an undone write gave to terms are given again, to others."""
        if len(self._vocabularies.of(project)) != known:
            self._vocabularies.forget(project)

    def _apply(self, txn: lmdb.Transaction[bytes], job: Job, writing: Writing) -> Outcome:
        tables = self._environment.tables
        now = self._clock.now()
        number, record = self._project(txn, job.project, now, writing)
        request = job.request
        oldest = now - self._limits.request_kept_s
        earlier = requests.earlier(txn, tables, number, request.request_id, request.fingerprint, oldest)
        if earlier is not None:
            reply = msgspec.msgpack.decode(earlier.reply, type=request.reply_type)
            return Outcome(job=job, written=Written(seq=earlier.seq, reply=reply))
        record.seq += 1
        unit = Unit(self._environment, txn, number, record, self._vocabularies.of(job.project), writing, now)
        reply = request.apply(unit)
        writing.has_begun = True
        unit.finish()
        record.content_seq += unit.has_changed
        if request.request_id:
            kept = codec.RequestRecord(request.fingerprint, record.seq, codec.encode(reply), now)
            requests.remember(txn, tables, number, request.request_id, kept)
        requests.trim(txn, tables, number, oldest, self._limits)
        most = self._limits.trimmed_entries + unit.operations
        operations.trim(txn, tables, number, record, self._limits.ops_kept, most)
        txn.put(keys.project_number_key(number), codec.encode(record), db=tables.project)
        used = self._require_room(txn) if unit.has_grown else 0
        return Outcome(job=job, written=Written(seq=record.seq, reply=reply), used_bytes=used)

    def _project(
        self, txn: lmdb.Transaction[bytes], name: str, now: float, writing: Writing
    ) -> tuple[int, codec.ProjectRecord]:
        """The project's number and record; a new one is made."""
        tables = self._environment.tables
        known = txn.get(keys.project_name_key(name), db=tables.project)
        if known is not None:
            number = keys.unpack_project(known)
            return number, self._environment.project_record(txn, number)
        if not name or len(name.encode()) > MAX_PROJECT_BYTES:
            raise InvalidRequest("project", f"has {len(name.encode())} bytes; it must be 1 to {MAX_PROJECT_BYTES}")
        writing.has_begun = True
        number = int.from_bytes(txn.get(_NEXT_PROJECT_KEY, b"\x01", db=tables.meta), "big")
        txn.put(_NEXT_PROJECT_KEY, keys.pack_project(number + 1), db=tables.meta)
        txn.put(keys.project_name_key(name), keys.pack_project(number), db=tables.project)
        space = self._environment.space_number
        return number, codec.ProjectRecord(name=name, create_time=now, active_space=space)

    def _require_room(self, txn: lmdb.Transaction[bytes]) -> int:
        """What the store takes now. Refuses what would fill it; removals never come here."""
        used = self._environment.used_bytes(txn)
        if used > self.quota_bytes:
            raise self._over_quota(used, self.quota_bytes)
        free = self._environment.free_disk_bytes()
        if free < self._limits.disk_reserve_bytes:
            raise DiskFull(f"{free} bytes are free", used, self.quota_bytes)
        return used

    def _full(self, cause: lmdb.Error) -> StorageFull:
        with self._environment.reading() as txn:
            used = self._environment.used_bytes(txn)
        is_map = isinstance(cause, lmdb.MapFullError)
        error = MapFull(used, self.quota_bytes) if is_map else DiskFull(str(cause), used, self.quota_bytes)
        error.__cause__ = cause
        return error


class _Spoilt(Exception):
    """A job failed whose changes can only be undone with those of its neighbours."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
