"""Vectors by the text they were made of: from any present chunk, and for a while from removed ones.

Only chunks with a known digest are included; see `Embedding.digest`. Keys begin with the digest and not with a project:
a look-up returns a copy of vectors, and nothing about who has the text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice, takewhile

import msgspec

from hummock.core.embedding import DIGEST_BYTES
from hummock.store.limits import StoreLimits
from hummock.store.tables import integrity, keys, record_codec
from hummock.store.tables.engine import Engine, Tables, Transaction

_TIME = struct.Struct(">Q")

_MOST_CHUNKS = 16
"""Upper bound on chunks of the same text that are tried: more than one is needed only if some are damaged."""

Parts = tuple[bytes, bytes]  # A stored vector and its token vectors.


def split(digests: bytes) -> Iterator[bytes]:
    """Split concatenated digests."""
    return (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))


def find(engine: Engine, digest: bytes) -> Parts | None:
    """The vectors of a text; None if no memory has it or had it recently."""
    tables = engine.tables
    with engine.answering() as txn:
        chunk_keys = [
            key[DIGEST_BYTES:] for key, _ in islice(keys.entries(txn, tables.by_digest, digest), _MOST_CHUNKS)
        ]
    for chunk_key in chunk_keys:
        with engine.answering(keys.unpack_project(chunk_key[:4])) as txn:
            sound = _sound_parts(txn, tables, digest, chunk_key)
        if sound is not None:
            return sound
    # Read last: a chunk removed meanwhile has left its vectors there.
    with engine.answering() as txn:
        retired = integrity.opened(digest, txn.get(digest, b"", db=tables.retired))
    if retired is None:
        return None
    size = int.from_bytes(retired[_TIME.size : _TIME.size + 4], "big")
    parts = retired[_TIME.size + 4 :]
    return parts[:size], parts[size:]


def _sound_parts(txn: Transaction, tables: Tables, digest: bytes, chunk_key: bytes) -> Parts | None:
    """The vectors of a chunk; None if they are damaged, or the chunk has another text."""
    _, doc, chunk = keys.of_chunk_key(chunk_key)
    doc_key = keys.doc_key(keys.unpack_project(chunk_key[:4]), doc)
    record, kept = txn.get(doc_key, b"", db=tables.memory), txn.get(doc_key, db=tables.checksum)
    vector, tokens = txn.get(chunk_key, b"", db=tables.vector), txn.get(chunk_key, b"", db=tables.token)
    place = integrity.vector_place(chunk)
    if not (
        integrity.matches(kept, integrity.MEMORY, doc_key, record)
        and integrity.matches(kept, place, chunk_key, vector)
        and integrity.matches(kept, place + 1, chunk_key, tokens)
    ):
        return None
    try:
        digests = record_codec.decode_memory(record).digests
    except msgspec.MsgspecError:  # written before there were checksums
        return None
    is_its_own = digests[chunk * DIGEST_BYTES : (chunk + 1) * DIGEST_BYTES] == digest
    return (vector, tokens) if is_its_own else None


def note(txn: Transaction, tables: Tables, chunk_key: bytes, digest: bytes) -> None:
    """Record the text of a chunk; retired vectors of that text are dropped, as the chunk has them."""
    txn.put(digest + chunk_key, b"", db=tables.by_digest)
    stored = txn.pop(digest, db=tables.retired)
    retired = None if stored is None else integrity.opened(digest, stored)
    if retired is not None:
        txn.delete(retired[: _TIME.size] + digest, db=tables.retired_age)


def retire(txn: Transaction, tables: Tables, chunk_key: bytes, digest: bytes, now: float) -> None:
    """Prepare the removal of a chunk at `now`, in Unix seconds: the last one of its text leaves its vectors."""
    if txn.pop(digest + chunk_key, db=tables.by_digest) is None:
        return
    if next(keys.entries(txn, tables.by_digest, digest), None) is not None:
        return
    time = _TIME.pack(max(int(now * 1000), 0))
    vector, tokens = txn.get(chunk_key, b"", db=tables.vector), txn.get(chunk_key, b"", db=tables.token)
    parts = time + len(vector).to_bytes(4, "big") + vector + tokens
    txn.put(digest, integrity.seal(digest, parts), db=tables.retired)
    txn.put(time + digest, b"", db=tables.retired_age)


def drop(txn: Transaction, tables: Tables, chunk_key: bytes, digest: bytes) -> None:
    """Prepare the removal of a chunk that leaves nothing."""
    txn.delete(digest + chunk_key, db=tables.by_digest)


def trim(txn: Transaction, engine: Engine, now: float, limits: StoreLimits) -> None:
    """Remove some retired vectors: those that are too old, and the oldest if all together take too much space."""
    tables = engine.tables
    is_too_much = engine.table_bytes(txn, tables.retired) > limits.retired_bytes
    oldest = _TIME.pack(max(int((now - limits.retired_kept_s) * 1000), 0))
    first = islice(keys.entries(txn, tables.retired_age, b""), limits.trimmed_entries)
    for key, _ in list(takewhile(lambda entry: is_too_much or entry[0][: _TIME.size] < oldest, first)):
        txn.delete(key, db=tables.retired_age)
        txn.delete(key[_TIME.size :], db=tables.retired)
