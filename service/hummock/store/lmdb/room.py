"""Free space of the map and the disk, and the errors when there is none."""

from __future__ import annotations

import lmdb

from hummock.core.errors import HummockError, StorageFull
from hummock.store.errors import DiskReserveReached, MapFull
from hummock.store.limits import StoreLimits
from hummock.store.lmdb.disk_faults import fault_of
from hummock.store.lmdb.environment import Environment
from hummock.store.tables.engine import Transaction


class DiskRoom:
    """The `Room` of an environment.

    Attributes:
        quota_bytes: Most that live data may take.
        fault: Why the disk takes no writes, all or those that need room; None while it does.
    """

    def __init__(self, environment: Environment, quota_bytes: int, limits: StoreLimits) -> None:
        self._environment = environment
        self._limits = limits
        # Even a removal needs pages before it frees some.
        most = int(environment.map_bytes * (1 - limits.map_reserve_share))
        self.quota_bytes = min(quota_bytes, most)
        self._is_map_the_limit = quota_bytes > most
        self.fault: HummockError | None = None

    def require(self, txn: Transaction) -> None:
        """Raises: StorageFull: what the transaction has put does not fit."""
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
        """Looks whether the disk takes writes again, where it did not: by one that changes nothing."""
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
