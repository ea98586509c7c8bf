"""All tables of a store at one moment, whichever engine has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.upkeep.inspection import unsealed

_FEW, _MANY = 64, 4096
_SMALL_BYTES, _LARGE_BYTES = 1 << 20, 4 << 20
"""Entries that are read at once: more while they are small together, fewer while they are large."""

Entry = tuple[bytes, bytes]
"""A key and what is stored under it."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A snapshot of the tables; valid as long as its transaction.

    Attributes:
        engine: Whose.
        txn: Reads what is no project's, and one project if it has entered that.
    """

    engine: Engine
    txn: Transaction

    def between(self, table: str, first: bytes, end: bytes) -> Iterator[Entry]:
        """Entries from one key on and before another, in order; a bounded number is in memory."""
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
        """The first so many of them."""
        return self.engine.between(self.txn, getattr(self.engine.tables, table), first, end, limit)

    def entries(self, table: str, prefix: bytes = b"") -> Iterator[Entry]:
        """Keys that begin so, in order, and what is stored under them."""
        return self.between(table, prefix, _behind(prefix))

    def values(self, table: str, prefix: bytes = b"") -> Iterator[Entry]:
        """Entries with this key prefix, in order, without the seals of some tables; a damaged value is empty."""
        for key, stored in self.entries(table, prefix):
            yield key, unsealed(table, key, stored) or b""

    def value(self, table: str, key: bytes) -> bytes | None:
        """The value of a key."""
        return self.txn.get(key, db=getattr(self.engine.tables, table))

    def projects(self) -> dict[str, tuple[int, record_codec.ProjectRecord]]:
        """Numbers and records of all projects by their names, in the order of their numbers."""
        found = self.entries("project", keys.project_number_key(0)[:1])
        records = ((keys.unpack_project(key[1:]), record_codec.decode_project(value)) for key, value in found)
        return {record.name: (number, record) for number, record in records}

    def project(self, name: str) -> tuple[int, record_codec.ProjectRecord] | None:
        """The number and the record of a project."""
        number = self.value("project", keys.project_name_key(name))
        record = None if number is None else self.value("project", keys.project_number_key(keys.unpack_project(number)))
        if number is None or record is None:
            return None
        return keys.unpack_project(number), record_codec.decode_project(record)


def size_of(entries: Sequence[Entry]) -> int:
    """Bytes of keys and values."""
    return sum(len(key) + len(value) for key, value in entries)


def _behind(prefix: bytes) -> bytes:
    """Before which all keys that begin so end. None of a store begins with 0xff alone."""
    if not prefix:
        return b"\xff" * 512
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
