"""Walks over a range of keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

import lmdb

_SLICE_ENTRIES = 4096


def entries(
    txn: lmdb.Transaction[bytes], table: lmdb._Database, prefix: bytes, start: bytes = b""
) -> Iterator[tuple[bytes, bytes]]:
    """Keys that begin with the prefix, and their values, in order.

    Args:
        txn: Any transaction.
        table: Where to look.
        prefix: Of all keys.
        start: The first key, if it is behind the prefix itself.
    """
    with txn.cursor(table) as cursor:
        if not cursor.set_range(max(prefix, start)):
            return
        for key, value in cursor.iternext(keys=True, values=True):
            if not key.startswith(prefix):
                return
            yield key, value


def slices(txn: lmdb.Transaction[bytes], table: lmdb._Database, prefix: bytes, expected: int) -> Iterator[list[bytes]]:
    """The values of all keys that begin with the prefix, in order, some thousands at a time.

    Args:
        txn: Any transaction.
        table: Where to look.
        prefix: Of all keys.
        expected: About how many there are: so many are read at first.
    """
    with txn.cursor(table) as cursor:
        if not cursor.set_range(prefix):
            return
        pairs = cursor.iternext(keys=True, values=True)
        # One more than expected shows that there are no more.
        while found := list(islice(pairs, min(max(expected, 0) + 1, _SLICE_ENTRIES))):
            end = bisect_left(found, True, key=lambda pair: not pair[0].startswith(prefix))
            yield [value for _, value in found[:end]]
            if end < len(found):
                return
            expected -= end
