"""Batch of one project's pending memories from several requests, written table by table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.core.memory import Memory, Terms
from hummock.core.settings import ProjectSettings
from hummock.store.tables import integrity, keys, record_codec, text_vectors
from hummock.store.tables.engine import Engine, Table, Tables, Transaction
from hummock.store.tables.forward_lists import TermDictionary, length, pack, with_learned
from hummock.store.tables.row_codec import TokenSign, embedded, pack_row, renumbered


def move_doc(
    txn: Transaction, tables: Tables, number: int, space: int, old: int, new: int, forward_list: bytes
) -> Memory:
    """Copy a document to a new number with another forward list; returns its memory without the payload.

    The caller removes the old document and updates the memory's id.
    """
    old_key, new_key = keys.doc_key(number, old), keys.doc_key(number, new)
    is_sound = integrity.is_sound(txn, tables, number, space, old)
    value = txn.get(old_key, b"", db=tables.memory)
    record = record_codec.decode_memory(value)
    txn.put(new_key, value, db=tables.memory)
    txn.put(new_key, txn.get(old_key, b"", db=tables.payload), db=tables.payload)
    txn.put(new_key, renumbered(txn.get(old_key, b"", db=tables.column), new), db=tables.column)
    txn.put(new_key, forward_list, db=tables.terms)
    if not record.memory.chunk_count:
        txn.put(new_key, b"", db=tables.pending)
    for chunk in range(record.memory.chunk_count):
        old_chunk, new_chunk = keys.chunk_key(number, space, old, chunk), keys.chunk_key(number, space, new, chunk)
        for table in (tables.vector, tables.token):
            part = txn.get(old_chunk, db=table)
            if part is not None:
                txn.put(new_chunk, part, db=table)
    for chunk, digest in enumerate(text_vectors.split(record.digests)):
        text_vectors.note(txn, tables, keys.chunk_key(number, space, new, chunk), digest)
    if record.text:
        txn.put(keys.text_key(number, record.text, new), b"", db=tables.by_text)
    if record.memory.expire_time is not None:
        txn.put(keys.expiry_key(record.memory.expire_time, number, new), b"", db=tables.expiry)
    if is_sound:
        integrity.keep_sums(txn, tables, number, space, new)
    else:
        # The old checksums do not match the new key, so a damaged document stays detectable.
        txn.put(new_key, txn.get(old_key, b"", db=tables.checksum), db=tables.checksum)
    return record.memory


def drop_chunks(txn: Transaction, tables: Tables, number: int, space: int, doc: int) -> None:
    """Remove the vectors of a document in a space that is not in use."""
    prefix = keys.chunks_prefix(number, space, doc)
    for key in [key for key, _ in keys.entries(txn, tables.vector, prefix)]:
        txn.delete(key, db=tables.vector)
        txn.delete(key, db=tables.token)


_NUMBER_BYTES = 8
_TERM_BYTES = 4

Entry = tuple[bytes, bytes]  # A key and its value.


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """A memory to be written. Without embeddings it waits for them."""

    memory: Memory
    payload: bytes  # Its encoded record.
    doc: int
    position: int
    text: bytes  # From `keys.text_bytes`.
    terms: Terms
    learned: bytes  # Forward list of its learned keywords.
    verdicts: tuple[int, int]  # Numbers of its verdicts.
    embeddings: Sequence[Embedding]


@dataclass(slots=True, eq=False)
class Waiting:
    """Pending memories in the order of their puts, by id, and the first id of each text.

    `texts` has the first id of a text under None, and the first with a creation time under that time.
    """

    puts: list[Put] = field(default_factory=list)
    ids: dict[str, Put] = field(default_factory=dict)
    texts: dict[tuple[bytes, float | None], str] = field(default_factory=dict)
    notes: list[Entry] = field(default_factory=list)  # Pending operations of these memories.

    def add(self, put: Put) -> None:
        """Add a memory whose id is not pending yet."""
        self.puts.append(put)
        self.ids[put.memory.id] = put
        if put.text:
            self.texts.setdefault((put.text, None), put.memory.id)
            self.texts.setdefault((put.text, put.memory.create_time), put.memory.id)

    def take(self, newer: Waiting) -> None:
        """Append all memories of another batch, which is empty afterwards."""
        self.puts += newer.puts
        self.ids |= newer.ids
        self.texts = newer.texts | self.texts
        self.notes += newer.notes
        newer.clear()

    def clear(self) -> None:
        """Empty the batch."""
        self.puts, self.ids, self.texts, self.notes = [], {}, {}, []


class WriteBatch:
    """Pending writes of one transaction to a project's memories: batched NumPy and LMDB calls cost less."""

    def __init__(self, engine: Engine, txn: Transaction, number: int, dictionary: TermDictionary) -> None:
        """Create an empty batch; `number` and `dictionary` are the project's."""
        self._engine = engine
        self._tables = engine.tables
        self._txn = txn
        self._number = number
        self._dictionary = dictionary
        self.waiting = Waiting()
        self.settings: ProjectSettings | None = None  # The project's own, once they were read.

    def write(self, record: record_codec.ProjectRecord) -> None:
        """Write the pending memories, each table in the order of its keys; new terms are counted in the record."""
        waiting = self.waiting
        self.put(self._tables.ops, waiting.notes)
        if waiting.puts:
            self._write(waiting.puts, record)
        waiting.clear()

    def put(self, table: Table, entries: Iterable[Entry]) -> None:
        """Put entries into a table."""
        entries = list(entries)
        if len(entries) == 1:
            self._txn.put(*entries[0], db=table)
        elif entries:
            with self._txn.cursor(table) as cursor:
                cursor.putmulti(entries)

    def forward_lists(self, several: Sequence[Terms], record: record_codec.ProjectRecord) -> list[bytes]:
        """Encode the terms of each memory; new terms are stored, and counted in the record."""
        return pack(several, self._dictionary, lambda spelt: self._term_numbers(spelt, record))

    def _write(self, puts: Sequence[Put], record: record_codec.ProjectRecord) -> None:
        tables, number = self._tables, self._number
        doc_keys = [keys.doc_key(number, put.doc) for put in puts]
        records = [
            record_codec.encode_memory(put.memory, put.text, put.position, digests_of(put.embeddings)) for put in puts
        ]
        rows = [
            pack_row(
                put.memory,
                put.doc,
                length(put.terms),
                put.position,
                len(put.embeddings),
                put.verdicts,
                TokenSign.of(put.embeddings),
            )
            for put in puts
        ]
        payloads = [put.payload for put in puts]
        own = self.forward_lists([put.terms for put in puts], record)
        lists = [with_learned(one, put.learned) if put.learned else one for one, put in zip(own, puts, strict=True)]
        self.put(tables.memory, zip(doc_keys, records, strict=True))
        self.put(tables.payload, zip(doc_keys, payloads, strict=True))
        self.put(tables.column, zip(doc_keys, rows, strict=True))
        self.put(tables.terms, zip(doc_keys, lists, strict=True))
        of_chunks = self.put_embeddings([(put.doc, put.embeddings) for put in puts], record.active_space)
        parts = zip(doc_keys, zip(records, payloads, rows, lists, strict=True), of_chunks, strict=True)
        sums = [(key, integrity.row_of([*[(key, one) for one in of_doc], *of])) for key, of_doc, of in parts]
        self.put(tables.checksum, sums)
        pending = [key for key, put in zip(doc_keys, puts, strict=True) if not put.embeddings]
        self.put(tables.pending, [(key, b"") for key in pending])
        record.pending += len(pending)
        ids = sorted([(keys.name_key(number, put.memory.id), packed(put.doc)) for put in puts])
        self.put(tables.by_id, [(key, integrity.seal(key, value)) for key, value in ids])
        ends = [
            keys.expiry_key(put.memory.expire_time, number, put.doc)
            for put in puts
            if put.memory.expire_time is not None
        ]
        self.put(tables.expiry, [(key, b"") for key in sorted(ends)])
        texts = [keys.text_key(number, put.text, put.doc) for put in puts if put.text]
        self.put(tables.by_text, [(key, b"") for key in sorted(texts)])

    def embed(
        self,
        doc: int,
        stored: record_codec.MemoryRecord,
        embeddings: Sequence[Embedding],
        record: record_codec.ProjectRecord,
    ) -> None:
        """Store the vectors of a pending document; everything else of it stays unchanged."""
        key = keys.doc_key(self._number, doc)
        is_sound = integrity.is_sound(self._txn, self._tables, self._number, record.active_space, doc)
        memory = msgspec.structs.replace(stored.memory, chunk_count=len(embeddings))
        row = embedded(self._txn.get(key, b"", db=self._tables.column), embeddings)
        value = record_codec.encode_memory(memory, stored.text, stored.session_position, digests_of(embeddings))
        self._txn.put(key, value, db=self._tables.memory)
        self._txn.put(key, row, db=self._tables.column)
        self._txn.delete(key, db=self._tables.pending)
        record.pending -= 1
        self.put_embeddings([(doc, embeddings)], record.active_space)
        if is_sound:
            integrity.keep_sums(self._txn, self._tables, self._number, record.active_space, doc)

    def put_embeddings(
        self, docs: Sequence[tuple[int, Sequence[Embedding]]], space: int, dim: int | None = None
    ) -> list[list[Entry]]:
        """Store the vectors of these documents, which ascend; `dim` is for a space that is not in use.

        Returns the vector and the token vectors of each document's chunks in turn, as `integrity.row_of` takes them.
        """
        dim = dim or self._engine.space.dim
        vectors = [embedding.vector for _, embeddings in docs for embedding in embeddings]
        for vector in vectors:
            if vector.shape != (dim,):
                raise ValueError(f"a vector of shape {vector.shape} is not {dim} finite numbers")
        joined = np.concatenate(vectors) if vectors else np.empty(0, np.float32)
        if not np.isfinite(joined).all():
            raise ValueError(f"a vector is not {dim} finite numbers")
        halves, size = joined.astype("<f2").tobytes(), 2 * dim
        starts = itertools.count(0, size)
        of_chunks: list[list[Entry]] = []
        for doc, embeddings in docs:
            of_chunks.append([])
            for chunk, embedding in enumerate(embeddings):
                key, start = keys.chunk_key(self._number, space, doc, chunk), next(starts)
                tokens = embedding.tokens.astype(np.int8, copy=False).tobytes()
                of_chunks[-1] += ((key, halves[start : start + size]), (key, tokens))
                if embedding.digest:
                    text_vectors.note(self._txn, self._tables, key, embedding.digest)
        parts = list(itertools.chain.from_iterable(of_chunks))
        self.put(self._tables.vector, parts[::2])
        self.put(self._tables.token, [entry for entry in parts[1::2] if entry[1]])
        return of_chunks

    def _term_numbers(self, spelt: Sequence[str], record: record_codec.ProjectRecord) -> NDArray[np.uint32]:
        """The numbers of (n,) terms, (n,) uint32; new terms get numbers in their order."""
        names = keys.name_keys(self._number, spelt)
        with self._txn.cursor(self._tables.term) as cursor:
            numbers = dict(cursor.getmulti(sorted(set(names))))
        new = [name for name in dict.fromkeys(names) if name not in numbers]
        made = [(name, number.to_bytes(_TERM_BYTES, "little")) for number, name in enumerate(new, record.next_term)]
        record.next_term += len(new)
        self.put(self._tables.term, sorted(made))
        numbers.update(made)
        return np.frombuffer(b"".join([numbers[name] for name in names]), "<u4").astype(np.uint32, copy=False)


def digests_of(embeddings: Sequence[Embedding]) -> bytes:
    """The concatenated digests of all embeddings; empty unless each has one."""
    digests = [one.digest for one in embeddings]
    return b"".join(digests) if all(digests) else b""


def packed(number: int) -> bytes:
    """Encode a document number or a count as a value."""
    return number.to_bytes(_NUMBER_BYTES, "little")
