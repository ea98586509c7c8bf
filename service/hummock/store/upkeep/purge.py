"""A data file without a byte of what was removed: in a service that does not run, for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from hummock.store.errors import DirectoryUnusable
from hummock.store.lmdb.lock import DirectoryLock
from hummock.store.lmdb.saved_views import SAVED_VIEWS, remove_files
from hummock.store.tables import keys, record_codec
from hummock.store.upkeep import durable
from hummock.store.upkeep.inspection import Snapshot
from hummock.store.upkeep.known_backups import KnownBackup, known_backups
from hummock.store.upkeep.rebuild import Entries, Rebuilt, every_entry, rebuild, require_data
from hummock.store.views.forward_lists import unpack_terms

LOG_FILES = ("service.log", "service.log.old")

_OF_THE_REMOVED = (
    "retired", "retired_age", "request", "request_age", "ops", "removed", "project_removed", "session_deleted",
)  # fmt: skip # a list of names
"""Tables that are left out: vectors by removed texts, answers to requests, and what became of memories."""

_OF_CHUNKS = {"by_digest": 16, "expiry": 8}
"""Bytes before the project's number in the keys of tables that do not begin with it."""

_OF_NO_PROJECT = {"meta", "project"}
_OF_MESSAGES = {"message", "message_id"}
_MESSAGES_PREFIX_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """Result of a purge.

    Attributes:
        rebuilt: How large the data file was and is.
        left_out: Entries that are gone, by table.
        expired_count: Memories that have ended and that the service, which removes them, has not removed yet.
        backups: Those that may hold still what is gone here.
    """

    rebuilt: Rebuilt
    left_out: dict[str, int]
    expired_count: int
    backups: tuple[KnownBackup, ...]


def purge(data: Path, now: float, progress: Callable[[int, int], None]) -> Purged:
    """Erases what was removed from a directory whose service does not run.

    Args:
        data: The data directory.
        now: Unix seconds.
        progress: Told how many tables are done, and of how many.

    Raises: DirectoryInUse, DirectoryUnusable, OSError.
    """
    kept = _Kept(now)
    require_data(data)
    _remove_saved_views(data)
    rebuilt = rebuild(data, kept.entries, progress)
    for name in LOG_FILES:
        (data / name).unlink(missing_ok=True)
    durable.sync(data)
    return Purged(
        rebuilt=rebuilt, left_out=dict(kept.left_out), expired_count=kept.expired_count, backups=known_backups(data)
    )


def _remove_saved_views(data: Path) -> None:
    """First: they hold what was removed since they were written, and a purge that is killed must not leave them."""
    lock = DirectoryLock(data)
    try:
        folder = data / SAVED_VIEWS
        if folder.is_symlink():
            advice = f"remove the files of views behind it, and {SAVED_VIEWS} itself"
            raise DirectoryUnusable(data, f"{SAVED_VIEWS} is a link, and what lies behind it is not removed", advice)
        remove_files(folder)
        # Unless something else lies there.
        with suppress(OSError):
            folder.rmdir()
    finally:
        lock.release()


class _Kept:
    """The entries that stay, and the number of those that do not, by table."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.left_out: Counter[str] = Counter()
        self.expired_count = 0

    def entries(self, snapshot: Snapshot, table: str) -> Entries:
        """Those of a table that stay."""
        count = snapshot.count(table)
        for entry in self._chosen(snapshot, table):
            count -= 1
            yield entry
        if count:
            self.left_out[table] = count

    def _chosen(self, snapshot: Snapshot, table: str) -> Entries:
        if table in _OF_THE_REMOVED:
            return iter(())
        if table == "project":
            return self._records(snapshot)
        if table == "term":
            return _used_terms(snapshot)
        if table == "session":
            return _used_sessions(snapshot)
        if table in _OF_NO_PROJECT:
            return every_entry(snapshot, table)
        if table == "expiry":
            self.expired_count = sum(keys.of_expiry_key(key)[0] <= self._now for key, _ in snapshot.entries(table))
        return _of_present(snapshot, table)

    def _records(self, snapshot: Snapshot) -> Entries:
        """Names and records; of what happened to memories nothing is kept, which the records say."""
        for key, value in snapshot.entries("project"):
            if key.startswith(b"p"):
                record = record_codec.decode_project(value)
                yield key, record_codec.encode(msgspec.structs.replace(record, ops_after=record.seq))
            else:
                yield key, value


def _of_present(snapshot: Snapshot, table: str) -> Entries:
    """Entries without those of removed projects and sessions that were not cleared yet."""
    at = _OF_CHUNKS.get(table, 0)
    projects = {key for key, _ in snapshot.entries("project_removed")}
    sessions = {key for key, _ in snapshot.entries("session_deleted")} if table in _OF_MESSAGES else set()
    for key, value in snapshot.entries(table):
        if key[at : at + 4] not in projects and key[:_MESSAGES_PREFIX_BYTES] not in sessions:
            yield key, value


def _used_sessions(snapshot: Snapshot) -> Entries:
    """The counts of sessions that a memory is of: without one there is no place that could be given twice."""
    for number, _ in snapshot.projects():
        prefix = keys.project_prefix(number)
        memories = (record_codec.decode_memory(value).memory for _, value in snapshot.entries("memory", prefix))
        used = {keys.name_key(number, memory.session_id) for memory in memories if memory.session_id}
        for key, value in snapshot.entries("session", prefix):
            if key in used:
                yield key, value


def _used_terms(snapshot: Snapshot) -> Iterator[tuple[bytes, bytes]]:
    """Words that a memory holds. The others' numbers are never given again."""
    for number, _ in snapshot.projects():
        prefix = keys.project_prefix(number)
        lists = [unpack_terms(value) for _, value in snapshot.entries("terms", prefix)]
        used = set(np.unique(np.concatenate(lists)).tolist()) if lists else set()
        for key, value in snapshot.entries("term", prefix):
            if int.from_bytes(value, "little") in used:
                yield key, value
