"""Memories as they are kept, read whole for an export."""

from __future__ import annotations

import lmdb
import numpy as np

from hummock.core.embedding import Embedding
from hummock.core.transfer import KeptMemory, KeptPage
from hummock.store import keys, scan
from hummock.store.environment import Environment
from hummock.store.limits import KEPT_PAGE_BYTES
from hummock.store.records import codec, operations


def kept_behind(
    environment: Environment,
    txn: lmdb.Transaction[bytes],
    number: int,
    after: int,
    after_seq: int,
    *,
    with_vectors: bool,
) -> KeptPage:
    """The memories behind the document `after`, until they fill a page, and what was removed of those before it."""
    record = environment.project_record(txn, number)
    removed_ids = _removed(environment, txn, number, record, after, after_seq)
    if removed_ids is None:
        return KeptPage(memories=(), removed_ids=(), next_after=None, seq=record.seq, is_reset=True)
    memories: list[KeptMemory] = []
    read_bytes, last = 0, after
    start = keys.doc_key(number, after + 1)
    for key, value in scan.entries(txn, environment.tables.memory, keys.project_prefix(number), start):
        if read_bytes >= KEPT_PAGE_BYTES:
            return KeptPage(memories=tuple(memories), removed_ids=removed_ids, next_after=last, seq=record.seq)
        last = keys.doc_of_doc_key(key)
        payload = txn.get(key, b"", db=environment.tables.payload)
        stored = codec.decode_memory(value)
        embeddings = _embeddings(environment, txn, number, record.active_space, last) if with_vectors else ()
        memories.append(
            KeptMemory(
                memory=codec.memory_of(stored, codec.decode_payload(payload)),
                session_position=stored.session_position,
                embeddings=embeddings,
            )
        )
        read_bytes += len(value) + len(payload) + sum(one.vector.nbytes + one.tokens.nbytes for one in embeddings)
    return KeptPage(memories=tuple(memories), removed_ids=removed_ids, next_after=None, seq=record.seq)


def _removed(
    environment: Environment,
    txn: lmdb.Transaction[bytes],
    number: int,
    record: codec.ProjectRecord,
    after: int,
    after_seq: int,
) -> tuple[str, ...] | None:
    """Ids of the documents up to `after` that writes behind `after_seq` removed; None where they are not known."""
    if not record.ops_after <= after_seq <= record.seq:
        return None
    ids: dict[str, None] = {}
    start = keys.op_key(number, after_seq + 1, 0)
    for key, value in scan.entries(txn, environment.tables.ops, keys.project_prefix(number), start):
        doc, is_removal = operations.unpack_op(value)
        if is_removal and doc <= after:
            memory_id = txn.get(key, db=environment.tables.removed)
            if memory_id is None:  # written by a version that did not keep it
                return None
            ids[memory_id.decode()] = None
    return tuple(ids)


def _embeddings(
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, space: int, doc: int
) -> tuple[Embedding, ...]:
    """Of the chunks of a document, in their order."""
    token_dim = environment.space.token_dim
    found = scan.entries(txn, environment.tables.vector, keys.chunks_prefix(number, space, doc))
    return tuple(
        Embedding(
            vector=np.frombuffer(value, "<f2").astype(np.float32),
            tokens=np.frombuffer(txn.get(key, b"", db=environment.tables.token), np.int8).reshape(-1, token_dim),
        )
        for key, value in found
    )
