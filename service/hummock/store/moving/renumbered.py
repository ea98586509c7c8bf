"""Entries of a project rewritten for another number: memories in windows, all others one by one.

Keys begin with the project's number, and a checksum or a seal covers its entry's key. So each entry is verified in the
source, and sealed again for its key in the target.

Index entries are copied too, except the vectors of removed texts (`text_vectors.py`), which a new store does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

from hummock.store.errors import EntryDamaged, MemoryDamaged
from hummock.store.tables import integrity, keys, record_codec, text_vectors
from hummock.store.tables.sessions import clock_key
from hummock.store.upkeep.moment import Entry, Moment, size_of

ALONE = (
    "term", "by_id", "by_text", "session", "pending", "settings", "review", "ops", "removed", "request", "request_age",
    "learning", "event", "turn", "usage", "usage_scope", "link", "session_record", "session_order", "message",
    "message_id",
)  # fmt: skip # a list of names
"""Tables whose entries are copied one by one. Those of memories go together."""

_OF_MESSAGES = ("message", "message_id")
_BATCH_BYTES = 4 << 20
_ENTRIES_AT_ONCE = 1024

_CHUNKS = ("vector", "token")
_FIRST, _MOST = 32, 512
_SMALL_BYTES, _LARGE_BYTES = 2 << 20, 8 << 20
"""Memories of one window: more while they are small together, fewer while they are large."""


@dataclass(slots=True)
class Batch:
    """The entries of one transaction."""

    entries: dict[str, list[Entry]] = field(default_factory=dict)  # Entries by table.
    memory_count: int = 0  # Number of memories in them.
    size_bytes: int = 0  # Size of keys and values.

    def add(self, entries: Mapping[str, Sequence[Entry]]) -> None:
        """Add entries of some tables."""
        for table, some in entries.items():
            self.entries.setdefault(table, []).extend(some)
            self.size_bytes += size_of(some)
        self.memory_count += len(entries.get("memory", ()))


def batches(moment: Moment, number: int, record: record_codec.ProjectRecord, new: int, space: int) -> Iterator[Batch]:
    """All entries of a project except its record and name, under number `new` in the target's space `space`.

    `moment` is in a transaction that has entered the project. Raises: MemoryDamaged, EntryDamaged.
    """
    batch = Batch()
    for some in chain(_windows(moment, number, record, new, space), _alone(moment, number, new)):
        batch.add(some)
        if batch.size_bytes >= _BATCH_BYTES:
            yield batch
            batch = Batch()
    yield batch


def _alone(moment: Moment, number: int, new: int) -> Iterator[dict[str, list[Entry]]]:
    for table in ALONE:
        entries = _renumbered(moment, table, number, new)
        while some := list(islice(entries, _ENTRIES_AT_ONCE)):
            yield {table: some}


def _renumbered(moment: Moment, table: str, number: int, new: int) -> Iterator[Entry]:
    before, after = keys.project_prefix(number), keys.project_prefix(new)
    # Messages of removed sessions, which are still to be cleared, are not copied.
    removed = tuple(key for key, _ in moment.entries("session_deleted", before)) if table in _OF_MESSAGES else ()
    for key, stored in moment.entries(table, before):
        if key.startswith(removed):
            continue
        value = integrity.unsealed(table, key, stored)
        if value is None:
            raise EntryDamaged(f"an entry of table {table}")
        if table == "request_age" or (table == "session_order" and key != clock_key(number)):
            value = after + value[len(before) :]  # a key
        moved = after + key[len(before) :]
        yield moved, integrity.seal(moved, value) if integrity.has_seals(table) else value


class _Numbers(NamedTuple):
    """A project's number and that of its space, before and after."""

    number: int
    space: int
    new: int
    new_space: int


def _windows(
    moment: Moment, number: int, record: record_codec.ProjectRecord, new: int, new_space: int
) -> Iterator[dict[str, list[Entry]]]:
    """All entries of some memories at a time, those of expiry times and digests included. Raises: MemoryDamaged."""
    numbers = _Numbers(number, record.active_space, new, new_space)
    first, limit, end = 0, _FIRST, keys.project_prefix(number + 1)
    while True:
        memories = moment.some("memory", keys.doc_key(number, first), end, limit)
        is_last = len(memories) < limit
        behind = None if is_last else keys.doc_of_doc_key(memories[-1][0]) + 1
        read = _read(moment, numbers, memories, first, behind)
        yield _window(numbers, read)
        if behind is None:
            return
        first = behind
        size_bytes = sum(map(size_of, read.values()))
        if size_bytes < _SMALL_BYTES:
            limit = min(2 * limit, _MOST)
        elif size_bytes > _LARGE_BYTES:
            limit = max(limit // 2, 1)


def _read(
    moment: Moment, numbers: _Numbers, memories: Sequence[Entry], first: int, behind: int | None
) -> dict[str, list[Entry]]:
    """All parts of the documents from `first` on and before `behind`, or to the last one if None."""
    number, space, _, _ = numbers
    start, chunks = keys.doc_key(number, first), keys.chunks_prefix(number, space, first)
    if behind is None:
        end, chunks_end = keys.project_prefix(number + 1), keys.space_prefix(number, space + 1)
    else:
        end, chunks_end = keys.doc_key(number, behind), keys.chunks_prefix(number, space, behind)
    read = {table: list(moment.between(table, start, end)) for table in (*integrity.PARTS[1:], "checksum")}
    read |= {table: list(moment.between(table, chunks, chunks_end)) for table in _CHUNKS}
    return {"memory": list(memories), **read}


def _window(numbers: _Numbers, read: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
    """The entries under the new number, sealed again; those without checksum are not checked. Raises: MemoryDamaged."""
    sums = _sums(numbers, read)
    for key, kept in read["checksum"]:
        doc = keys.doc_of_doc_key(key)
        if doc not in sums or sums[doc][0] != kept:
            raise MemoryDamaged(_id_of(read["memory"], key), doc)
    entries = {table: [(_doc_key(numbers, key), value) for key, value in read[table]] for table in integrity.PARTS}
    entries |= {table: [(_chunk_key(numbers, key), value) for key, value in read[table]] for table in _CHUNKS}
    entries["checksum"] = [(keys.doc_key(numbers.new, doc), after) for doc, (_, after) in sums.items()]
    entries["expiry"], entries["by_digest"] = [], []
    for key, value in read["memory"]:
        _find_again(numbers, keys.doc_of_doc_key(key), value, entries)
    return {table: some for table, some in entries.items() if some}


def _find_again(numbers: _Numbers, doc: int, value: bytes, entries: dict[str, list[Entry]]) -> None:
    """Add the entries by which a memory's expiry and the vectors of its texts are found."""
    try:
        stored = record_codec.decode_memory(value)
    except integrity.UNREADABLE as error:  # written before there were checksums
        raise MemoryDamaged("", doc) from error
    if stored.memory.expire_time is not None:
        entries["expiry"].append((keys.expiry_key(stored.memory.expire_time, numbers.new, doc), b""))
    for chunk, digest in enumerate(text_vectors.split(stored.digests)):
        chunk_key = keys.chunk_key(numbers.new, numbers.new_space, doc, chunk)
        entries["by_digest"].append((digest + chunk_key, b""))


def _sums(numbers: _Numbers, read: dict[str, list[Entry]]) -> dict[int, tuple[bytes, bytes]]:
    parts = {table: dict(read[table]) for table in (*integrity.PARTS, *_CHUNKS)}
    chunk_keys: dict[int, list[bytes]] = {}
    for key, _ in read["vector"]:
        chunk_keys.setdefault(keys.of_chunk_key(key)[1], []).append(key)
    sums = {}
    for key, _ in read["memory"]:
        doc = keys.doc_of_doc_key(key)
        found = [(table, key, _doc_key(numbers, key)) for table in integrity.PARTS]
        for chunk_key in chunk_keys.get(doc, ()):
            found += [(table, chunk_key, _chunk_key(numbers, chunk_key)) for table in _CHUNKS]
        values = [parts[table].get(old, b"") for table, old, _ in found]
        before = [(old, value) for value, (_, old, _) in zip(values, found, strict=True)]
        after = [(moved, value) for value, (_, _, moved) in zip(values, found, strict=True)]
        sums[doc] = integrity.row_of(before), integrity.row_of(after)
    return sums


def _doc_key(numbers: _Numbers, key: bytes) -> bytes:
    return keys.doc_key(numbers.new, keys.doc_of_doc_key(key))


def _chunk_key(numbers: _Numbers, key: bytes) -> bytes:
    _, doc, chunk = keys.of_chunk_key(key)
    return keys.chunk_key(numbers.new, numbers.new_space, doc, chunk)


def _id_of(memories: Sequence[Entry], key: bytes) -> str:
    try:
        found = next((value for doc_key, value in memories if doc_key == key), b"")
        return record_codec.decode_memory(found).memory.id
    except integrity.UNREADABLE:
        return ""
