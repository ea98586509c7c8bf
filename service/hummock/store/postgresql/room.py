"""Free space of the database, and the errors while there is none."""

from __future__ import annotations

import logging

import psycopg

from hummock.core.errors import HummockError, StorageFull, Unavailable
from hummock.ports.models import Clock
from hummock.store.errors import DiskFull
from hummock.store.postgresql.connections import is_lost, is_passing
from hummock.store.postgresql.database import Database
from hummock.store.tables.engine import Transaction

MEASURED_S = 5.0  # Seconds between two measurements of the tables' size.

_log = logging.getLogger(__name__)


class DatabaseRoom:
    """The `Room` and the `Health` of a database; its quota counts the tables with their indexes."""

    def __init__(self, database: Database, quota_bytes: int, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._measured_s = clock.monotonic()
        self.quota_bytes = quota_bytes
        self.fault: HummockError | None = None

    @property
    def trouble(self) -> str:
        """Message if the service's version is too old for the schema; read errors go to the callers instead."""
        return "" if self._database.outgrown is None else str(self._database.outgrown)

    @property
    def write_fault(self) -> str:
        return self.trouble or ("" if self.fault is None else str(self.fault))

    def require(self, txn: Transaction) -> None:
        """Check the quota against the last measurement. Raises: StorageFull."""
        used = self._database.used_bytes(txn)
        if used > self.quota_bytes:
            raise StorageFull(used, self.quota_bytes)

    def failure_of(self, error: Exception) -> Exception:
        failure: HummockError
        if is_passing(error):
            return Unavailable(f"another service wrote the same at the same time ({error}); try again")
        if isinstance(error, psycopg.errors.DiskFull):
            failure = DiskFull(str(error).strip(), 0)
        elif is_lost(error):
            failure = self._database.unreachable(error)
        else:
            # A statement refused by the database is a defect, and is reported as one.
            return error
        failure.__cause__ = error
        if self.fault is None:
            _log.error("nothing is written: %s", failure)
        self.fault = failure
        return failure

    def look(self) -> None:
        """Measure the used space every MEASURED_S, and during a fault at each call, to see if the database answers."""
        now_s = self._clock.monotonic()
        if self.fault is not None or now_s - self._measured_s >= MEASURED_S:
            self._measured_s = now_s
            self._measure()

    def _measure(self) -> None:
        try:
            self._database.measure()
        except HummockError as error:
            if self.fault is None:
                _log.error("nothing is written: %s", error)
            self.fault = error
            return
        if self.fault is not None:
            _log.warning("%s answers; writes are stored again", self._database.place)
        self.fault = None
