"""What happened to memories, read from the operations of the writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import lmdb

from hummock.core.memory import Memory
from hummock.core.memory_events import EventPage, MemoryEvent, MemoryEventType
from hummock.store import keys, scan
from hummock.store.environment import Environment
from hummock.store.limits import EVENT_PAGE_BYTES
from hummock.store.records import codec, operations

_KEY_BYTES = 64
"""About what an operation without a memory costs whoever reads it."""


def events_behind(
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, after: int, *, full: bool
) -> EventPage:
    """The events of the first writes behind `after`; whole writes, until they fill a page."""
    record = environment.project_record(txn, number)
    if not record.ops_after <= after <= record.seq:
        return EventPage(events=(), seq=record.seq, is_reset=True)
    told, seq = _Told(), after
    start = keys.op_key(number, after + 1, 0)
    for key, value in scan.entries(txn, environment.tables.ops, keys.project_prefix(number), start):
        op_seq = keys.seq_of_op_key(key)
        if op_seq != seq and told.read_bytes >= EVENT_PAGE_BYTES:
            return EventPage(events=tuple(told.events()), seq=seq, is_newest=False)
        seq = op_seq
        doc, is_removal = operations.unpack_op(value)
        if not is_removal:
            told.put(seq, doc, *_memory(environment, txn, number, doc, full=full))
            continue
        memory_id = txn.get(key, db=environment.tables.removed)
        if memory_id is None:  # written by a version that did not keep it
            return EventPage(events=(), seq=record.seq, is_reset=True)
        told.remove(seq, doc, memory_id.decode())
    return EventPage(events=tuple(told.events()), seq=record.seq)


@dataclass(slots=True, kw_only=True)
class _Told:
    """What operations come to, memory by memory.

    Attributes:
        docs: Those that were put, also those that a later write has removed.
        was_there: Whether a memory was there before the first operation on it.
        latest: The last operation's seq and what it left, in the order of those operations.
        read_bytes: About what was read.
    """

    docs: set[int] = field(default_factory=set)
    was_there: dict[str, bool] = field(default_factory=dict)
    latest: dict[str, tuple[int, Memory | None]] = field(default_factory=dict)
    read_bytes: int = 0

    def put(self, seq: int, doc: int, memory: Memory | None, size: int) -> None:
        """A document was put; its memory is None when a later write has removed it, which tells its id."""
        self.docs.add(doc)
        self.read_bytes += size
        if memory is not None:
            self._tell(seq, memory.id, memory, was_there=False)

    def remove(self, seq: int, doc: int, memory_id: str) -> None:
        """A document was removed."""
        self.read_bytes += _KEY_BYTES
        self._tell(seq, memory_id, None, was_there=doc not in self.docs)

    def events(self) -> Iterator[MemoryEvent]:
        """The last event of each memory; none of those that came and went."""
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


def _memory(
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, doc: int, *, full: bool
) -> tuple[Memory | None, int]:
    """A document's memory, None when it was removed, and its stored bytes."""
    key = keys.doc_key(number, doc)
    value = txn.get(key, db=environment.tables.memory)
    if value is None:
        return None, _KEY_BYTES
    payload = txn.get(key, b"", db=environment.tables.payload) if full else b""
    body = codec.decode_payload(payload) if full else None
    return codec.memory_of(codec.decode_memory(value), body), len(value) + len(payload)
