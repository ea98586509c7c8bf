"""Operations: what each write did to the memories, so that a view in memory can follow.

A put names the new document. A removal carries the terms that the document held as well, because its forward list is
gone by the time anyone reads the operation.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable

import lmdb
import numpy as np

from hummock.store.lmdb import keys, record_codec
from hummock.store.lmdb.environment import Tables
from hummock.store.views.forward_lists import unpack_terms
from hummock.store.views.stored import Changes

_PUT = 1
_REMOVE = 2
_HEAD = struct.Struct("<BQ")


def pack_put(doc: int) -> bytes:
    """A new document."""
    return _HEAD.pack(_PUT, doc)


def pack_removal(doc: int, forward_list: bytes) -> bytes:
    """A document that is gone, with its stored forward list."""
    return _HEAD.pack(_REMOVE, doc) + unpack_terms(forward_list).tobytes()


def unpack_op(value: bytes) -> tuple[int, bool]:
    """The document that an operation is about, and whether it removed it."""
    action, doc = _HEAD.unpack_from(value)
    return doc, action == _REMOVE


def net(operations: Iterable[bytes]) -> Changes:
    """What operations come to, in their order."""
    put: dict[int, None] = {}
    removed: list[int] = []
    removed_terms: list[bytes] = []
    for value in operations:
        action, doc = _HEAD.unpack_from(value)
        if action == _PUT:
            put[doc] = None
        elif doc in put:
            del put[doc]
        else:
            removed.append(doc)
            removed_terms.append(value[_HEAD.size :])
    return Changes(
        put=list(put),
        removed=np.array(removed, np.int64),
        removed_terms=np.frombuffer(b"".join(removed_terms), "<u4"),
    )


def trim(
    txn: lmdb.Transaction[bytes], tables: Tables, number: int, record: record_codec.ProjectRecord, kept: int, most: int
) -> None:
    """Removes operations that no view in memory is likely to lack, and moves `ops_after` behind them.

    Args:
        txn: The write's transaction.
        tables: Of the store.
        number: The project's.
        record: The project's, with the write's seq.
        kept: Writes whose operations stay.
        most: Operations that are removed at most.
    """
    due = record.seq - kept
    if due <= record.ops_after:
        return
    prefix = keys.project_prefix(number)
    first = itertools.islice(keys.entries(txn, tables.ops, prefix), most)
    trimmed = list(itertools.takewhile(lambda entry: keys.seq_of_op_key(entry[0]) <= due, first))
    for key, value in trimmed:
        txn.delete(key, db=tables.ops)
        if value[0] == _REMOVE:
            txn.delete(key, db=tables.removed)
    record.ops_after = due if len(trimmed) < most else keys.seq_of_op_key(trimmed[-1][0])
