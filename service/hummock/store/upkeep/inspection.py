"""Opens data directories for reading: while a service writes, or while none runs. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lmdb

from hummock.store.errors import DirectoryUnusable
from hummock.store.lmdb.environment import unusable
from hummock.store.tables import keys, record_codec, sealed
from hummock.store.tables.engine import TABLE_NAMES
from hummock.store.tables.projects import DIRECTORY_KEY, active_space

DATA_FILE = "data.mdb"
_ROOM_FOR_TABLES = 64
_OF_NUMBERS = ("by_id", "session", "message_id")
_OF_RECORDS = (
    "settings", "review", "learning", "event", "turn", "usage", "link", "session_record", "session_order", "message",
    "retired",
)  # fmt: skip # a list of names
"""Tables whose values have seals."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All tables at one moment; it lives no longer than its `with`.

    Attributes:
        txn: The read transaction.
        tables: By name; those that an older version did not have are missing.
        directory: What the directory says of itself.
    """

    txn: lmdb.Transaction[bytes]
    tables: dict[str, lmdb._Database]
    directory: record_codec.DirectoryRecord

    def entries(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin so, and what is stored under them, in order."""
        return keys.entries(self.txn, self.tables[table], prefix) if table in self.tables else iter(())

    def values(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Entries with this key prefix, in order, without the seals of some tables; a damaged value is empty."""
        for key, stored in self.entries(table, prefix):
            yield key, unsealed(table, key, stored) or b""

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value of a key as it is stored."""
        return self.txn.get(key, db=self.tables[table]) if table in self.tables else None

    def value(self, table: str, key: bytes) -> bytes | None:
        """The value of a key without its seal, empty if it is damaged; None if there is none."""
        stored = self.get(table, key)
        return None if stored is None else unsealed(table, key, stored) or b""

    def count(self, table: str) -> int:
        """Entries of a table."""
        return int(self.txn.stat(self.tables[table])["entries"]) if table in self.tables else 0

    def size_bytes(self) -> int:
        """Bytes of the pages that are in use."""
        stats = [self.txn.stat(table) for table in self.tables.values()]
        pages = sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
        return int(pages * stats[0]["psize"])

    def projects(self) -> list[tuple[int, record_codec.ProjectRecord]]:
        """Numbers and records of all projects, by number."""
        found = self.entries("project", b"p")
        return [(keys.unpack_project(key[1:]), record_codec.decode_project(value)) for key, value in found]

    def space(self) -> record_codec.SpaceRecord:
        """The space of the vectors that are in use."""
        return active_space(self.directory)


def has_seals(table: str) -> bool:
    """Whether the values of a table have seals."""
    return table in _OF_NUMBERS or table in _OF_RECORDS


def unsealed(table: str, key: bytes, stored: bytes) -> bytes | None:
    """The value of a key without its seal, if the table has any; None if it is damaged."""
    if table in _OF_NUMBERS:
        return sealed.opened_number(key, stored)
    return sealed.opened(key, stored) if table in _OF_RECORDS else stored


@contextmanager
def inspected(path: Path) -> Iterator[Snapshot]:
    """A snapshot of a directory, or of a data file that no other process has open.

    Raises: DirectoryUnusable.
    """
    directory = path if path.is_dir() else path.parent
    if not (path / DATA_FILE if path.is_dir() else path).is_file():
        raise DirectoryUnusable(
            directory, "it holds no data", "name the directory that the service has as HUMMOCK_DATA"
        )
    try:
        with _opened(path) as env:
            tables = _tables(env)
            with env.begin() as txn:
                yield Snapshot(txn, tables, _directory(txn, tables, directory))
    except lmdb.Error as error:
        raise unusable(directory, error) from error


def _opened(path: Path) -> lmdb.Environment:
    # A map of 0 bytes is as large as the one of whoever writes it.
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
