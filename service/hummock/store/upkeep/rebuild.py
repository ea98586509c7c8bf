"""A data file written anew, entry by entry, and put in the place of the old one.

LMDB's own compacting copy takes pages over as they are; what a shorter value left behind itself in its last page would
come along. The old file is as it was until the new one has its name.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import lmdb

from hummock.store.errors import DirectoryUnusable
from hummock.store.lmdb.environment import unusable
from hummock.store.lmdb.lock import DirectoryLock
from hummock.store.upkeep import durable
from hummock.store.upkeep.digest import digests
from hummock.store.upkeep.inspection import DATA_FILE, Snapshot, inspected

LMDB_LOCK_FILE = "lock.mdb"
_PART = DATA_FILE + durable.PART
_MIB = 1 << 20
_BATCH_BYTES = 32 * _MIB

Entries: TypeAlias = Iterator[tuple[bytes, bytes]]
Choose: TypeAlias = Callable[[Snapshot, str], Entries]
"""Gives the entries of a table that the new file is to have, in the order of their keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Bytes of the data file before and after."""

    before_bytes: int
    after_bytes: int


def every_entry(snapshot: Snapshot, table: str) -> Entries:
    """All of them."""
    return snapshot.entries(table)


def compact(data: Path, progress: Callable[[int, int], None]) -> Rebuilt:
    """Gives the room of removed entries back to the disk. The service must not run; as in `rebuild`."""
    return rebuild(data, every_entry, progress)


def rebuild(data: Path, choose: Choose, progress: Callable[[int, int], None]) -> Rebuilt:
    """Replaces the data file by one with the chosen entries; whatever cuts it short leaves the old one.

    Args:
        data: The data directory, which no service has.
        choose: Of each table; what projects hold must be the same.
        progress: Told how many tables are done, and of how many.

    Raises: DirectoryInUse, DirectoryUnusable, OSError.
    """
    require_data(data)
    lock = DirectoryLock(data)
    part = data / _PART
    try:
        part.unlink(missing_ok=True)
        with inspected(data) as snapshot:
            _copy(snapshot, part, choose, progress)
            expected = digests(snapshot)
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
    """Raises: DirectoryUnusable: there is no data file. Nothing is made."""
    if not (data / DATA_FILE).is_file():
        raise DirectoryUnusable(data, "it holds no data", "name the directory that the service has as HUMMOCK_DATA")


def _copy(snapshot: Snapshot, part: Path, choose: Choose, progress: Callable[[int, int], None]) -> None:
    size_bytes = snapshot.size_bytes()
    try:
        with lmdb.open(
            str(part), subdir=False, lock=False, sync=False, mode=0o600, max_dbs=64, map_size=2 * size_bytes + 64 * _MIB
        ) as env:
            for done, table in enumerate(snapshot.tables):
                database = env.open_db(table.encode())
                for batch in _batches(choose(snapshot, table)):
                    with env.begin(write=True) as txn, txn.cursor(database) as cursor:
                        cursor.putmulti(batch, append=True)
                progress(done + 1, len(snapshot.tables))
            env.sync(True)
    except lmdb.Error as error:
        raise unusable(part.parent, error) from error


def _batches(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Entries of some megabytes each."""
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
        durable.sync(data)
    except (BlockingIOError, PermissionError) as error:
        raise DirectoryUnusable(data, "a backup or a check reads it", "wait for its end and try again") from error
    finally:
        os.close(table)
