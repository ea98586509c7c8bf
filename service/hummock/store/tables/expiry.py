"""Expired memories of all projects that are still to be removed, by expiry time."""

from __future__ import annotations

from itertools import islice, takewhile

from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Engine
from hummock.store.tables.lookups import project_record
from hummock.store.views.stored import ProjectGone


def expired(engine: Engine, now: float, limit: int) -> list[tuple[str, str]]:
    """Projects and ids of at most `limit` memories expired at `now`, in Unix seconds; the earliest first."""
    with engine.reading() as txn:
        ends = (keys.of_expiry_key(key) for key, _ in keys.entries(txn, engine.tables.expiry, b""))
        ended = [(number, doc) for _, number, doc in islice(takewhile(lambda end: end[0] <= now, ends), limit)]
    found = (_ended(engine, number, doc, now) for number, doc in ended)
    return [one for one in found if one is not None]


def _ended(engine: Engine, number: int, doc: int, now: float) -> tuple[str, str] | None:
    with engine.reading(number) as txn:
        value = txn.get(keys.doc_key(number, doc), db=engine.tables.memory)
        try:
            project = project_record(txn, engine, number).name
        except ProjectGone:  # its expiry entries are cleared with its other entries
            return None
    memory = None if value is None else record_codec.memory_of(value, None)
    return (project, memory.id) if memory is not None and memory.is_over(now) else None
