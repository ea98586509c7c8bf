"""Space for writes, and periodic checks of the disk, the files and the readers of an open store."""

from __future__ import annotations

import logging
import os

import lmdb

from hummock.core.errors import HummockError, StorageFull
from hummock.ports.models import Clock
from hummock.store.errors import DiskReserveReached, MapFull
from hummock.store.limits import StoreLimits
from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.files import fault_of
from hummock.store.tables.engine import Transaction

READERS_S = 10.0  # Seconds between two checks of LMDB's reader table.

HELD_S = 60.0
"""Warn about readers older than this, in seconds: they keep LMDB from reusing pages freed since they began."""

_log = logging.getLogger(__name__)


class DiskRoom:
    """The `Room` of an environment."""

    def __init__(self, environment: Environment, quota_bytes: int, limits: StoreLimits) -> None:
        self._environment = environment
        self._limits = limits
        # Even a removal needs pages before it frees some.
        most = int(environment.map_bytes * (1 - limits.map_reserve_share))
        self.quota_bytes = min(quota_bytes, most)
        self._is_map_the_limit = quota_bytes > most
        self.fault: HummockError | None = None

    def require(self, txn: Transaction) -> None:
        """Check that the transaction's data fit. Raises: StorageFull, or a fault of the disk."""
        used = self._environment.used_bytes(txn)
        if used > self.quota_bytes:
            raise self._map_full(used) if self._is_map_the_limit else StorageFull(used, self.quota_bytes)
        try:
            self._require_disk(used)
        except HummockError as error:
            self.fault = error
            raise

    def failure_of(self, error: Exception) -> Exception:
        """The error for callers if the map or the disk is at fault; otherwise the error itself."""
        with self._environment.reading() as txn:
            used = self._environment.used_bytes(txn)
        failure: HummockError | None
        if isinstance(error, lmdb.MapFullError):
            failure = self._map_full(used)
        else:
            failure = self.fault = fault_of(error, self._environment.directory, self._free_bytes(), used)
        if failure is None:
            return error
        failure.__cause__ = error
        return failure

    def probe(self) -> None:
        """After a fault, test with a write that changes nothing whether the disk accepts writes again."""
        if self.fault is None:
            return
        try:
            with self._environment.writing() as txn:
                self._environment.touch(txn)
                self._require_disk(self._environment.used_bytes(txn))
        except lmdb.PanicError:
            raise
        except (HummockError, lmdb.Error, OSError):
            return
        self.fault = None

    def _require_disk(self, used: int) -> None:
        try:
            free = self._environment.free_disk_bytes()
        except OSError as error:
            raise fault_of(error, self._environment.directory, 0, used) or error from error
        if free < self._limits.disk_reserve_bytes:
            raise DiskReserveReached(free, self._limits.disk_reserve_bytes, used)

    def _map_full(self, used: int) -> MapFull:
        return MapFull(used, self.quota_bytes, self._environment.map_bytes - self.quota_bytes)

    def _free_bytes(self) -> int:
        try:
            return self._environment.free_disk_bytes()
        except OSError:
            return 0


class Upkeep:
    """Periodic checks, run by the writer only; the properties may be read from any thread."""

    def __init__(self, environment: Environment, room: DiskRoom, clock: Clock) -> None:
        self._environment = environment
        self._room = room
        self._clock = clock
        self._file_fault: HummockError | None = None
        self._looked_s = clock.monotonic()
        self._held: tuple[int, int] | None = None
        self._held_since_s = self._looked_s

    @property
    def trouble(self) -> str:
        trouble = self._file_fault or self._environment.damage.of_database
        return "" if trouble is None else str(trouble)

    @property
    def write_fault(self) -> str:
        fault = self._file_fault or self._room.fault
        return "" if fault is None else str(fault)

    def look(self) -> None:
        """Check files and disk, and every READERS_S the reader table."""
        self._look_at_files()
        if self._file_fault is None:
            self._room.probe()
        now_s = self._clock.monotonic()
        if now_s - self._looked_s >= READERS_S:
            self._looked_s = now_s
            try:
                self._look_at_readers(now_s)
            except lmdb.Error as error:
                # No stored data depend on it, and the next check tries again.
                _log.warning("LMDB's table of readers could not be read: %s", error)

    def _look_at_files(self) -> None:
        found: HummockError | None = None
        try:
            self._environment.require_files()
        except HummockError as error:
            found = error
        if found is not None and self._file_fault is None:
            _log.critical("nothing is written any more: %s", found)
        if found is None and self._file_fault is not None:
            _log.warning("the data directory is as it was; writes are stored again")
        self._file_fault = found

    def _look_at_readers(self, now_s: float) -> None:
        cleared = self._environment.clear_dead_readers()
        if cleared:
            _log.warning("%d readers of the database had died without a word; what they held is free", cleared)
        oldest = self._environment.oldest_reader()
        if oldest is None or oldest != self._held:
            self._held, self._held_since_s = oldest, now_s
        elif now_s - self._held_since_s >= HELD_S:
            pid, transaction = oldest
            _log.warning(
                "process %d%s has read from the database for %.0f s and %d writes; the file grows until it ends",
                pid,
                " (this service)" if pid == os.getpid() else "",
                now_s - self._held_since_s,
                self._environment.last_commit() - transaction,
            )
            self._held_since_s = now_s
