"""The changes of one write, inside its own nested transaction."""

from __future__ import annotations

from collections.abc import Sequence

import lmdb
import numpy as np

from hummock.core.embedding import Embedding
from hummock.core.memory import Memory
from hummock.core.project import ProjectInfo
from hummock.ports import Terms, TextKey
from hummock.store import codec, keys, operations, scan, terms
from hummock.store.columns import pack_row
from hummock.store.environment import Environment

_NUMBER_BYTES = 8
_TERM_BYTES = 4


class Unit:
    """The store's UnitOfWork. It changes tables and its project's record; the writer stores the record."""

    def __init__(
        self, environment: Environment, txn: lmdb.Transaction[bytes], number: int, record: codec.ProjectRecord, seq: int
    ) -> None:
        """Args are the transaction, the project's number and record, and the seq that the write will have."""
        self._environment = environment
        self._tables = environment.tables
        self._txn = txn
        self._number = number
        self._record = record
        self._seq = seq
        self.operations = 0
        self.has_put = False
        self.has_changed = False

    def get(self, memory_id: str) -> Memory | None:
        """The memory as this unit of work sees it, with its payload."""
        doc = self._doc(memory_id)
        if doc is None:
            return None
        payload = self._txn.get(keys.doc_key(self._number, doc), b"", db=self._tables.payload)
        return codec.memory_of(self._memory(doc), codec.decode_payload(payload))

    def find_by_text(self, key: TextKey) -> str | None:
        """The id of the oldest memory that was put with this key."""
        return find_by_text(self._txn, self._environment, self._number, key)

    def put(self, memory: Memory, key: TextKey | None, terms_of: Terms, embeddings: Sequence[Embedding]) -> None:
        """Stores a memory; one with its id is replaced and keeps its place in its session."""
        if memory.payload is None or memory.chunk_count != len(embeddings):
            raise ValueError(f"a memory of {memory.chunk_count} chunks came with {len(embeddings)} embeddings")
        old_doc = self._doc(memory.id)
        old = None if old_doc is None else self._memory(old_doc)
        if old_doc is not None:
            self._remove(old_doc)
        doc = self._record.next_doc
        self._record.next_doc += 1
        position = self._session_position(memory, old)
        text = b"" if key is None else keys.text_bytes(key)
        doc_key = keys.doc_key(self._number, doc)
        self._put(self._tables.memory, doc_key, codec.encode(codec.memory_record(memory, text, position)))
        self._put(self._tables.payload, doc_key, codec.encode(codec.payload_record(memory.payload)))
        row = pack_row(memory, doc, terms.length(terms_of), position, len(embeddings))
        self._put(self._tables.column, doc_key, row)
        self._put(self._tables.terms, doc_key, terms.pack(terms_of, self._term_number))
        self._put_embeddings(doc, embeddings)
        self._put(self._tables.by_id, keys.name_key(self._number, memory.id), _packed(doc))
        if text:
            self._put(self._tables.by_text, keys.text_key(self._number, text, doc), b"")
        self._count(memory.kind, 1)
        self._note(operations.pack_put(doc))
        self.has_put = True

    def delete(self, memory_id: str) -> bool:
        """Removes a memory. False when there is none."""
        doc = self._doc(memory_id)
        if doc is None:
            return False
        self._txn.delete(keys.name_key(self._number, memory_id), db=self._tables.by_id)
        self._remove(doc)
        return True

    def info(self) -> ProjectInfo:
        """The project's information."""
        return codec.info_of(self._record)

    def set_info(self, info: ProjectInfo) -> None:
        """Replaces the project's information."""
        self.has_changed |= info != self.info()
        self._record.tech_stack = info.tech_stack
        self._record.path = info.path

    def _doc(self, memory_id: str) -> int | None:
        return doc_of(self._txn, self._environment, self._number, memory_id)

    def _memory(self, doc: int) -> codec.MemoryRecord:
        return codec.decode_memory(self._txn.get(keys.doc_key(self._number, doc), b"", db=self._tables.memory))

    def _remove(self, doc: int) -> None:
        """Removes all of a document but its id, which may name another one from now on."""
        record = self._memory(doc)
        doc_key = keys.doc_key(self._number, doc)
        forward_list = self._txn.get(doc_key, b"", db=self._tables.terms)
        for table in (self._tables.memory, self._tables.payload, self._tables.column, self._tables.terms):
            self._txn.delete(doc_key, db=table)
        for chunk in range(record.chunk_count):
            chunk_key = keys.chunk_key(self._number, self._record.active_space, doc, chunk)
            self._txn.delete(chunk_key, db=self._tables.vector)
            self._txn.delete(chunk_key, db=self._tables.token)
        if record.text:
            self._txn.delete(keys.text_key(self._number, record.text, doc), db=self._tables.by_text)
        self._count(record.kind, -1)
        self._note(operations.pack_removal(doc, forward_list))

    def _put_embeddings(self, doc: int, embeddings: Sequence[Embedding]) -> None:
        space = self._environment.space
        for chunk, embedding in enumerate(embeddings):
            if embedding.vector.shape != (space.dim,) or not np.isfinite(embedding.vector).all():
                raise ValueError(f"a vector of shape {embedding.vector.shape} is not {space.dim} finite numbers")
            key = keys.chunk_key(self._number, self._record.active_space, doc, chunk)
            self._put(self._tables.vector, key, embedding.vector.astype("<f2").tobytes())
            if embedding.tokens.size:
                self._put(self._tables.token, key, embedding.tokens.astype(np.int8, copy=False).tobytes())

    def _session_position(self, memory: Memory, old: codec.MemoryRecord | None) -> int:
        if not memory.session_id:
            return -1
        if old is not None and old.session_id == memory.session_id:
            return old.session_position
        key = keys.name_key(self._number, memory.session_id)
        position = int.from_bytes(self._txn.get(key, b"", db=self._tables.session), "little")
        self._put(self._tables.session, key, _packed(position + 1))
        return position

    def _term_number(self, term: str) -> int:
        key = keys.name_key(self._number, term)
        known = self._txn.get(key, db=self._tables.term)
        if known is not None:
            return int.from_bytes(known, "little")
        number = self._record.next_term
        self._record.next_term += 1
        self._put(self._tables.term, key, number.to_bytes(_TERM_BYTES, "little"))
        return number

    def _count(self, kind: int, by: int) -> None:
        self._record.kinds[kind] = self._record.kinds.get(kind, 0) + by

    def _note(self, operation: bytes) -> None:
        self._put(self._tables.ops, keys.op_key(self._number, self._seq, self.operations), operation)
        self.operations += 1
        self.has_changed = True

    def _put(self, table: lmdb._Database, key: bytes, value: bytes) -> None:
        self._txn.put(key, value, db=table)


def doc_of(txn: lmdb.Transaction[bytes], environment: Environment, number: int, memory_id: str) -> int | None:
    """The document that has a memory's id."""
    value = txn.get(keys.name_key(number, memory_id), db=environment.tables.by_id)
    return None if value is None else int.from_bytes(value, "little")


def find_by_text(txn: lmdb.Transaction[bytes], environment: Environment, number: int, key: TextKey) -> str | None:
    """The id of the oldest memory that was put with this key."""
    prefix = keys.text_prefix(number, keys.text_bytes(key))
    for found, _ in scan.entries(txn, environment.tables.by_text, prefix):
        doc = keys.doc_of_text_key(found)
        value = txn.get(keys.doc_key(number, doc), b"", db=environment.tables.memory)
        return codec.decode_memory(value).id
    return None


def _packed(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "little")
