"""Vectors by the text that they were made of: those of any chunk that is there, and for a while those of removed ones.

Only chunks whose digest is known take part; see `Embedding.digest`. Keys begin with the digest and not with a project:
what is found is a copy of vectors, and nothing of whoever has the text.
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
"""Most chunks with the same text that are tried: more than one is needed only where some are damaged."""

Parts = tuple[bytes, bytes]
"""A vector and its token vectors as they are stored."""


def split(digests: bytes) -> Iterator[bytes]:
    """Digests that stand one after the other."""
    return (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))


def find(engine: Engine, digest: bytes) -> Parts | None:
    """The vectors of a text; None if no memory has it, or had it lately."""
    tables = engine.tables
    with engine.answering() as txn:
        chunk_keys = [
            key[DIGEST_BYTES:] for key, _ in islice(keys.entries(txn, tables.by_digest, digest), _MOST_CHUNKS)
        ]
    for chunk_key in chunk_keys:
        with engine.answering(keys.project_of_chunk_key(chunk_key)) as txn:
            sound = _sound_parts(txn, tables, digest, chunk_key)
        if sound is not None:
            return sound
    # Behind them: what was removed meanwhile has left its vectors.
    with engine.answering() as txn:
        retired = integrity.opened(digest, txn.get(digest, b"", db=tables.retired))
    if retired is None:
        return None
    size = int.from_bytes(retired[_TIME.size : _TIME.size + 4], "big")
    parts = retired[_TIME.size + 4 :]
    return parts[:size], parts[size:]


def _sound_parts(txn: Transaction, tables: Tables, digest: bytes, chunk_key: bytes) -> Parts | None:
    """The vectors of a chunk; None where they are not what was written, or it is not a chunk of this text."""
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
    except msgspec.MsgspecError:  # of before there were checksums
        return None
    is_its_own = digests[chunk * DIGEST_BYTES : (chunk + 1) * DIGEST_BYTES] == digest
    return (vector, tokens) if is_its_own else None


def note(txn: Transaction, tables: Tables, chunk_key: bytes, digest: bytes) -> None:
    """A chunk has a text; what was retired of that text is there again."""
    txn.put(digest + chunk_key, b"", db=tables.by_digest)
    stored = txn.pop(digest, db=tables.retired)
    retired = None if stored is None else integrity.opened(digest, stored)
    if retired is not None:
        txn.delete(retired[: _TIME.size] + digest, db=tables.retired_age)


def retire(txn: Transaction, tables: Tables, chunk_key: bytes, digest: bytes, now: float) -> None:
    """A chunk is about to be removed, at `now` in Unix seconds: the last one with its text leaves its vectors."""
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
    """A chunk is about to be removed, and leaves nothing."""
    txn.delete(digest + chunk_key, db=tables.by_digest)


def trim(txn: Transaction, engine: Engine, now: float, limits: StoreLimits) -> None:
    """Forgets some vectors of removed texts: those that are too old, and the oldest where all take too much room."""
    tables = engine.tables
    is_too_much = engine.table_bytes(txn, tables.retired) > limits.retired_bytes
    oldest = _TIME.pack(max(int((now - limits.retired_kept_s) * 1000), 0))
    first = islice(keys.entries(txn, tables.retired_age, b""), limits.trimmed_entries)
    for key, _ in list(takewhile(lambda entry: is_too_much or entry[0][: _TIME.size] < oldest, first)):
        txn.delete(key, db=tables.retired_age)
        txn.delete(key[_TIME.size :], db=tables.retired)
