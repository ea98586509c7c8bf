"""The row of a memory as it is stored: what its columns are made of."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.core.memory import CodeFragment, Memory, MemoryKind
from hummock.core.review import is_of_no_hand
from hummock.text import template
from hummock.text.likeness import likeness
from hummock.text.normalise import prose
from hummock.text.traits import traits_of
from hummock.text.versions import name_of

ROW = np.dtype(
    [
        ("doc", "<i8"),
        ("create_time", "<f8"),
        ("update_time", "<f8"),
        ("event_time", "<f8"),
        ("text_hash", "<u8"),
        ("id_hash", "<u8"),
        ("length", "<u4"),
        ("session_position", "<i4"),
        ("chunk_count", "<u2"),
        ("kind", "u1"),
        ("origin", "u1"),
        ("session", "<u8"),
        ("traits", "u1"),
        ("name_hash", "<u8"),
        ("supersedes", "u1"),
        ("speaker", "<u4"),
        ("file", "<u4"),
        ("helpful", "u1"),
        ("wrong", "u1"),
        ("expire_time", "<f8"),
        ("token_sign", "u1"),
        ("writer", "<u4"),
        ("apart", "<u4"),
    ]
)
"""One memory's row as it is stored; new fields go to the end, and are 0 in rows of before they were there."""

# A row's size stands before it, so that a longer one of a newer version, or a shorter one of an older, can be read.
_SIZE = struct.Struct("<H")

_DOC = struct.Struct("<q")

_ROW = struct.Struct("<HqdddQQIiHBBQBQBIIBBdBII")

_CHUNKS = struct.Struct("<H")

_CHUNKS_AT = struct.calcsize("<HqdddQQIi")

_VERDICTS_AT = struct.calcsize("<HqdddQQIiHBBQBQBII")

_TOKEN_SIGN_AT = struct.calcsize("<HqdddQQIiHBBQBQBIIBBd")


class TokenSign(IntEnum):
    """The sign of what the token vectors of a memory's first chunk end in: where two models make the space, whose.

    Rows of before it was noted have NOT_NOTED. PENDING is stored of none: it is what waits for its vectors.
    """

    NOT_NOTED = 0
    POSITIVE = 1
    NEGATIVE = 2
    NO_TOKENS = 3
    PENDING = 4

    @classmethod
    def of(cls, embeddings: Sequence[Embedding]) -> TokenSign:
        """Sign of a memory with these embeddings, one a chunk."""
        return cls.of_bytes(embeddings[0].tokens[-1:].tobytes() if embeddings else b"")

    @classmethod
    def of_bytes(cls, tokens: bytes) -> TokenSign:
        """Sign of a memory whose first chunk has these token vectors, int8 as they are stored."""
        if not tokens:
            return cls.NO_TOKENS
        return cls.NEGATIVE if tokens[-1] > _LARGEST_INT8 else cls.POSITIVE


_LARGEST_INT8 = 127

NOBODY = (0, 0)
"""Voices that said of a memory that it was HELPFUL, and WRONG."""


def pack_row(
    memory: Memory,
    doc: int,
    length: int,
    session_position: int,
    chunk_count: int,
    verdicts: tuple[int, int] = NOBODY,
    token_sign: int = TokenSign.NOT_NOTED,
) -> bytes:
    """A memory's row and id as they are stored."""
    name = name_of(memory)
    echo, apart = likeness(_text(memory), memory.metadata, is_code=template.is_code(memory.kind))
    row = _ROW.pack(
        ROW.itemsize,
        doc,
        memory.create_time,
        memory.update_time,
        math.nan if memory.event_time is None else memory.event_time,
        echo,
        id_hash(memory.id),
        length,
        session_position,
        chunk_count,
        memory.kind,
        memory.origin,
        id_hash(memory.session_id) if memory.session_id else 0,
        _traits(memory),
        id_hash(name) if name else 0,
        bool(memory.supersedes),
        speaker_hash(memory.speaker),
        file_hash(memory),
        *verdicts,
        memory.expire_time or 0.0,
        token_sign,
        writer_hash(memory),
        apart,
    )
    return row + memory.id.encode()


def _text(memory: Memory) -> str:
    return template.compared(memory.kind, memory.index.title, memory.payload) if memory.payload else ""


def _traits(memory: Memory) -> int:
    """Traits of a note as bits; 0 for other kinds: a document or a function is no turn of a conversation."""
    return int(traits_of(memory.payload.content)) if memory.payload and memory.kind is MemoryKind.NOTE else 0


def id_hash(memory_id: str) -> int:
    """64 bits of the id of a memory or a session."""
    return int.from_bytes(blake2b(memory_id.encode(), digest_size=8).digest(), "little")


def speaker_hash(name: str) -> int:
    """32 bits of a speaker's name, whatever its case and spaces; 0 of none."""
    folded = prose(name)
    return zlib.crc32(folded.encode("utf-8", "surrogatepass")) or 1 if folded else 0


def writer_hash(memory: Memory) -> int:
    """32 bits of the hash of an unverified writer's name; 0 for all other memories."""
    name = memory.writer if is_of_no_hand(memory) else ""
    return zlib.crc32(name.encode()) or 1 if name else 0


def file_hash(memory: Memory) -> int:
    """32 bits of the path that a fragment of code stands in; 0 of all else."""
    detail = memory.payload.detail if memory.payload else None
    path = detail.path if isinstance(detail, CodeFragment) else ""
    return zlib.crc32(path.encode("utf-8", "surrogatepass")) or 1 if path else 0


def reanalysed(value: bytes, memory: Memory, length: int, tokens: bytes) -> bytes:
    """A stored row and id with everything an analyzer derives from the memory; its places and vectors stay.

    `tokens` are the token vectors of its first chunk, which say what rows of before did not.
    """
    (row,), _ = unpack_rows([value])
    verdicts = int(row["helpful"]), int(row["wrong"])
    places = int(row["doc"]), length, int(row["session_position"]), int(row["chunk_count"])
    return pack_row(memory, *places, verdicts, TokenSign.of_bytes(tokens))


def renumbered(value: bytes, doc: int) -> bytes:
    """A stored row and id under another document's number."""
    return value[: _SIZE.size] + _DOC.pack(doc) + value[_SIZE.size + _DOC.size :]


def embedded(value: bytes, embeddings: Sequence[Embedding]) -> bytes:
    """A stored row and id with the embeddings that it was without; one of an older version becomes longer."""
    row, rest = _whole_row(value)
    _CHUNKS.pack_into(row, _CHUNKS_AT, len(embeddings))
    row[_TOKEN_SIGN_AT] = TokenSign.of(embeddings)
    return bytes(row) + rest


def judged(value: bytes, verdicts: tuple[int, int]) -> bytes:
    """A stored row and id with other verdicts; one of before there were any becomes longer."""
    row, rest = _whole_row(value)
    row[_VERDICTS_AT : _VERDICTS_AT + len(verdicts)] = bytes(verdicts)
    return bytes(row) + rest


def _whole_row(value: bytes) -> tuple[bytearray, bytes]:
    """A stored row with all fields of today and its size before it, and what follows it."""
    end = _SIZE.size + _SIZE.unpack_from(value)[0]
    fields = value[_SIZE.size : end].ljust(ROW.itemsize, b"\0")
    return bytearray(_SIZE.pack(len(fields)) + fields), value[end:]


def unpack_rows(values: Sequence[bytes]) -> tuple[NDArray[np.void], list[str]]:
    """Stored rows as one structured array, and the memories' ids.

    A kind or a sign that there is not, since a disk has not kept it, is 0.
    """
    ends = [_SIZE.size + size for value in values for size in _SIZE.unpack_from(value)]
    ids = [value[end:].decode() for value, end in zip(values, ends, strict=True)]
    whole = _SIZE.size + ROW.itemsize
    if any(end != whole for end in ends):  # of an older version, or of a newer one
        values = [value[: min(end, whole)].ljust(whole, b"\0") for value, end in zip(values, ends, strict=True)]
    unpacked = np.frombuffer(b"".join([value[_SIZE.size : whole] for value in values]), ROW)
    for name, largest in (("kind", max(MemoryKind)), ("token_sign", max(TokenSign))):
        unknown = unpacked[name] > largest
        if unknown.any():
            unpacked = unpacked.copy()
            unpacked[name][unknown] = 0
    return unpacked, ids
