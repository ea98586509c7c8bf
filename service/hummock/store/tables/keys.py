"""Keys of all tables, and iteration over ranges of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.ports.writes import TextKey
from hummock.store.tables.engine import Cursor, Table, Transaction

NO_PROJECT = 0
"""Number of a project that does not exist, which reads as one without memories; numbers of projects begin at 1."""

_PROJECT = struct.Struct(">I")
_DOC = struct.Struct(">IQ")
DOC_KEY_BYTES = _DOC.size
_SPACE = struct.Struct(">II")
_CHUNK = struct.Struct(">IIQH")
_OP = struct.Struct(">IQI")
_AGE = struct.Struct(">IQQ")
_TEXT = struct.Struct(">BB")
_NUMBER = struct.Struct(">Q")

# LMDB keys have at most 511 bytes.
_LONGEST_NAME = 400
_LONGEST_KEY = 511
HASH_BYTES = 16
COPYING = b"copying"  # Begins each `copying_key`.


project_prefix: Final[Callable[[int], bytes]] = _PROJECT.pack
"""Prefix of all keys of a project, by its number."""


def project_name_key(name: str) -> bytes:
    """Key from a project's name to its number; in the order of the names' bytes.

    A name that is too long for a project is cut, to a length that is still too long.
    """
    return (b"n" + name.encode())[:_LONGEST_KEY]


PROJECT_NUMBERS = b"p"  # Key prefix of all projects' records.


def project_number_key(project: int) -> bytes:
    """Key from a project's number to its record."""
    return PROJECT_NUMBERS + _PROJECT.pack(project)


def copying_key(project: int) -> bytes:
    """Key of the mark that a project is being copied under this number, and has no name yet."""
    return COPYING + _PROJECT.pack(project)


def copied_key(project: int) -> bytes:
    """Key from the number of a copied project to its source."""
    return b"copied" + _PROJECT.pack(project)


pack_project: Final[Callable[[int], bytes]] = _PROJECT.pack
"""Encode a project's number as a value."""


def unpack_project(value: bytes) -> int:
    """Inverse of `pack_project`."""
    return int(_PROJECT.unpack(value)[0])


doc_key: Final[Callable[[int, int], bytes]] = _DOC.pack
"""Key of a memory by its project and document number."""


def doc_keys(project: int, docs: Iterable[int]) -> list[bytes]:
    """The keys of several memories, in order."""
    return list(map(_DOC.pack, repeat(project), docs))


def doc_of_doc_key(key: bytes) -> int:
    """The document number in a `doc_key`."""
    return int(_DOC.unpack(key)[1])


def docs_of_doc_keys(stored: Sequence[bytes]) -> NDArray[np.int64]:
    """Document numbers in many keys, (n,) int64. Raises: ValueError: one is no `doc_key`."""
    return np.frombuffer(b"".join(stored), [("project", ">u4"), ("doc", ">u8")])["doc"].astype(np.int64)


space_prefix: Final[Callable[[int, int], bytes]] = _SPACE.pack
"""Key prefix of the chunks of a project in one embedding space."""


def chunks_prefix(project: int, space: int, doc: int) -> bytes:
    """Key prefix of the chunks of a memory."""
    return _SPACE.pack(project, space) + _NUMBER.pack(doc)


chunk_key: Final[Callable[[int, int, int, int], bytes]] = _CHUNK.pack
"""Key of a chunk's vectors by project, space, document and chunk, in the order of documents."""


def chunk_keys(project: int, space: int, docs: NDArray[np.int64], chunks: NDArray[np.int64]) -> Iterator[bytes]:
    """Keys of many chunks, given (n,) documents and (n,) chunk numbers."""
    return map(_CHUNK.pack, repeat(project), repeat(space), docs.tolist(), chunks.tolist())


def of_chunk_key(key: bytes) -> tuple[int, int, int]:
    """Space, document and chunk number in a `chunk_key`."""
    _, space, doc, chunk = _CHUNK.unpack(key)
    return int(space), int(doc), int(chunk)


def name_key(project: int, name: str) -> bytes:
    """Key of a memory id, term, session or request by name; very long names are hashed."""
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
    """Encode a text's key."""
    return _TEXT.pack(key.kind, key.origin) + key.identity


def earlier_text_bytes(key: TextKey) -> list[bytes]:
    """Encoded keys under which older versions have stored the text."""
    return [_TEXT.pack(key.kind, key.origin) + one for one in key.earlier]


def text_prefix(project: int, text: bytes) -> bytes:
    """Key prefix of all memories with this text; `text` comes from `text_bytes`."""
    return _PROJECT.pack(project) + text


def text_key(project: int, text: bytes, doc: int) -> bytes:
    """Key of one memory with this text; older memories come first."""
    return text_prefix(project, text) + _NUMBER.pack(doc)


def doc_of_text_key(key: bytes) -> int:
    """The document number at the end of a `text_key`."""
    return int(_NUMBER.unpack(key[-_NUMBER.size :])[0])


op_key: Final[Callable[[int, int, int], bytes]] = _OP.pack
"""Key of an operation by project, the seq of its write, and its number in the write."""


def seq_of_op_key(key: bytes) -> int:
    """The write's seq in an `op_key`."""
    return int(_OP.unpack(key)[1])


def age_key(project: int, time_s: float, seq: int) -> bytes:
    """Key of a request by time in whole milliseconds, oldest first."""
    return _AGE.pack(project, max(int(time_s * 1000), 0), seq)


def time_of_age_key(key: bytes) -> float:
    """The time in an `age_key`, Unix seconds in whole milliseconds."""
    return float(_AGE.unpack(key)[1]) / 1000


def expiry_key(time_s: float, project: int, doc: int) -> bytes:
    """Key of a memory by expiry time in whole milliseconds, for all projects, the earliest first."""
    return _NUMBER.pack(max(int(time_s * 1000), 0)) + doc_key(project, doc)


def of_expiry_key(key: bytes) -> tuple[float, int, int]:
    """Time in Unix seconds, project and document in an `expiry_key`."""
    project, doc = _DOC.unpack(key[_NUMBER.size :])
    return _NUMBER.unpack(key[: _NUMBER.size])[0] / 1000, int(project), int(doc)


event_key: Final[Callable[[int, int], bytes]] = _DOC.pack
"""Key of an event of the learning log by project and number; older events come first."""


def hashed(name: str) -> bytes:
    """Fixed-length hash of a name that is followed by another in a key."""
    return blake2b(name.encode(), digest_size=HASH_BYTES).digest()


def usage_key(project: int, scope: bytes, memory_id: str) -> bytes:
    """Key of a memory's usage in a hashed scope; in the order of ids."""
    return _PROJECT.pack(project) + scope + memory_id.encode()


def usage_scope_key(project: int, memory_id: str, scope: bytes) -> bytes:
    """Key of a memory's usage in a hashed scope; with an empty scope, the prefix of all its usage."""
    return _PROJECT.pack(project) + hashed(memory_id) + scope


def name_in_key(key: bytes) -> str:
    """The name in a `name_key` that is not hashed."""
    return key[_PROJECT.size :].decode()


def memory_of_usage_key(key: bytes) -> str:
    """The memory's id at the end of a `usage_key`."""
    return key[_PROJECT.size + HASH_BYTES :].decode()


_SLICE_ENTRIES = 1024


def entries(txn: Transaction, table: Table, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Keys that begin with the prefix, and their values, in order; `start` is the first key if after the prefix."""
    with txn.cursor(table) as cursor:
        if not cursor.set_range(max(prefix, start)):
            return
        for key, value in cursor.iternext(keys=True, values=True):
            if not key.startswith(prefix):
                return
            yield key, value


def docs_behind(txn: Transaction, table: Table, project: int, after: int, *, descending: bool) -> Iterator[int]:
    """Documents of a table of memories after `after`, ascending or descending; 0 starts at the first or the last."""
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
    """Values of all keys with the prefix, in order, in slices; the first has at most one more than `expected`."""
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
    """Number of the `count` entries up to the cursor without the prefix; moves back to the last with it."""
    # Keys are read at the end of a range only: reading all of them would take as long as the values.
    if not cursor.key():
        cursor.last()
    strangers = 0
    while strangers < count and not cursor.key().startswith(prefix):
        cursor.prev()
        strangers += 1
    return strangers
