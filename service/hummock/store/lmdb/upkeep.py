"""Checks while the store is open: its files, the disk, and readers that keep pages from being reused."""

from __future__ import annotations

import logging
import os
from typing import NamedTuple

import lmdb

from hummock.core.errors import HummockError
from hummock.ports.models import Clock
from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.room import DiskRoom

READERS_S = 10.0
"""Between two looks at LMDB's table of readers."""

HELD_S = 60.0
"""Warn about readers older than this, in seconds: they keep LMDB from reusing pages freed since they began."""

_log = logging.getLogger(__name__)


class OldestReader(NamedTuple):
    """The oldest transaction that reads: of which process, and what it sees."""

    pid: int
    transaction: int


class Upkeep:
    """Looks, now and then. The writer's alone, but for what it says."""

    def __init__(self, environment: Environment, room: DiskRoom, clock: Clock) -> None:
        self._environment = environment
        self._room = room
        self._clock = clock
        self._file_fault: HummockError | None = None
        self._looked_s = clock.monotonic()
        self._held: OldestReader | None = None
        self._held_since_s = self._looked_s

    @property
    def trouble(self) -> str:
        """Why the service cannot be relied on, for people; empty while it can."""
        trouble = self._file_fault or self._environment.damage.of_database
        return "" if trouble is None else str(trouble)

    @property
    def write_fault(self) -> str:
        """Why writes are refused, for people; empty while they are stored."""
        fault = self._file_fault or self._room.fault
        return "" if fault is None else str(fault)

    def look(self) -> None:
        """Looks at all of it."""
        self._look_at_files()
        if self._file_fault is None:
            self._room.probe()
        now_s = self._clock.monotonic()
        if now_s - self._looked_s >= READERS_S:
            self._looked_s = now_s
            try:
                self._look_at_readers(now_s)
            except lmdb.Error as error:
                # Nothing that was written depends on it, and the writer's thread looks again.
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
        if oldest is None or OldestReader(*oldest) != self._held:
            self._held, self._held_since_s = oldest and OldestReader(*oldest), now_s
        elif now_s - self._held_since_s >= HELD_S:
            self._warn(OldestReader(*oldest), now_s - self._held_since_s)
            self._held_since_s = now_s

    def _warn(self, held: OldestReader, held_s: float) -> None:
        _log.warning(
            "process %d%s has read from the database for %.0f s and %d writes; the file grows until it ends",
            held.pid,
            " (this service)" if held.pid == os.getpid() else "",
            held_s,
            self._environment.last_commit() - held.transaction,
        )
