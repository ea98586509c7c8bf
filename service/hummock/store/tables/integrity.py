"""Detection of damaged data: sealed values, checksums of memories, and the damage found so far.

LMDB does not notice a disk that returns other bytes than it stored. Each CRC-32 (ISO-HDLC, as in zlib) starts with the
key, so that a value under another key is detected as well: any change of one or two bits is found, and any other with
a miss rate of one in 4 billion. Data written before there were checksums have none until they are written again, and
are accepted unchecked.

A sealed value is a byte with which no MessagePack begins, the CRC-32 of the key and the value, and the value. Numbers
stored before there were seals are recognised by their length. Memories, whose parts are in several tables, have one
row of checksums instead, one for each stored part.

A damaged key is not found. Its entry is then next to the position of the key searched for, since the descent through
the tree goes wrong only at that entry. So a search without a result checks the neighbours of that position.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TypeAlias, TypeVar
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from hummock.store.errors import DatabaseDamaged, EntryDamaged, MemoryDamaged
from hummock.store.tables import keys
from hummock.store.tables.engine import ChecksItsPages, Cursor, Table, Tables, Transaction

_MARK = 0xC1
_HEAD = struct.Struct("<BI")
_NUMBER_BYTES = 8
UNREADABLE = (msgspec.MsgspecError, struct.error, ValueError, TypeError, KeyError, IndexError)
"""Errors that decoding a damaged value without a seal may raise."""

_OF_NUMBERS = ("by_id", "session", "message_id")
_OF_RECORDS = (
    "settings", "review", "learning", "event", "turn", "usage", "link", "session_record", "session_order", "message",
    "retired",
)  # fmt: skip # a list of names
"""Tables with sealed values."""

PARTS = ("memory", "payload", "column", "terms")  # Tables of a memory's parts, in the order of their checksums.
_SUM_BYTES = 4
_ONE, _TWO = struct.Struct("<I"), struct.Struct("<II")
MEMORY, PAYLOAD, COLUMN, TERMS = range(4)
"""Positions of a memory's checksums; those of each chunk's vector and token vectors follow."""

Value = TypeVar("Value")
Place = TypeVar("Place", int, NDArray[np.int64])
Lost: TypeAlias = "Callable[[Transaction, Table, bytes], bool]"
"""`is_lost` for writers, so that a damaged neighbour does not block a write; otherwise `may_be_lost`."""

_log = logging.getLogger(__name__)


def seal(key: bytes, value: bytes) -> bytes:
    """Seal a value for storage under this key."""
    return _HEAD.pack(_MARK, crc32(value, crc32(key))) + value


def opened(key: bytes, stored: bytes) -> bytes | None:
    """The value without its seal; None if it is damaged or empty."""
    if not stored or stored[0] != _MARK:
        return stored or None
    return stored[_HEAD.size :] if _fits(key, stored) else None


def opened_number(key: bytes, stored: bytes) -> bytes | None:
    """The eight bytes of a number, without their seal; None if they are damaged."""
    value = stored if len(stored) == _NUMBER_BYTES else opened(key, stored)
    return value if value is not None and len(value) == _NUMBER_BYTES else None


def _fits(key: bytes, stored: bytes) -> bool:
    if len(stored) < _HEAD.size:
        return False
    return bool(_HEAD.unpack_from(stored)[1] == crc32(memoryview(stored)[_HEAD.size :], crc32(key)))


def has_seals(table: str) -> bool:
    """True if the values of a table have seals."""
    return table in _OF_NUMBERS or table in _OF_RECORDS


def unsealed(table: str, key: bytes, stored: bytes) -> bytes | None:
    """The value of a key without its seal, if the table has any; None if it is damaged."""
    if table in _OF_NUMBERS:
        return opened_number(key, stored)
    return opened(key, stored) if table in _OF_RECORDS else stored


def decoded(what: str, key: bytes, stored: bytes, decode: Callable[[bytes], Value]) -> Value:
    """Open and decode a value; `what` names it in the error. Raises: EntryDamaged."""
    value = opened(key, stored)
    if value is None:
        raise EntryDamaged(what)
    try:
        return decode(value)
    except UNREADABLE as error:  # written before there were seals
        raise EntryDamaged(what) from error


def number(what: str, key: bytes, stored: bytes) -> bytes:
    """A number's eight bytes; `what` names it in the error. Raises: EntryDamaged."""
    value = opened_number(key, stored)
    if value is None:
        raise EntryDamaged(what)
    return value


def is_lost(txn: Transaction, table: Table, key: bytes) -> bool:
    """True if a missing key is present but damaged: a neighbour has the seal of this key, or is out of order."""
    return any(
        not is_in_order or (stored[:1] == bytes([_MARK]) and _fits(key, stored))
        for _, stored, is_in_order in _beside(txn, table, key)
    )


def may_be_lost(
    txn: Transaction, table: Table, key: bytes, open_: Callable[[bytes, bytes], bytes | None] = opened
) -> bool:
    """True if a missing key may be present: a neighbour is damaged or out of order; see `number_may_be_lost`."""
    return any(
        not is_in_order or open_(found, stored) is None for found, stored, is_in_order in _beside(txn, table, key)
    )


number_may_be_lost: Lost = partial(may_be_lost, open_=opened_number)


def _beside(txn: Transaction, table: Table, key: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Entries before and after the position of a missing key, and whether their keys are in order."""
    if isinstance(txn, ChecksItsPages):
        return
    with txn.cursor(table) as cursor:
        is_behind = cursor.set_range(key)
        if is_behind:
            yield cursor.key(), cursor.value(), cursor.key() > key
        if cursor.prev() if is_behind else cursor.last():
            yield cursor.key(), cursor.value(), cursor.key() < key


def entries(txn: Transaction, table: Table, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes | None]]:
    """Keys that begin with the prefix, from `start` on, in order, and their values; None for a damaged value.

    Damaged entries next to them are included, as they may have had the prefix. Entries without a seal also count as
    damaged if their keys are out of order.
    """
    first = max(prefix, start)
    with txn.cursor(table) as cursor:
        if not _go_before(cursor, first):
            return
        before, is_there = b"", True
        while is_there:
            key, stored = cursor.item()
            value = opened(key, stored)
            is_there = cursor.next()
            is_in_order = before < key and not (is_there and cursor.key() <= key)
            if value is None or not (is_in_order or stored[0] == _MARK):
                yield key, None
            elif key >= first:
                if not key.startswith(prefix):
                    return
                yield key, value
            before = key


def sound(
    txn: Transaction,
    table: Table,
    prefix: bytes,
    what: str,
    decode: Callable[[bytes], Value],
    damage: Damage,
    start: bytes = b"",
) -> Iterator[tuple[bytes, Value]]:
    """Keys and decoded values as from `entries`; damaged ones are recorded, named `what`, and left out."""
    for key, value in entries(txn, table, prefix, start):
        try:
            decoded = None if value is None else decode(value)
        except UNREADABLE:
            decoded = None
        if decoded is None:
            damage.note_entry(what, key)
        else:
            yield key, decoded


def _go_before(cursor: Cursor, first: bytes) -> bool:
    """Move to the first key from `first` on, or to damaged entries directly before it; False if there is neither."""
    if not (cursor.prev() if cursor.set_range(first) else cursor.last()):
        return bool(cursor.first())
    while cursor.key() >= first or opened(cursor.key(), cursor.value()) is None:
        if not cursor.prev():
            return bool(cursor.first())
    return bool(cursor.next())


def sums_of(txn: Transaction, tables: Tables, number: int, space: int, doc: int) -> bytes:
    """The checksums of all parts of a document as stored now, including those of all chunks."""
    key = keys.doc_key(number, doc)
    parts = [(key, txn.get(key, b"", db=getattr(tables, part))) for part in PARTS]
    for chunk_key, vector in keys.entries(txn, tables.vector, keys.chunks_prefix(number, space, doc)):
        parts += ((chunk_key, vector), (chunk_key, txn.get(chunk_key, b"", db=tables.token)))
    return row_of(parts)


def row_of(parts: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Checksums of a memory's parts, given as (key, part): PARTS, then vector and token vectors of each chunk."""
    return struct.pack(f"<{len(parts)}I", *[crc32(part, crc32(key)) for key, part in parts])


def is_sound(txn: Transaction, tables: Tables, number: int, space: int, doc: int) -> bool:
    """True if all parts match their checksums, or have none."""
    kept = txn.get(keys.doc_key(number, doc), db=tables.checksum)
    return kept is None or kept == sums_of(txn, tables, number, space, doc)


def keep_sums(txn: Transaction, tables: Tables, number: int, space: int, doc: int) -> None:
    """Store the checksums of a document after writing it."""
    txn.put(keys.doc_key(number, doc), sums_of(txn, tables, number, space, doc), db=tables.checksum)


def matches(kept: bytes | None, place: int, key: bytes, part: bytes) -> bool:
    """True if a part as it was read matches the checksum at `place` of the stored ones, or none are stored."""
    if kept is None:
        return True
    at = place * _SUM_BYTES
    return kept[at : at + _SUM_BYTES] == crc32(part, crc32(key)).to_bytes(_SUM_BYTES, "little")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptSums:
    """The checksums of many documents, for reading parts by the thousand."""

    docs: NDArray[np.int64]  # (n,) int64, ascending.
    # (n,) uint32, CRC-32 of each document's key, the start value for all its parts except vectors.
    seeds: NDArray[np.uint32]
    starts: NDArray[np.int64]  # (n + 1,) int64, start of each document's checksums in `sums`.
    sums: NDArray[np.uint32]  # (m,) uint32.

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, bytes]]) -> KeptSums:
        """The checksums of a project, from the table's entries. Raises: ValueError: some are cut."""
        found = list(entries)
        doc_keys, values = [key for key, _ in found], [value for _, value in found]
        starts = np.zeros(len(found) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)) // _SUM_BYTES, out=starts[1:])
        return cls(
            docs=keys.docs_of_doc_keys(doc_keys),
            seeds=np.fromiter(map(crc32, doc_keys), np.uint32, len(doc_keys)),
            starts=starts,
            sums=np.frombuffer(b"".join(values), "<u4"),
        )

    def match(self, place: int, docs: NDArray[np.int64], parts: Sequence[bytes]) -> bool:
        """True if these parts match the checksums at this position of each document, or there are none."""
        at, is_kept = self._places(docs)
        return not is_kept.any() or self._match(at, is_kept, np.full(len(at), place), self.seeds[at], parts)

    def match_vectors(self, docs: NDArray[np.int64], chunks: NDArray[np.int64], parts: Mapping[bytes, bytes]) -> bool:
        """True if these vectors, by their keys, match their checksums, or there are none."""
        at, is_kept = self._places(docs)
        seeds = np.fromiter(map(crc32, parts), np.uint32, len(parts))
        return not is_kept.any() or self._match(at, is_kept, vector_place(chunks), seeds, [*parts.values()])

    def _places(self, docs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self.docs):
            return np.zeros(len(docs), np.int64), np.zeros(len(docs), np.bool_)
        at = np.minimum(np.searchsorted(self.docs, docs), len(self.docs) - 1)
        return at, self.docs[at] == docs

    def _match(
        self,
        at: NDArray[np.int64],
        is_kept: NDArray[np.bool_],
        places: NDArray[np.int64],
        seeds: NDArray[np.uint32],
        parts: Sequence[bytes],
    ) -> bool:
        sums = np.fromiter(map(crc32, parts, seeds.tolist()), np.uint32, len(parts))
        found = self.starts[at] + places
        is_there = found < self.starts[at + 1]
        return bool(np.all(~is_kept | (is_there & (self.sums[np.where(is_there, found, 0)] == sums))))


def vector_place(chunk: Place) -> Place:
    """Position of the checksum of a chunk's vector."""
    return len(PARTS) + 2 * chunk


def require(kept: bytes | None, key: bytes, memory_id: str, memory: bytes, payload: bytes | None) -> None:
    """Check a memory's record and, if given, its payload against their checksums. Raises: MemoryDamaged."""
    if kept is None:
        return
    # Inlined for speed: a recall does this for each hit.
    seed = crc32(key)
    sums = _ONE.pack(crc32(memory, seed)) if payload is None else _TWO.pack(crc32(memory, seed), crc32(payload, seed))
    if not kept.startswith(sums):
        raise MemoryDamaged(memory_id, keys.doc_of_doc_key(key))


class Damage:
    """Damage found since the store was opened. Thread-safe.

    Damaged documents are left out of views, and a project with any is checked memory by memory when it is loaded.
    Other damaged entries are recorded when they are left out. `of_database` is damage of the database itself.
    """

    def __init__(self) -> None:
        self._docs: dict[int, set[int]] = {}
        self._entries: set[tuple[str, bytes]] = set()
        self._lock = Lock()
        self.of_database: DatabaseDamaged | None = None

    def note(self, number: int, doc: int) -> bool:
        """Record a damaged document of a project; False if it was known."""
        with self._lock:
            docs = self._docs.setdefault(number, set())
            is_new = doc not in docs
            docs.add(doc)
        return is_new

    def note_entry(self, what: str, key: bytes) -> None:
        """Record and log a damaged entry other than a document; `what` names it in the log."""
        with self._lock:
            is_new = (what, key) not in self._entries
            self._entries.add((what, key))
        if is_new:
            _log.error("%s is damaged on the disk and left out", what)

    def settle(self, number: int, docs: Iterable[int]) -> None:
        """Replace a project's damaged documents after a complete check."""
        with self._lock:
            self._docs[number] = set(docs)

    def of(self, number: int) -> frozenset[int]:
        """Damaged documents of a project."""
        with self._lock:
            return frozenset(self._docs.get(number, ()))

    @property
    def is_any(self) -> bool:
        """True if any damaged document was found."""
        return any(self._docs.values())

    @property
    def count(self) -> int:
        """Number of damaged memories and other entries found, in all projects."""
        with self._lock:
            return sum(map(len, self._docs.values())) + len(self._entries)
