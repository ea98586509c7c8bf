"""Replies by request_id, so that a repeated request gets the same reply and has no effect."""

from __future__ import annotations

import itertools
import threading

import msgspec

from hummock.core.errors import RequestIdReused
from hummock.ports.writes import Reply, Written
from hummock.store.limits import StoreLimits
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Tables, Transaction

# msgspec describes a type when it first decodes it, and two threads that do so together crash the process. Other types
# are described at import, by a decoder or `record_codec.converter`; those of replies belong to their writers.
_describing = threading.Lock()


def written(record: record_codec.RequestRecord, reply_type: type[Reply]) -> Written[Reply]:
    """The write of a stored reply, marked as a repeat."""
    with _describing:
        reply = msgspec.msgpack.decode(record.reply, type=reply_type)  # noqa: TID251
    return Written(seq=record.seq, reply=reply, is_repeat=True)


def earlier(
    txn: Transaction, tables: Tables, number: int, request_id: str, fingerprint: bytes, oldest: float
) -> record_codec.RequestRecord | None:
    """The earlier reply to a request, or None; also if it is before `oldest`, Unix seconds. Raises: RequestIdReused."""
    value = txn.get(keys.name_key(number, request_id), db=tables.request) if request_id else None
    if value is None:
        return None
    record = record_codec.decode_request(value)
    if record.time < oldest:
        return None
    if record.fingerprint != fingerprint:
        raise RequestIdReused(request_id)
    return record


def remember(
    txn: Transaction, tables: Tables, number: int, request_id: str, record: record_codec.RequestRecord
) -> None:
    """Store a reply."""
    key = keys.name_key(number, request_id)
    txn.put(key, record_codec.encode(record), db=tables.request)
    txn.put(_age_key(number, record), key, db=tables.request_age)


def trim(txn: Transaction, tables: Tables, number: int, oldest: float, limits: StoreLimits) -> None:
    """Remove some replies that are older than `oldest` (Unix seconds)."""
    prefix = keys.project_prefix(number)
    first = itertools.islice(keys.entries(txn, tables.request_age, prefix), limits.trimmed_entries)
    aged = itertools.takewhile(lambda entry: keys.time_of_age_key(entry[0]) < oldest, first)
    for age_key, request_key in list(aged):
        txn.delete(age_key, db=tables.request_age)
        value = txn.get(request_key, db=tables.request)
        # The id may have been used again since; that reply has its own age entry.
        if value is not None and _age_key(number, record_codec.decode_request(value)) == age_key:
            txn.delete(request_key, db=tables.request)


def _age_key(number: int, record: record_codec.RequestRecord) -> bytes:
    return keys.age_key(number, record.time, record.seq)
