"""Walks over a range of keys."""

from __future__ import annotations

from collections.abc import Iterator

import lmdb


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
