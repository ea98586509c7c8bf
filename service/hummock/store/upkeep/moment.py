"""All tables of a store of any engine at one moment: their entries, and digests for comparing copies.

Data directories are opened read-only, with or without a running service.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Self, TypeAlias, cast

import lmdb

from hummock.store.errors import DirectoryUnusable
from hummock.store.lmdb.environment import Environment, unusable
from hummock.store.lmdb.files import DATA_FILE, code_of
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import TABLE_NAMES, Engine, Table, Tables, Transaction
from hummock.store.tables.integrity import unsealed
from hummock.store.tables.lookups import DIRECTORY_KEY, active_space
from hummock.store.tables.sessions import clock_key
from hummock.store.write.spaces import lacks_little

_ROOM_FOR_TABLES = 64
_FEW, _MANY = 64, 4096
_SMALL_BYTES, _LARGE_BYTES = 1 << 20, 4 << 20
"""Bounds for the size of one read: more entries below the first, fewer above the second."""

_OF_MESSAGES = ("message", "message_id")
_LENGTHS = struct.Struct("<II")
_HELD = (
    "memory", "payload", "vector", "token", "by_id", "pending", "settings", "learning", "event", "turn", "usage",
    "link", "session_record", "session_order", "message", "message_id",
)  # fmt: skip # a list of names
"""Tables that cannot be rebuilt from the others."""
_HELD_LATER = ("review",)
"""Tables added later that cannot be rebuilt either. They count only if the project has entries in them, so that
digests of older projects stay the same."""
_OF_CHUNKS = ("vector", "token")  # Tables with the number of an embedding space after the project's in their keys.
Entry: TypeAlias = tuple[bytes, bytes]  # A key and its stored value.
Between: TypeAlias = Callable[[Transaction, Table, bytes, bytes, int], Sequence[Entry]]
"""Reads a bounded number of entries of a table from one key on and before another, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A snapshot of the tables; valid as long as its transaction."""

    txn: Transaction  # Transaction that reads entries of no project, and of one project if it has entered that.
    tables: Mapping[str, Table]  # Tables by name; without those that an older version did not have.
    read: Between  # Reads ranges of entries.

    @classmethod
    def of(cls, engine: Engine, txn: Transaction) -> Self:
        """Snapshot of an engine's tables in a transaction."""
        return cls(txn, {name: getattr(engine.tables, name) for name in TABLE_NAMES}, engine.between)

    def between(self, table: str, first: bytes, end: bytes) -> Iterator[Entry]:
        """Entries from the key `first` on and before `end`, in order, read in bounded parts."""
        limit = _FEW
        while True:
            found = self.some(table, first, end, limit)
            yield from found
            if len(found) < limit:
                return
            first = found[-1][0] + b"\0"
            size_bytes = size_of(found)
            if size_bytes < _SMALL_BYTES:
                limit = min(2 * limit, _MANY)
            elif size_bytes > _LARGE_BYTES:
                limit = max(limit // 2, 1)

    def some(self, table: str, first: bytes, end: bytes, limit: int) -> Sequence[Entry]:
        """The first `limit` of these entries."""
        return self.read(self.txn, self.tables[table], first, end, limit) if table in self.tables else ()

    def entries(self, table: str, prefix: bytes = b"") -> Iterator[Entry]:
        """Entries with this key prefix, in order, as stored."""
        return self.between(table, prefix, _behind(prefix))

    def values(self, table: str, prefix: bytes = b"") -> Iterator[Entry]:
        """Entries with this key prefix, in order, without the seals of some tables; a damaged value is empty."""
        for key, stored in self.entries(table, prefix):
            yield key, unsealed(table, key, stored) or b""

    def get(self, table: str, key: bytes) -> bytes | None:
        """The stored value of a key, or None."""
        return self.txn.get(key, db=self.tables[table]) if table in self.tables else None

    def value(self, table: str, key: bytes) -> bytes | None:
        """The value of a key without its seal, empty if it is damaged; None if there is none."""
        stored = self.get(table, key)
        return None if stored is None else unsealed(table, key, stored) or b""

    def projects(self) -> dict[str, tuple[int, record_codec.ProjectRecord]]:
        """Numbers and records of all projects by their names, in the order of their numbers."""
        found = self.entries("project", keys.project_number_key(0)[:1])
        records = ((keys.unpack_project(key[1:]), record_codec.decode_project(value)) for key, value in found)
        return {record.name: (number, record) for number, record in records}

    def project(self, name: str) -> tuple[int, record_codec.ProjectRecord] | None:
        """The number and the record of a project, or None."""
        number = self.get("project", keys.project_name_key(name))
        record = None if number is None else self.get("project", keys.project_number_key(keys.unpack_project(number)))
        if number is None or record is None:
            return None
        return keys.unpack_project(number), record_codec.decode_project(record)


@dataclass(frozen=True, slots=True, eq=False)
class DirectoryMoment(Moment):
    """A data directory at one moment, valid only in its `with` block. `directory` is its record."""

    directory: record_codec.DirectoryRecord

    def count(self, table: str) -> int:
        """Number of entries of a table."""
        return self._stat(table)["entries"] if table in self.tables else 0

    def size_bytes(self) -> int:
        """Bytes of the pages in use."""
        stats = [self._stat(table) for table in self.tables]
        pages = sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
        return pages * stats[0]["psize"]

    def space(self) -> record_codec.SpaceRecord:
        """The embedding space in use."""
        return active_space(self.directory)

    def _stat(self, table: str) -> lmdb._StatDict:
        return cast("lmdb.Transaction[bytes]", self.txn).stat(self.tables[table])


@contextmanager
def inspected(path: Path) -> Iterator[DirectoryMoment]:
    """Open a directory as it is now, or a data file that no other process has open. Raises: DirectoryUnusable."""
    directory = path if path.is_dir() else path.parent
    if not (path / DATA_FILE if path.is_dir() else path).is_file():
        raise DirectoryUnusable(
            directory, "it holds no data", "name the directory that the service has as HUMMOCK_DATA"
        )
    try:
        with _opened(path) as env:
            tables = _tables(env)
            with env.begin() as txn:
                yield DirectoryMoment(txn, tables, Environment.between, _directory(txn, tables, directory))
    except lmdb.Error as error:
        raise unusable(directory, error) from error


def copy_file(data: Path, copy: Path) -> None:
    """Copy the data file as it is now to a new file, all pages in place. Raises: DirectoryUnusable; OSError."""
    with inspected(data):
        pass
    descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with _opened(data) as env:
            env.copyfd(descriptor)
    except lmdb.Error as error:
        raise OSError(code_of(error), os.strerror(code_of(error)), str(copy)) from error
    finally:
        os.close(descriptor)


def _opened(path: Path) -> lmdb.Environment:
    # A map size of 0 uses the size set by the writing process.
    return lmdb.open(
        str(path), subdir=path.is_dir(), readonly=True, lock=path.is_dir(), map_size=0, max_dbs=_ROOM_FOR_TABLES
    )


def _tables(env: lmdb.Environment) -> dict[str, lmdb._Database]:
    found = {}
    for name in TABLE_NAMES:
        try:
            found[name] = env.open_db(name.encode(), create=False)
        except lmdb.NotFoundError:
            continue
    return found


def _directory(
    txn: lmdb.Transaction[bytes], tables: dict[str, lmdb._Database], directory: Path
) -> record_codec.DirectoryRecord:
    value = txn.get(DIRECTORY_KEY, db=tables["meta"]) if "meta" in tables else None
    if value is None:
        raise DirectoryUnusable(directory, "nothing was ever stored in it", "there is nothing to look at")
    return record_codec.decode_directory(value)


def ready_spaces(directory: Path) -> frozenset[str]:
    """Ids of the spaces that a data directory can switch to, besides the one in use. Raises: DirectoryUnusable."""
    with inspected(directory) as moment:
        active = moment.space().number
        others = [space for space in moment.directory.spaces if space.number != active]
        # The tables that are read exist in every directory with memories.
        tables = cast(Tables, SimpleNamespace(**moment.tables))
        numbers = [number for number, _ in moment.projects().values()] if others else []
        return frozenset(
            space.id for space in others if lacks_little(moment.txn, tables, numbers, active, space.number)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDigest:
    """A project at one moment; `digest` is a SHA-256 in hexadecimal over all its data except its name."""

    name: str
    seq: int
    memory_count: int
    digest: str


def digests(moment: Moment) -> tuple[ProjectDigest, ...]:
    """Digests of all projects, in the order of their numbers."""
    return tuple(digest_of(moment, number, record) for number, record in moment.projects().values())


def digest_of(
    moment: Moment, number: int, record: record_codec.ProjectRecord, *, by_any_number: bool = False
) -> ProjectDigest:
    """Digest of one project.

    With `by_any_number` it is independent of the numbers of the project and its space, which copies change. Backups
    keep the numbers, and their digests include them.
    """
    hashed, prefix = sha256(), keys.project_prefix(number)
    # Messages of removed sessions are left out, as they are still to be cleared.
    removed = tuple(key for key, _ in moment.entries("session_deleted", prefix))
    later = tuple(table for table in _HELD_LATER if next(moment.entries(table, prefix), None) is not None)
    for table in (*_HELD, *later):
        hashed.update(table.encode() + b"\n")
        within, cut = prefix, len(prefix)
        if by_any_number and table in _OF_CHUNKS:
            # Copies leave out the vectors of other spaces.
            within = keys.space_prefix(number, record.active_space)
            cut = len(within)
        for key, value in moment.values(table, within):
            if table in _OF_MESSAGES and key.startswith(removed):
                continue
            if by_any_number and table == "session_order" and key != clock_key(number):
                # A session's key.
                value = value[len(prefix) :]
            hashed.update(_LENGTHS.pack(len(key), len(value)) + key[cut:] + value)
    count = sum(record.kinds.values())
    return ProjectDigest(name=record.name, seq=record.seq, memory_count=count, digest=hashed.hexdigest())


def size_of(entries: Sequence[Entry]) -> int:
    """Bytes of keys and values."""
    return sum(len(key) + len(value) for key, value in entries)


def _behind(prefix: bytes) -> bytes:
    """Exclusive upper bound of the keys with this prefix. No prefix in a store is all 0xff."""
    if not prefix:
        return b"\xff" * 512
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
