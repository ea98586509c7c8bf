"""What has expired and is still to be removed, of all projects, by when it ended."""

from __future__ import annotations

from itertools import islice, takewhile

import lmdb

from hummock.store.lmdb import keys, record_codec
from hummock.store.lmdb.environment import Environment
from hummock.store.views.stored import ProjectGone


def expired(txn: lmdb.Transaction[bytes], environment: Environment, now: float, limit: int) -> list[tuple[str, str]]:
    """Projects and ids of at most `limit` memories that have ended at `now`, in Unix seconds; the first comes first."""
    found: list[tuple[str, str]] = []
    ends = (keys.of_expiry_key(key) for key, _ in keys.entries(txn, environment.tables.expiry, b""))
    for _, number, doc in islice(takewhile(lambda end: end[0] <= now, ends), limit):
        value = txn.get(keys.doc_key(number, doc), db=environment.tables.memory)
        try:
            project = environment.project_record(txn, number).name
        except ProjectGone:  # its entries go with what else it left
            continue
        memory = None if value is None else record_codec.memory_of(value, None)
        if memory is not None and memory.is_over(now):
            found.append((project, memory.id))
    return found
