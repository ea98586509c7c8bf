"""The op log: the operations of each write, and the export pages and watch events derived from them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.core.memory import EventPage, Memory, MemoryEvent, MemoryEventType
from hummock.core.transfer import ExportedMemory, ExportPage
from hummock.store.limits import EVENT_PAGE_BYTES, EXPORT_PAGE_BYTES
from hummock.store.tables import integrity, keys, record_codec
from hummock.store.tables.engine import Engine, Tables, Transaction
from hummock.store.tables.forward_lists import unpack_terms
from hummock.store.tables.lookups import project_record

PUT, _REMOVE, EMBED, JUDGE = 1, 2, 3, 4
"""Actions: a new document, a removal, the arrival of a pending document's vectors, a change of verdicts."""
_HEAD = struct.Struct("<BQ")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """Net effect of some operations."""

    put: list[int]  # New documents that are still present, ascending.
    embedded: list[int]  # Earlier documents that got their vectors, ascending.
    judged: list[int]  # Earlier documents with changed verdicts, ascending.
    removed: NDArray[np.int64]  # int64 earlier documents that were removed.
    removed_terms: NDArray[np.uint32]  # uint32 concatenated terms of those.


def pack(action: int, doc: int) -> bytes:
    """Encode an operation on a document, other than its removal."""
    return _HEAD.pack(action, doc)


def pack_removal(doc: int, forward_list: bytes) -> bytes:
    """Encode the removal of a document, with its stored forward list."""
    return _HEAD.pack(_REMOVE, doc) + unpack_terms(forward_list).tobytes()


def is_removal(operation: bytes) -> bool:
    """Whether the operation removes a document."""
    return operation[0] == _REMOVE


def net(operations: Iterable[bytes]) -> Changes:
    """Net effect of operations, given in order."""
    put: dict[int, None] = {}
    embedded: dict[int, None] = {}
    judged: dict[int, None] = {}
    removed: list[int] = []
    removed_terms: list[bytes] = []
    for value in operations:
        action, doc = _HEAD.unpack_from(value)
        if action == PUT:
            put[doc] = None
        elif action == EMBED:
            if doc not in put:
                embedded[doc] = None
        elif action == JUDGE:
            if doc not in put:
                judged[doc] = None
        elif doc in put:
            del put[doc]
        else:
            embedded.pop(doc, None)
            judged.pop(doc, None)
            removed.append(doc)
            removed_terms.append(value[_HEAD.size :])
    return Changes(
        put=list(put),
        embedded=sorted(embedded),
        judged=sorted(judged),
        removed=np.array(removed, np.int64),
        removed_terms=np.frombuffer(b"".join(removed_terms), "<u4"),
    )


def trim(
    txn: Transaction, tables: Tables, number: int, record: record_codec.ProjectRecord, kept: int, most: int
) -> None:
    """Remove operations of all but the last `kept` writes, at most so many, and move `ops_after` past them."""
    due = record.seq - kept
    if due <= record.ops_after:
        return
    prefix = keys.project_prefix(number)
    first = itertools.islice(keys.entries(txn, tables.ops, prefix), most)
    trimmed = list(itertools.takewhile(lambda entry: keys.seq_of_op_key(entry[0]) <= due, first))
    for key, value in trimmed:
        txn.delete(key, db=tables.ops)
        if is_removal(value):
            txn.delete(key, db=tables.removed)
    record.ops_after = due if len(trimmed) < most else keys.seq_of_op_key(trimmed[-1][0])


def export_behind(
    engine: Engine,
    txn: Transaction,
    number: int,
    after: int,
    after_seq: int,
    now: float,
    *,
    is_sound: Callable[[int], bool],
    with_vectors: bool,
) -> ExportPage:
    """Memories after the document `after`, until they fill a page, and removals among those up to it.

    Memories expired at `now`, in Unix seconds, and damaged ones are left out.
    """
    record = project_record(txn, engine, number)
    removed_ids = _removed(engine, txn, number, record, after, after_seq)
    if removed_ids is None:
        return ExportPage(memories=(), removed_ids=(), next_after=None, seq=record.seq, is_reset=True)
    memories: list[ExportedMemory] = []
    read_bytes, last = 0, after
    start = keys.doc_key(number, after + 1)
    for key, value in keys.entries(txn, engine.tables.memory, keys.project_prefix(number), start):
        if read_bytes >= EXPORT_PAGE_BYTES:
            return ExportPage(memories=tuple(memories), removed_ids=removed_ids, next_after=last, seq=record.seq)
        last = keys.doc_of_doc_key(key)
        if not is_sound(last):
            engine.damage.note(number, last)
            continue
        stored = record_codec.decode_memory(value)
        if stored.memory.is_over(now):
            continue
        payload = txn.get(key, b"", db=engine.tables.payload)
        embeddings = _embeddings(engine, txn, number, record.active_space, last) if with_vectors else ()
        memories.append(
            ExportedMemory(
                memory=replace(stored.memory, payload=record_codec.decode_payload(payload)),
                session_position=stored.session_position,
                embeddings=embeddings,
            )
        )
        read_bytes += len(value) + len(payload) + sum(one.vector.nbytes + one.tokens.nbytes for one in embeddings)
    return ExportPage(memories=tuple(memories), removed_ids=removed_ids, next_after=None, seq=record.seq)


def _removed(
    engine: Engine, txn: Transaction, number: int, record: record_codec.ProjectRecord, after: int, after_seq: int
) -> tuple[str, ...] | None:
    """Ids of the documents up to `after` removed by writes after `after_seq`; None if unknown."""
    if not record.ops_after <= after_seq <= record.seq:
        return None
    ids: dict[str, None] = {}
    start = keys.op_key(number, after_seq + 1, 0)
    for key, value in keys.entries(txn, engine.tables.ops, keys.project_prefix(number), start):
        action, doc = _HEAD.unpack_from(value)
        if action == _REMOVE and doc <= after:
            memory_id = txn.get(key, db=engine.tables.removed)
            if memory_id is None:  # written by a version that did not keep it
                return None
            ids[memory_id.decode()] = None
    return tuple(ids)


def _embeddings(engine: Engine, txn: Transaction, number: int, space: int, doc: int) -> tuple[Embedding, ...]:
    token_dim = engine.space.token_dim
    found = keys.entries(txn, engine.tables.vector, keys.chunks_prefix(number, space, doc))
    return tuple(
        Embedding(
            vector=np.frombuffer(value, "<f2").astype(np.float32),
            tokens=np.frombuffer(txn.get(key, b"", db=engine.tables.token), np.int8).reshape(-1, token_dim),
        )
        for key, value in found
    )


_KEY_BYTES = 64  # Approximate bytes counted for an operation without a memory.


def events_behind(engine: Engine, txn: Transaction, number: int, after: int, now: float, *, full: bool) -> EventPage:
    """The events of the first writes after `after`; whole writes, until they fill a page.

    A memory expired at `now`, in Unix seconds, gets an event when it is removed.
    """
    record = project_record(txn, engine, number)
    if not record.ops_after <= after <= record.seq:
        return EventPage(events=(), seq=record.seq, is_reset=True)
    told, seq = _Told(), after
    start = keys.op_key(number, after + 1, 0)
    for key, value in keys.entries(txn, engine.tables.ops, keys.project_prefix(number), start):
        op_seq = keys.seq_of_op_key(key)
        if op_seq != seq and told.read_bytes >= EVENT_PAGE_BYTES:
            return EventPage(events=tuple(told.events()), seq=seq, is_newest=False)
        seq = op_seq
        action, doc = _HEAD.unpack_from(value)
        if action in (EMBED, JUDGE):  # the memory's content is unchanged
            continue
        if action == PUT:
            memory, size = _memory(engine, txn, number, doc, full=full)
            told.put(seq, doc, None if memory is None or memory.is_over(now) else memory, size)
            continue
        memory_id = txn.get(key, db=engine.tables.removed)
        if memory_id is None:  # written by a version that did not keep it
            return EventPage(events=(), seq=record.seq, is_reset=True)
        told.remove(seq, doc, memory_id.decode())
    return EventPage(events=tuple(told.events()), seq=record.seq)


@dataclass(slots=True, kw_only=True)
class _Told:
    """Net events of operations, by memory."""

    docs: set[int] = field(default_factory=set)  # Documents that were put, including those removed by a later write.
    was_there: dict[str, bool] = field(default_factory=dict)  # Whether a memory existed before its first operation.
    # Seq and result of each memory's last operation, in the order of those.
    latest: dict[str, tuple[int, Memory | None]] = field(default_factory=dict)
    read_bytes: int = 0  # Approximate bytes read.

    def put(self, seq: int, doc: int, memory: Memory | None, size: int) -> None:
        """Add a put; `memory` is None if a later write removed it, whose operation has the id."""
        self.docs.add(doc)
        self.read_bytes += size
        if memory is not None:
            self._tell(seq, memory.id, memory, was_there=False)

    def remove(self, seq: int, doc: int, memory_id: str) -> None:
        self.read_bytes += _KEY_BYTES
        self._tell(seq, memory_id, None, was_there=doc not in self.docs)

    def events(self) -> Iterator[MemoryEvent]:
        """The last event of each memory; none for memories created and removed in between."""
        for memory_id, (seq, memory) in self.latest.items():
            was_there = self.was_there[memory_id]
            if memory is not None:
                kind = MemoryEventType.UPDATED if was_there else MemoryEventType.CREATED
                yield MemoryEvent(type=kind, memory_id=memory_id, memory=memory, seq=seq)
            elif was_there:
                yield MemoryEvent(type=MemoryEventType.DELETED, memory_id=memory_id, memory=None, seq=seq)

    def _tell(self, seq: int, memory_id: str, memory: Memory | None, *, was_there: bool) -> None:
        self.was_there.setdefault(memory_id, was_there)
        self.latest.pop(memory_id, None)
        self.latest[memory_id] = (seq, memory)


def _memory(engine: Engine, txn: Transaction, number: int, doc: int, *, full: bool) -> tuple[Memory | None, int]:
    """A document's memory, None if it was removed or damaged, and its stored bytes."""
    key = keys.doc_key(number, doc)
    value = txn.get(key, db=engine.tables.memory)
    if value is None:
        return None, _KEY_BYTES
    payload = txn.get(key, b"", db=engine.tables.payload) if full else b""
    kept = txn.get(key, db=engine.tables.checksum)
    if not integrity.matches(kept, integrity.MEMORY, key, value) or (
        full and not integrity.matches(kept, integrity.PAYLOAD, key, payload)
    ):
        engine.damage.note(number, doc)
        return None, _KEY_BYTES
    return record_codec.memory_of(value, payload if full else None), len(value) + len(payload)
