"""Rewriting of a stopped service's data file, entry by entry, to purge removed data or to compact it.

A purge leaves out every byte of removed data. LMDB's own compacting copy takes pages over as they are, including old
bytes after a value in its last page. The old file is unchanged until the new one has its name.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import lmdb
import msgspec
import numpy as np

from hummock.store.errors import DirectoryUnusable
from hummock.store.lmdb.environment import sync_folder, unusable
from hummock.store.lmdb.files import DATA_FILE, DirectoryLock
from hummock.store.lmdb.saved_views import SAVED_VIEWS, remove_saved
from hummock.store.tables import keys, record_codec
from hummock.store.tables.forward_lists import unpack_terms
from hummock.store.upkeep.backup import PART, KnownBackup, known_backups
from hummock.store.upkeep.moment import DirectoryMoment, digests, inspected

LOG_FILES = ("service.log", "service.log.old")

_OF_THE_REMOVED = (
    "retired", "retired_age", "request", "request_age", "ops", "removed", "project_removed", "session_deleted",
)  # fmt: skip # a list of names
"""Tables that are left out: vectors of removed texts, replies to requests, and the operations on memories."""

_OF_CHUNKS = {"by_digest": 16, "expiry": 8}
"""Bytes before the project's number in the keys of tables that do not begin with it."""

_OF_NO_PROJECT = {"meta", "project"}
_OF_MESSAGES = {"message", "message_id"}
_MESSAGES_PREFIX_BYTES = 12

LMDB_LOCK_FILE = "lock.mdb"
_PART = DATA_FILE + PART
_MIB = 1 << 20
_BATCH_BYTES = 32 * _MIB

Entries: TypeAlias = Iterator[tuple[bytes, bytes]]
Choose: TypeAlias = Callable[[DirectoryMoment, str], Entries]
"""Returns the entries of a table for the new file, in the order of their keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """Result of a purge."""

    rebuilt: Rebuilt  # Size of the data file before and after.
    left_out: dict[str, int]  # Number of entries left out, by table.
    expired_count: int  # Number of expired memories that the service has not removed yet.
    backups: tuple[KnownBackup, ...]  # Backups that may still contain the purged data.


def purge(data: Path, now: float, progress: Callable[[int, int], None]) -> Purged:
    """Erase removed data from a directory whose service does not run; `now` is in Unix seconds.

    `progress` gets the number of tables done, and their total. Raises: DirectoryInUse, DirectoryUnusable, OSError.
    """
    kept = _Kept(now)
    require_data(data)
    _remove_saved_views(data)
    rebuilt = rebuild(data, kept.entries, progress)
    for name in LOG_FILES:
        (data / name).unlink(missing_ok=True)
    sync_folder(data)
    return Purged(
        rebuilt=rebuilt, left_out=dict(kept.left_out), expired_count=kept.expired_count, backups=known_backups(data)
    )


def _remove_saved_views(data: Path) -> None:
    """Remove saved views first: they may contain removed data, and a killed purge must not leave them."""
    lock = DirectoryLock(data)
    try:
        folder = data / SAVED_VIEWS
        if folder.is_symlink():
            advice = f"remove the files of views behind it, and {SAVED_VIEWS} itself"
            raise DirectoryUnusable(data, f"{SAVED_VIEWS} is a link, and what lies behind it is not removed", advice)
        remove_saved(folder)
        # Fails if the folder contains other files.
        with suppress(OSError):
            folder.rmdir()
    finally:
        lock.release()


class _Kept:
    """Selection of the entries to keep, with the number of others by table."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.left_out: Counter[str] = Counter()
        self.expired_count = 0

    def entries(self, moment: DirectoryMoment, table: str) -> Entries:
        count = moment.count(table)
        for entry in self._chosen(moment, table):
            count -= 1
            yield entry
        if count:
            self.left_out[table] = count

    def _chosen(self, moment: DirectoryMoment, table: str) -> Entries:
        if table in _OF_THE_REMOVED:
            return iter(())
        if table == "project":
            return self._records(moment)
        if table == "term":
            return _used_terms(moment)
        if table == "session":
            return _used_sessions(moment)
        if table in _OF_NO_PROJECT:
            return moment.entries(table)
        if table == "expiry":
            self.expired_count = sum(keys.of_expiry_key(key)[0] <= self._now for key, _ in moment.entries(table))
        return _of_present(moment, table)

    def _records(self, moment: DirectoryMoment) -> Entries:
        """Project names and records; the records state that no operations are kept."""
        for key, value in moment.entries("project"):
            if key.startswith(b"p"):
                record = record_codec.decode_project(value)
                yield key, record_codec.encode(msgspec.structs.replace(record, ops_after=record.seq))
            else:
                yield key, value


def _of_present(moment: DirectoryMoment, table: str) -> Entries:
    """Entries except those of removed projects and sessions not yet cleared."""
    at = _OF_CHUNKS.get(table, 0)
    projects = {key for key, _ in moment.entries("project_removed")}
    sessions = {key for key, _ in moment.entries("session_deleted")} if table in _OF_MESSAGES else set()
    for key, value in moment.entries(table):
        if key[at : at + 4] not in projects and key[:_MESSAGES_PREFIX_BYTES] not in sessions:
            yield key, value


def _used_sessions(moment: DirectoryMoment) -> Entries:
    """Position counters of sessions with memories: in others no position can be assigned twice."""
    for number, _ in moment.projects().values():
        prefix = keys.project_prefix(number)
        memories = (record_codec.decode_memory(value).memory for _, value in moment.entries("memory", prefix))
        used = {keys.name_key(number, memory.session_id) for memory in memories if memory.session_id}
        for key, value in moment.entries("session", prefix):
            if key in used:
                yield key, value


def _used_terms(moment: DirectoryMoment) -> Iterator[tuple[bytes, bytes]]:
    """Terms that a memory contains. Numbers of other terms are never reused."""
    for number, _ in moment.projects().values():
        prefix = keys.project_prefix(number)
        lists = [unpack_terms(value) for _, value in moment.entries("terms", prefix)]
        used = set(np.unique(np.concatenate(lists)).tolist()) if lists else set()
        for key, value in moment.entries("term", prefix):
            if int.from_bytes(value, "little") in used:
                yield key, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Bytes of the data file before and after."""

    before_bytes: int
    after_bytes: int


def compact(data: Path, progress: Callable[[int, int], None]) -> Rebuilt:
    """Return the space of removed entries to the disk. The service must not run; errors as in `rebuild`."""
    return rebuild(data, DirectoryMoment.entries, progress)


def rebuild(data: Path, choose: Choose, progress: Callable[[int, int], None]) -> Rebuilt:
    """Replace the data file by one with the chosen entries; an interruption leaves the old one.

    No service uses the directory. The projects' data must stay the same. Progress and errors as for `purge`.
    """
    require_data(data)
    lock = DirectoryLock(data)
    part = data / _PART
    try:
        part.unlink(missing_ok=True)
        with inspected(data) as moment:
            _copy(moment, part, choose, progress)
            expected = digests(moment)
        with inspected(part) as written:
            if digests(written) != expected:
                raise DirectoryUnusable(data, "what was copied differs", "check it with `hummock fsck`")
        before_bytes, after_bytes = (data / DATA_FILE).stat().st_size, part.stat().st_size
        _swap(data, part)
    finally:
        part.unlink(missing_ok=True)
        lock.release()
    return Rebuilt(before_bytes=before_bytes, after_bytes=after_bytes)


def require_data(data: Path) -> None:
    """Check that there is a data file; creates nothing. Raises: DirectoryUnusable."""
    if not (data / DATA_FILE).is_file():
        raise DirectoryUnusable(data, "it holds no data", "name the directory that the service has as HUMMOCK_DATA")


def _copy(moment: DirectoryMoment, part: Path, choose: Choose, progress: Callable[[int, int], None]) -> None:
    size_bytes = moment.size_bytes()
    try:
        with lmdb.open(
            str(part), subdir=False, lock=False, sync=False, mode=0o600, max_dbs=64, map_size=2 * size_bytes + 64 * _MIB
        ) as env:
            for done, table in enumerate(moment.tables):
                database = env.open_db(table.encode())
                for batch in _batches(choose(moment, table)):
                    with env.begin(write=True) as txn, txn.cursor(database) as cursor:
                        cursor.putmulti(batch, append=True)
                progress(done + 1, len(moment.tables))
            env.sync(True)
    except lmdb.Error as error:
        raise unusable(part.parent, error) from error


def _batches(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    batch: list[tuple[bytes, bytes]] = []
    size_bytes = 0
    for key, value in entries:
        batch.append((key, value))
        size_bytes += len(key) + len(value)
        if size_bytes >= _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


def _swap(data: Path, part: Path) -> None:
    """Replace the old file by the new one, if no process reads it. Raises: DirectoryUnusable."""
    table = os.open(data / LMDB_LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # The lock that LMDB holds for as long as a process has the file open: its table of readers counts transactions
        # of the old file.
        fcntl.lockf(table, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        part.replace(data / DATA_FILE)
        with suppress(FileNotFoundError):
            (data / LMDB_LOCK_FILE).unlink()
        sync_folder(data)
    except (BlockingIOError, PermissionError) as error:
        raise DirectoryUnusable(data, "a backup or a check reads it", "wait for its end and try again") from error
    finally:
        os.close(table)
