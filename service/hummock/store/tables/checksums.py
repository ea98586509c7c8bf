"""Checksums of memories: one over each part of a memory as it is stored, kept beside them.

A disk that gives back other bytes than it took is not noticed by LMDB. Each sum begins with the part's key, so that a
part that is found in another's place is noticed as well. Memories of before there were checksums have none until they
are written again, and are taken as they are.

The sum is CRC-32 (ISO-HDLC, as in zlib): any change of one or two bits is found, any other but one in 4 billion.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hummock.store.errors import MemoryDamaged
from hummock.store.tables import keys
from hummock.store.tables.engine import Tables, Transaction

_PARTS = ("memory", "payload", "column", "terms")
_SUM_BYTES = 4
_ONE, _TWO = struct.Struct("<I"), struct.Struct("<II")

Place = TypeVar("Place", int, NDArray[np.int64])

MEMORY, PAYLOAD, COLUMN, TERMS = range(4)
"""Places of the sums; those of each chunk's vector and token vectors follow."""


def sums_of(
    txn: Transaction, tables: Tables, number: int, space: int, doc: int, written: Sequence[bool] | None = None
) -> bytes:
    """The sums of all parts of a document, as they are stored now; those of chunks end with the last chunk.

    Whoever has just written its chunks knows of each whether it has token vectors; None looks for them.
    """
    key = keys.doc_key(number, doc)
    seed = crc32(key)
    sums = [crc32(txn.get(key, b"", db=getattr(tables, part)), seed) for part in _PARTS]
    chunks: Iterable[tuple[bytes, bytes]]
    if written is None:
        chunks = keys.entries(txn, tables.vector, keys.chunks_prefix(number, space, doc))
    else:
        chunk_keys = (keys.chunk_key(number, space, doc, chunk) for chunk in range(len(written)))
        chunks = ((chunk_key, txn.get(chunk_key, b"", db=tables.vector)) for chunk_key in chunk_keys)
    for chunk, (chunk_key, vector) in enumerate(chunks):
        seed = crc32(chunk_key)
        tokens = txn.get(chunk_key, b"", db=tables.token) if written is None or written[chunk] else b""
        sums += (crc32(vector, seed), crc32(tokens, seed))
    return struct.pack(f"<{len(sums)}I", *sums)


def is_sound(txn: Transaction, tables: Tables, number: int, space: int, doc: int) -> bool:
    """Whether all parts are what was written; also where no sums were kept."""
    kept = txn.get(keys.doc_key(number, doc), db=tables.checksum)
    return kept is None or kept == sums_of(txn, tables, number, space, doc)


def seal(
    txn: Transaction, tables: Tables, number: int, space: int, doc: int, written: Sequence[bool] | None = None
) -> None:
    """Keeps the sums of a document that has been written; `written` as in `sums_of`."""
    txn.put(keys.doc_key(number, doc), sums_of(txn, tables, number, space, doc, written), db=tables.checksum)


def matches(kept: bytes | None, place: int, key: bytes, part: bytes) -> bool:
    """Whether a part is the one of which this sum was kept, at this place; also where none was.

    Args:
        kept: What the table has for the document.
        place: Of the part's sum.
        key: The part's.
        part: As it was read.
    """
    if kept is None:
        return True
    at = place * _SUM_BYTES
    return kept[at : at + _SUM_BYTES] == crc32(part, crc32(key)).to_bytes(_SUM_BYTES, "little")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptSums:
    """The sums of many documents, for parts that are read by the thousand.

    Attributes:
        docs: (n,) int64, ascending.
        seeds: (n,) uint32, what the sums of all parts but vectors begin with.
        starts: (n + 1,) int64, where each document's sums begin in `sums`.
        sums: (m,) uint32.
    """

    docs: NDArray[np.int64]
    seeds: NDArray[np.uint32]
    starts: NDArray[np.int64]
    sums: NDArray[np.uint32]

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, bytes]]) -> KeptSums:
        """Those of a project, given what the table has. Raises: ValueError: some are cut."""
        found = list(entries)
        doc_keys, values = [key for key, _ in found], [value for _, value in found]
        starts = np.zeros(len(found) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)) // _SUM_BYTES, out=starts[1:])
        return cls(
            docs=keys.docs_of_doc_keys(doc_keys),
            seeds=np.fromiter(map(crc32, doc_keys), np.uint32, len(doc_keys)),
            starts=starts,
            sums=np.frombuffer(b"".join(values), "<u4"),
        )

    def match(self, place: int, docs: NDArray[np.int64], parts: Sequence[bytes]) -> bool:
        """Whether these are the parts of which sums were kept, at this place of each document; also where none was."""
        at, is_kept = self._places(docs)
        return not is_kept.any() or self._match(at, is_kept, np.full(len(at), place), self.seeds[at], parts)

    def match_vectors(self, docs: NDArray[np.int64], chunks: NDArray[np.int64], parts: Mapping[bytes, bytes]) -> bool:
        """Whether these vectors, by their keys, have the checksums that were kept; also where none was."""
        at, is_kept = self._places(docs)
        seeds = np.fromiter(map(crc32, parts), np.uint32, len(parts))
        return not is_kept.any() or self._match(at, is_kept, vector_place(chunks), seeds, [*parts.values()])

    def _places(self, docs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self.docs):
            return np.zeros(len(docs), np.int64), np.zeros(len(docs), np.bool_)
        at = np.minimum(np.searchsorted(self.docs, docs), len(self.docs) - 1)
        return at, self.docs[at] == docs

    def _match(
        self,
        at: NDArray[np.int64],
        is_kept: NDArray[np.bool_],
        places: NDArray[np.int64],
        seeds: NDArray[np.uint32],
        parts: Sequence[bytes],
    ) -> bool:
        sums = np.fromiter(map(crc32, parts, seeds.tolist()), np.uint32, len(parts))
        found = self.starts[at] + places
        is_there = found < self.starts[at + 1]
        return bool(np.all(~is_kept | (is_there & (self.sums[np.where(is_there, found, 0)] == sums))))


def vector_place(chunk: Place) -> Place:
    """Where the sum of a chunk's vector stands."""
    return len(_PARTS) + 2 * chunk


def require(kept: bytes | None, key: bytes, memory_id: str, memory: bytes, payload: bytes | None) -> None:
    """Raises: MemoryDamaged: a memory's record, or its payload where it was read, is not what was written."""
    if kept is None:
        return
    # By hand: a recall does so for each of its hits.
    seed = crc32(key)
    sums = _ONE.pack(crc32(memory, seed)) if payload is None else _TWO.pack(crc32(memory, seed), crc32(payload, seed))
    if not kept.startswith(sums):
        raise MemoryDamaged(memory_id, keys.doc_of_doc_key(key))
