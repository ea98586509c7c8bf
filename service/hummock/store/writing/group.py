"""One transaction of several writes, of which one that fails leaves its neighbours alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import lmdb

from hummock.core.errors import StorageFull
from hummock.ports import Clock, WriteRequest, Written
from hummock.store.environment import Environment, is_full
from hummock.store.errors import DiskFull, MapFull
from hummock.store.limits import StoreLimits
from hummock.store.records.vocabulary import Vocabularies
from hummock.store.writing.ledger import Ledger
from hummock.store.writing.unit import Writing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A write that waits for its turn."""

    project: str
    request: WriteRequest[Any]
    future: Future[Written[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What became of a job: a durable write, or what went wrong. Nothing has been told to its caller.

    `operations` says how many the write noted.
    """

    job: Job
    written: Written[Any] | None = None
    operations: int = 0
    error: BaseException | None = None

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
                return self._together(txn, jobs)
        except _Spoilt as spoilt:
            self._vocabularies.clear()
            if len(jobs) == 1:
                return [self._failed(jobs[0], spoilt.error)]
        with self._environment.writing() as txn:
            return self._apart(txn, jobs)

    def _together(self, txn: lmdb.Transaction[bytes], jobs: Sequence[Job]) -> list[Outcome]:
        """In the group's own transaction. Raises: _Spoilt: something was written that cannot stay."""
        ledger = self._ledger(txn)
        outcomes: list[Outcome] = []
        for job in jobs:
            writing = Writing()
            try:
                written = ledger.apply(job.project, job.request, writing)
            except Exception as error:
                if writing.has_begun:
                    raise _Spoilt(error) from error
                outcomes.append(self._failed(job, error))
            else:
                outcomes.append(Outcome(job=job, written=written, operations=writing.operations))
            if ledger.put_bytes > self._limits.group_bytes:
                break
        try:
            self._finish(ledger, txn)
        except Exception as error:
            raise _Spoilt(error) from error
        return outcomes

    def _apart(self, txn: lmdb.Transaction[bytes], jobs: Sequence[Job]) -> list[Outcome]:
        """Each in a transaction of its own inside the group's."""
        outcomes: list[Outcome] = []
        put_bytes = 0
        for job in jobs:
            known = len(self._vocabularies.of(job.project))
            writing = Writing()
            try:
                with self._environment.writing(txn) as nested:
                    ledger = self._ledger(nested)
                    written = ledger.apply(job.project, job.request, writing)
                    self._finish(ledger, nested)
            except Exception as error:
                self._forget_since(job.project, known)
                outcomes.append(self._failed(job, error))
            else:
                put_bytes += ledger.put_bytes
                outcomes.append(Outcome(job=job, written=written, operations=writing.operations))
            if put_bytes > self._limits.group_bytes:
                break
        return outcomes

    def _ledger(self, txn: lmdb.Transaction[bytes]) -> Ledger:
        return Ledger(self._environment, txn, self._vocabularies, self._clock, self._limits)

    def _finish(self, ledger: Ledger, txn: lmdb.Transaction[bytes]) -> None:
        """Writes what the ledger holds. Raises: StorageFull: it would fill the store; removals are never too much."""
        ledger.finish()
        if ledger.has_grown:
            self._require_room(txn)
        self._vocabularies.keep_within_budget()

    def _require_room(self, txn: lmdb.Transaction[bytes]) -> None:
        used = self._environment.used_bytes(txn)
        if used > self.quota_bytes:
            raise self._over_quota(used, self.quota_bytes)
        free = self._environment.free_disk_bytes()
        if free < self._limits.disk_reserve_bytes:
            raise DiskFull(f"{free} bytes are free", used, self.quota_bytes)

    def _failed(self, job: Job, error: Exception) -> Outcome:
        return Outcome(job=job, error=self._full(error) if isinstance(error, lmdb.Error) and is_full(error) else error)

    def _forget_since(self, project: str, known: int) -> None:
        """Numbers that an undone write gave to terms are given again, to others."""
        if len(self._vocabularies.of(project)) != known:
            self._vocabularies.forget(project)

    def _full(self, cause: lmdb.Error) -> StorageFull:
        with self._environment.reading() as txn:
            used = self._environment.used_bytes(txn)
        is_map = isinstance(cause, lmdb.MapFullError)
        error = MapFull(used, self.quota_bytes) if is_map else DiskFull(str(cause), used, self.quota_bytes)
        error.__cause__ = cause
        return error


class _Spoilt(Exception):
    """Something failed whose changes can only be undone with those of all jobs of the group."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
