"""Keys of every table, and walks over ranges of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice, repeat

import numpy as np
from numpy.typing import NDArray

from hummock.ports.writes import TextKey
from hummock.store.tables.engine import Cursor, Table, Transaction

_PROJECT = struct.Struct(">I")
_DOC = struct.Struct(">IQ")
DOC_KEY_BYTES = _DOC.size
_SPACE = struct.Struct(">II")
_CHUNK = struct.Struct(">IIQH")
_OP = struct.Struct(">IQI")
_AGE = struct.Struct(">IQQ")
_TEXT = struct.Struct(">BB")
_NUMBER = struct.Struct(">Q")

# LMDB's keys have at most 511 bytes.
_LONGEST_NAME = 400
_LONGEST_KEY = 511
HASH_BYTES = 16
COPYING = b"copying"
"""Begins each `copying_key`."""


def project_prefix(project: int) -> bytes:
    """What all keys of a project begin with."""
    return _PROJECT.pack(project)


def project_name_key(name: str) -> bytes:
    """From a project's name to its number; in the order of the names' bytes.

    A name that is too long for a project is cut, and still too long to be one.
    """
    return (b"n" + name.encode())[:_LONGEST_KEY]


PROJECT_NUMBERS = b"p"
"""What the keys of all projects' records begin with."""


def project_number_key(project: int) -> bytes:
    """From a project's number to its record."""
    return PROJECT_NUMBERS + _PROJECT.pack(project)


def copying_key(project: int) -> bytes:
    """Key of the mark that a project is being copied under this number, and has no name yet."""
    return COPYING + _PROJECT.pack(project)


def copied_key(project: int) -> bytes:
    """From the number of a project that is a copy to what it is a copy of."""
    return b"copied" + _PROJECT.pack(project)


def pack_project(project: int) -> bytes:
    """A project's number as a value."""
    return _PROJECT.pack(project)


def unpack_project(value: bytes) -> int:
    """Inverse of `pack_project`."""
    return int(_PROJECT.unpack(value)[0])


def doc_key(project: int, doc: int) -> bytes:
    """A memory by its number."""
    return _DOC.pack(project, doc)


def doc_of_doc_key(key: bytes) -> int:
    """The memory's number in a `doc_key`."""
    return int(_DOC.unpack(key)[1])


def docs_of_doc_keys(doc_keys: Sequence[bytes]) -> NDArray[np.int64]:
    """Document numbers in many keys, (n,) int64. Raises: ValueError: one is no such key."""
    return np.frombuffer(b"".join(doc_keys), [("project", ">u4"), ("doc", ">u8")])["doc"].astype(np.int64)


def space_prefix(project: int, space: int) -> bytes:
    """What the chunks of one embedding space begin with."""
    return _SPACE.pack(project, space)


def chunks_prefix(project: int, space: int, doc: int) -> bytes:
    """What the chunks of a memory begin with."""
    return _SPACE.pack(project, space) + _NUMBER.pack(doc)


def chunk_key(project: int, space: int, doc: int, chunk: int) -> bytes:
    """A chunk's vectors, in the order of memories."""
    return _CHUNK.pack(project, space, doc, chunk)


def chunk_keys(project: int, space: int, docs: NDArray[np.int64], chunks: NDArray[np.int64]) -> Iterator[bytes]:
    """Keys of many chunks, given (n,) documents and the number of a chunk of each."""
    return map(_CHUNK.pack, repeat(project), repeat(space), docs.tolist(), chunks.tolist())


def of_chunk_key(key: bytes) -> tuple[int, int, int]:
    """The space, the document and the chunk in a `chunk_key`."""
    _, space, doc, chunk = _CHUNK.unpack(key)
    return int(space), int(doc), int(chunk)


def project_of_chunk_key(key: bytes) -> int:
    """The number of the project whose chunk it is."""
    return unpack_project(key[: _PROJECT.size])


def name_key(project: int, name: str) -> bytes:
    """A memory's id, a term, a session or a request by its name; very long names by their hash."""
    raw = name.encode()
    return _PROJECT.pack(project) + (raw if len(raw) <= _LONGEST_NAME else _hashed(raw))


def name_keys(project: int, names: Sequence[str]) -> list[bytes]:
    """The keys of several names, in order."""
    prefix = _PROJECT.pack(project)
    return [prefix + (raw if len(raw) <= _LONGEST_NAME else _hashed(raw)) for raw in map(str.encode, names)]


def _hashed(raw: bytes) -> bytes:
    # No UTF-8 begins with 0xff: a hash never equals a name.
    return b"\xff" + blake2b(raw, digest_size=32).digest()


def text_bytes(key: TextKey) -> bytes:
    """A text's key as bytes."""
    return _TEXT.pack(key.kind, key.origin) + key.identity


def earlier_text_bytes(key: TextKey) -> list[bytes]:
    """The keys under which older versions have stored the text."""
    return [_TEXT.pack(key.kind, key.origin) + one for one in key.earlier]


def text_prefix(project: int, text: bytes) -> bytes:
    """What the entries of all memories with this text begin with; `text` is of `text_bytes`."""
    return _PROJECT.pack(project) + text


def text_key(project: int, text: bytes, doc: int) -> bytes:
    """One memory with this text; older memories come first."""
    return text_prefix(project, text) + _NUMBER.pack(doc)


def doc_of_text_key(key: bytes) -> int:
    """The memory's number at the end of a `text_key`."""
    return int(_NUMBER.unpack(key[-_NUMBER.size :])[0])


def op_key(project: int, seq: int, number: int) -> bytes:
    """An operation of a write."""
    return _OP.pack(project, seq, number)


def seq_of_op_key(key: bytes) -> int:
    """The write's seq in an `op_key`."""
    return int(_OP.unpack(key)[1])


def age_key(project: int, time_s: float, seq: int) -> bytes:
    """A request by its age, oldest first; whole milliseconds."""
    return _AGE.pack(project, max(int(time_s * 1000), 0), seq)


def time_of_age_key(key: bytes) -> float:
    """Unix seconds, whole milliseconds, in an `age_key`."""
    return float(_AGE.unpack(key)[1]) / 1000


def expiry_key(time_s: float, project: int, doc: int) -> bytes:
    """A memory by when it ends, of all projects; whole milliseconds, the first comes first."""
    return _NUMBER.pack(max(int(time_s * 1000), 0)) + doc_key(project, doc)


def of_expiry_key(key: bytes) -> tuple[float, int, int]:
    """The time, Unix seconds, the project and the document in an `expiry_key`."""
    project, doc = _DOC.unpack(key[_NUMBER.size :])
    return _NUMBER.unpack(key[: _NUMBER.size])[0] / 1000, int(project), int(doc)


def event_key(project: int, number: int) -> bytes:
    """An event of the learning log; older events come first."""
    return _DOC.pack(project, number)


def hashed(name: str) -> bytes:
    """A name that stands before another in a key, at a fixed length."""
    return blake2b(name.encode(), digest_size=HASH_BYTES).digest()


def usage_key(project: int, scope: bytes, memory_id: str) -> bytes:
    """A memory's usage in a scope, which is hashed; in the order of ids."""
    return _PROJECT.pack(project) + scope + memory_id.encode()


def usage_scope_key(project: int, memory_id: str, scope: bytes) -> bytes:
    """Key of a memory's usage in a scope, which is hashed; with an empty scope, the prefix of all of the memory's."""
    return _PROJECT.pack(project) + hashed(memory_id) + scope


def name_in_key(key: bytes) -> str:
    """The name in a `name_key` that is not hashed."""
    return key[_PROJECT.size :].decode()


def memory_of_usage_key(key: bytes) -> str:
    """The memory's id at the end of a `usage_key`."""
    return key[_PROJECT.size + HASH_BYTES :].decode()


_SLICE_ENTRIES = 1024


def entries(txn: Transaction, table: Table, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Keys that begin with the prefix, and their values, in order.

    Args:
        txn: Any transaction.
        table: Where to look.
        prefix: Of all keys.
        start: The first key, if it is behind the prefix itself.
    """
    with txn.cursor(table) as cursor:
        if not cursor.set_range(max(prefix, start)):
            return
        for key, value in cursor.iternext(keys=True, values=True):
            if not key.startswith(prefix):
                return
            yield key, value


def docs_behind(txn: Transaction, table: Table, project: int, after: int, *, descending: bool) -> Iterator[int]:
    """The documents of a table of memories behind one of them, upwards or downwards; 0: from the first, or the last."""
    prefix = project_prefix(project)
    with txn.cursor(table) as cursor:
        if descending:
            end = doc_key(project, after) if after else project_prefix(project + 1)
            is_there = cursor.prev() if cursor.set_range(end) else cursor.last()
        else:
            is_there = cursor.set_range(doc_key(project, after + 1))
        if not is_there:
            return
        for key in cursor.iterprev(values=False) if descending else cursor.iternext(values=False):
            if not key.startswith(prefix):
                return
            yield doc_of_doc_key(key)


def slices(txn: Transaction, table: Table, prefix: bytes, expected: int) -> Iterator[list[bytes]]:
    """The values of all keys that begin with the prefix, in order, some thousands at a time.

    Args:
        txn: Any transaction.
        table: Where to look.
        prefix: Of all keys.
        expected: About how many there are: so many are read at first.
    """
    with txn.cursor(table) as cursor:
        if not cursor.set_range(prefix):
            return
        values = cursor.iternext(keys=False, values=True)
        strangers = 0
        # One more than expected shows that there are no more.
        while not strangers and (found := list(islice(values, min(max(expected, 0) + 1, _SLICE_ENTRIES)))):
            strangers = _strangers(cursor, prefix, len(found))
            yield found[: len(found) - strangers]
            expected -= len(found)


def _strangers(cursor: Cursor, prefix: bytes, count: int) -> int:
    """How many of the `count` entries up to the cursor have another prefix; it goes back to the last that has this one.

    Keys are looked at where a range ends alone: to read all of them would take as long as the values do.
    """
    if not cursor.key():
        cursor.last()
    strangers = 0
    while strangers < count and not cursor.key().startswith(prefix):
        cursor.prev()
        strangers += 1
    return strangers
