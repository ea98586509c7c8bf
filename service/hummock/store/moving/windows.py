"""Memories, some at a time with all their parts, as they are stored under another number."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from hummock.store.errors import MemoryDamaged
from hummock.store.moving.moment import Entry, Moment, size_of
from hummock.store.tables import keys, record_codec, sealed, text_vectors

_PARTS = ("memory", "payload", "column", "terms")
"""Tables of a memory's parts, in the order of their checksums."""
_CHUNKS = ("vector", "token")
_FIRST, _MOST = 32, 512
_SMALL_BYTES, _LARGE_BYTES = 2 << 20, 8 << 20
"""Memories of one window: more while they are small together, fewer while they are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some memories.

    Attributes:
        entries: By table, all of them: also when they end, and by which texts their vectors are found.
        memory_count: How many they are.
    """

    entries: dict[str, list[Entry]]
    memory_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """A project's number and that of its space, before and after."""

    number: int
    space: int
    new: int
    new_space: int


def windows(
    moment: Moment, number: int, record: record_codec.ProjectRecord, new: int, new_space: int
) -> Iterator[Window]:
    """All memories of a project. Raises: MemoryDamaged."""
    numbers = _Numbers(number=number, space=record.active_space, new=new, new_space=new_space)
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
    """All parts of the documents from one on and before another; None: to the last one."""
    number, space = numbers.number, numbers.space
    start, chunks = keys.doc_key(number, first), keys.chunks_prefix(number, space, first)
    if behind is None:
        end, chunks_end = keys.project_prefix(number + 1), keys.space_prefix(number, space + 1)
    else:
        end, chunks_end = keys.doc_key(number, behind), keys.chunks_prefix(number, space, behind)
    read = {"memory": list(memories)}
    for table in (*_PARTS[1:], "checksum"):
        read[table] = list(moment.between(table, start, end))
    for table in _CHUNKS:
        read[table] = list(moment.between(table, chunks, chunks_end))
    return read


def _window(numbers: _Numbers, read: dict[str, list[Entry]]) -> Window:
    """The entries under the new project number, sealed anew; those without a checksum are not checked.

    Raises: MemoryDamaged.
    """
    sums = _sums(numbers, read)
    for key, kept in read["checksum"]:
        doc = keys.doc_of_doc_key(key)
        if doc not in sums or sums[doc][0] != kept:
            raise MemoryDamaged(_id_of(read["memory"], key), doc)
    entries: dict[str, list[Entry]] = {}
    for table in _PARTS:
        entries[table] = [(_doc_key(numbers, key), value) for key, value in read[table]]
    for table in _CHUNKS:
        entries[table] = [(_chunk_key(numbers, key), value) for key, value in read[table]]
    entries["checksum"] = [(keys.doc_key(numbers.new, doc), after) for doc, (_, after) in sums.items()]
    entries["expiry"], entries["by_digest"] = [], []
    for key, value in read["memory"]:
        _find_again(numbers, keys.doc_of_doc_key(key), value, entries)
    return Window(entries={table: some for table, some in entries.items() if some}, memory_count=len(read["memory"]))


def _find_again(numbers: _Numbers, doc: int, value: bytes, entries: dict[str, list[Entry]]) -> None:
    """Add the entries by which a memory's expiry and the vectors of its texts are found."""
    try:
        stored = record_codec.decode_memory(value)
    except sealed.UNREADABLE as error:  # of before there were checksums
        raise MemoryDamaged("", doc) from error
    if stored.memory.expire_time is not None:
        entries["expiry"].append((keys.expiry_key(stored.memory.expire_time, numbers.new, doc), b""))
    for chunk, digest in enumerate(text_vectors.split(stored.digests)):
        chunk_key = keys.chunk_key(numbers.new, numbers.new_space, doc, chunk)
        entries["by_digest"].append((digest + chunk_key, b""))


def _sums(numbers: _Numbers, read: dict[str, list[Entry]]) -> dict[int, tuple[bytes, bytes]]:
    """The checksums of each memory (`checksums.py`), before and after."""
    parts = {table: dict(read[table]) for table in (*_PARTS, *_CHUNKS)}
    chunk_keys: dict[int, list[bytes]] = {}
    for key, _ in read["vector"]:
        chunk_keys.setdefault(keys.of_chunk_key(key)[1], []).append(key)
    sums = {}
    for key, _ in read["memory"]:
        doc = keys.doc_of_doc_key(key)
        found = [(table, key, _doc_key(numbers, key)) for table in _PARTS]
        for chunk_key in chunk_keys.get(doc, ()):
            found += [(table, chunk_key, _chunk_key(numbers, chunk_key)) for table in _CHUNKS]
        values = [parts[table].get(old, b"") for table, old, _ in found]
        before = [crc32(value, crc32(old)) for value, (_, old, _) in zip(values, found, strict=True)]
        after = [crc32(value, crc32(moved)) for value, (_, _, moved) in zip(values, found, strict=True)]
        sums[doc] = struct.pack(f"<{len(before)}I", *before), struct.pack(f"<{len(after)}I", *after)
    return sums


def _doc_key(numbers: _Numbers, key: bytes) -> bytes:
    return keys.doc_key(numbers.new, keys.doc_of_doc_key(key))


def _chunk_key(numbers: _Numbers, key: bytes) -> bytes:
    _, doc, chunk = keys.of_chunk_key(key)
    return keys.chunk_key(numbers.new, numbers.new_space, doc, chunk)


def _id_of(memories: Sequence[Entry], key: bytes) -> str:
    """A memory's id, where its record can be read."""
    try:
        found = next((value for doc_key, value in memories if doc_key == key), b"")
        return record_codec.decode_memory(found).memory.id
    except sealed.UNREADABLE:
        return ""
