"""Entries that carry a checksum of their own: sessions and messages, what was learnt, and by what memories are found.

A sealed value is a byte with which no MessagePack begins, CRC-32 of the key and the value, and the value. Values of
before there were seals have none until they are written again, and are taken as they are. Numbers, which are no
MessagePack, are known by their length.

A key that is damaged is looked for in vain. Then its entry lies beside the place of the one that is looked for, since
the way through the tree takes a wrong turn nowhere but at that entry. So who finds nothing looks at its neighbours.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar
from zlib import crc32

import msgspec

from hummock.store.errors import EntryDamaged
from hummock.store.tables.engine import ChecksItsPages, Cursor, Table, Transaction

_MARK = 0xC1
_HEAD = struct.Struct("<BI")
_NUMBER_BYTES = 8
UNREADABLE = (msgspec.MsgspecError, struct.error, ValueError, TypeError, KeyError, IndexError)
"""What decoding may raise of a value that no seal kept from being damaged."""

Value = TypeVar("Value")
Open = Callable[[bytes, bytes], bytes | None]
"""`opened` or `opened_number`."""
Lost: TypeAlias = "Callable[[Transaction, Table, bytes], bool]"
"""`is_lost` for who writes, so that nobody is kept from writing beside what is damaged; else `may_be_lost`."""


def seal(key: bytes, value: bytes) -> bytes:
    """What is stored of a value under this key."""
    return _HEAD.pack(_MARK, crc32(value, crc32(key))) + value


def opened(key: bytes, stored: bytes) -> bytes | None:
    """The value that is stored under this key; None where it is not what was written, as where nothing is."""
    if not stored or stored[0] != _MARK:
        return stored or None
    return stored[_HEAD.size :] if _fits(key, stored) else None


def opened_number(key: bytes, stored: bytes) -> bytes | None:
    """The eight bytes of a number, without their seal; None if they are damaged."""
    if len(stored) == _NUMBER_BYTES:
        return stored
    is_sealed = len(stored) == _HEAD.size + _NUMBER_BYTES and stored[0] == _MARK
    return stored[_HEAD.size :] if is_sealed and _fits(key, stored) else None


def _fits(key: bytes, stored: bytes) -> bool:
    if len(stored) < _HEAD.size:
        return False
    return bool(_HEAD.unpack_from(stored)[1] == crc32(memoryview(stored)[_HEAD.size :], crc32(key)))


def decoded(what: str, key: bytes, stored: bytes, decode: Callable[[bytes], Value]) -> Value:
    """What a value says; `what` it is, for people. Raises: EntryDamaged."""
    value = opened(key, stored)
    if value is None:
        raise EntryDamaged(what)
    try:
        return decode(value)
    except UNREADABLE as error:  # of before there were seals
        raise EntryDamaged(what) from error


def number(what: str, key: bytes, stored: bytes) -> bytes:
    """A number's eight bytes; `what` it is, for people. Raises: EntryDamaged."""
    value = opened_number(key, stored)
    if value is None:
        raise EntryDamaged(what)
    return value


def is_lost(txn: Transaction, table: Table, key: bytes) -> bool:
    """Whether a key that is looked for in vain is there, and damaged: a seal beside its place is that of its value."""
    return any(not is_in_order or _is_of(key, stored) for _, stored, is_in_order in _beside(txn, table, key))


def may_be_lost(txn: Transaction, table: Table, key: bytes, open_: Open = opened) -> bool:
    """Whether a key that is looked for in vain may be there: beside its place lies one that is not what was written."""
    return any(
        not is_in_order or open_(found, stored) is None for found, stored, is_in_order in _beside(txn, table, key)
    )


def number_may_be_lost(txn: Transaction, table: Table, key: bytes) -> bool:
    """Whether a missing key of a table of numbers may be explained by damage; see `may_be_lost`."""
    return may_be_lost(txn, table, key, opened_number)


def _is_of(key: bytes, stored: bytes) -> bool:
    return bool(stored) and stored[0] == _MARK and _fits(key, stored)


def _beside(txn: Transaction, table: Table, key: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """The entries before and behind the place of a key that is not there, and whether they are so by their keys."""
    if isinstance(txn, ChecksItsPages):
        return
    with txn.cursor(table) as cursor:
        is_behind = cursor.set_range(key)
        if is_behind:
            yield cursor.key(), cursor.value(), cursor.key() > key
        if cursor.prev() if is_behind else cursor.last():
            yield cursor.key(), cursor.value(), cursor.key() < key


def entries(txn: Transaction, table: Table, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes | None]]:
    """Keys that begin with the prefix, in order, and their values: None where one is not what was written.

    What is damaged beside them is given as well, for it may have been one of them. Without a seal that is also what
    stands where the order of its key does not let it be.

    Args:
        txn: Any transaction.
        table: Where to look.
        prefix: Of all keys.
        start: The first key, if it is behind the prefix itself.
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


def _go_before(cursor: Cursor, first: bytes) -> bool:
    """Goes to the first of these keys, or to what is damaged before it; False where there is neither."""
    if not (cursor.prev() if cursor.set_range(first) else cursor.last()):
        return bool(cursor.first())
    while cursor.key() >= first or opened(cursor.key(), cursor.value()) is None:
        if not cursor.prev():
            return bool(cursor.first())
    return bool(cursor.next())
