"""Encoding of a memory's stored row, from which a view's columns are built."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import MemoryColumns, dtypes_of
from hummock.core.embedding import Embedding
from hummock.core.memory import CodeFragment, Memory, MemoryKind
from hummock.core.review import is_of_no_hand
from hummock.text import template
from hummock.text.likeness import likeness, name_of
from hummock.text.normalise import prose
from hummock.text.questions import Trait, traits_of
from hummock.text.told_days import event_time_read

_ON_DISK: dict[str, np.dtype[Any]] = {"length": np.dtype("<u4"), "chunk_count": np.dtype("<u2")}
"""Columns with a smaller dtype on disk than in memory."""

ROW = np.dtype(
    [(name, _ON_DISK.get(name, dtype).newbyteorder("<")) for name, dtype in dtypes_of(MemoryColumns).items()]
)
"""One memory's row as it is stored, without padding."""

_FORMATS = {"f8": "d", "i8": "q", "u8": "Q", "i4": "i", "u4": "I", "u2": "H", "u1": "B", "i1": "b", "b1": "?"}
"""Letters of `struct` for dtypes of `ROW`."""

# Three times as fast as an array of one row.
_FIELDS = struct.Struct("<" + "".join(_FORMATS[ROW[name].str[1:]] for name in ROW.names or ()))

# A row is prefixed by its size, so that a longer one of a newer version, or a shorter one of an older, can be read.
_SIZE = struct.Struct("<H")

_DOC = struct.Struct("<q")


class TokenSign(IntEnum):
    """Sign of the last component of a memory's first-chunk token vectors; in a space of two models it tells which.

    Rows written before signs were stored have NOT_NOTED. PENDING is never stored: it marks memories without vectors.
    """

    NOT_NOTED = 0
    POSITIVE = 1
    NEGATIVE = 2
    NO_TOKENS = 3
    PENDING = 4

    @classmethod
    def of(cls, embeddings: Sequence[Embedding]) -> TokenSign:
        """Sign of a memory with these embeddings, one per chunk."""
        return cls.of_bytes(embeddings[0].tokens[-1:].tobytes() if embeddings else b"")

    @classmethod
    def of_bytes(cls, tokens: bytes) -> TokenSign:
        """Sign of a memory whose first chunk has these token vectors, stored as int8."""
        if not tokens:
            return cls.NO_TOKENS
        return cls.NEGATIVE if tokens[-1] > _LARGEST_INT8 else cls.POSITIVE


_LARGEST_INT8 = 127

NOBODY = (0, 0)  # Numbers of HELPFUL and WRONG verdicts of a memory without any.


def pack_row(
    memory: Memory,
    doc: int,
    length: int,
    session_position: int,
    chunk_count: int,
    verdicts: tuple[int, int] = NOBODY,
    token_sign: int = TokenSign.NOT_NOTED,
) -> bytes:
    """Encode a memory's row and id."""
    name = name_of(memory)
    text = template.compared(memory.kind, memory.index.title, memory.payload) if memory.payload else ""
    echo, apart = likeness(text, memory.metadata, is_code=template.is_code(memory.kind))
    helpful, wrong = verdicts
    traits, event_time = _traits(memory), memory.event_time
    if event_time is None and traits & Trait.TELLS_TIME:
        event_time = event_time_read(memory)
        traits |= 0 if event_time is None else Trait.DATED
    row = {
        "doc": doc,
        "create_time": memory.create_time,
        "update_time": memory.update_time,
        "event_time": math.nan if event_time is None else event_time,
        "text_hash": echo,
        "id_hash": id_hash(memory.id),
        "length": length,
        "session_position": session_position,
        "chunk_count": chunk_count,
        "kind": memory.kind,
        "origin": memory.origin,
        "session": id_hash(memory.session_id) if memory.session_id else 0,
        "traits": traits,
        "name_hash": id_hash(name) if name else 0,
        "supersedes": bool(memory.supersedes),
        "speaker": speaker_hash(memory.speaker),
        "file": file_hash(memory),
        "helpful": helpful,
        "wrong": wrong,
        "expire_time": memory.expire_time or 0.0,
        "token_sign": token_sign,
        "writer": writer_hash(memory),
        "apart": apart,
        "pinned": memory.pinned,
    }
    fields = _FIELDS.pack(*[row[column] for column in ROW.names or ()])
    return _SIZE.pack(len(fields)) + fields + memory.id.encode()


def _traits(memory: Memory) -> int:
    """Traits of a note as bits; 0 for other kinds, which are no conversation turns."""
    return int(traits_of(memory.payload.content)) if memory.payload and memory.kind is MemoryKind.NOTE else 0


def id_hash(memory_id: str) -> int:
    """64-bit hash of the id of a memory or a session."""
    return int.from_bytes(blake2b(memory_id.encode(), digest_size=8).digest(), "little")


def speaker_hash(name: str) -> int:
    """32-bit hash of a speaker's name, ignoring case and spaces; 0 for no name."""
    folded = prose(name)
    return zlib.crc32(folded.encode("utf-8", "surrogatepass")) or 1 if folded else 0


def writer_hash(memory: Memory) -> int:
    """32-bit hash of an unverified writer's name; 0 for all other memories."""
    name = memory.writer if is_of_no_hand(memory) else ""
    return zlib.crc32(name.encode()) or 1 if name else 0


def file_hash(memory: Memory) -> int:
    """32-bit hash of a code fragment's path; 0 for other memories."""
    detail = memory.payload.detail if memory.payload else None
    path = detail.path if isinstance(detail, CodeFragment) else ""
    return zlib.crc32(path.encode("utf-8", "surrogatepass")) or 1 if path else 0


def reanalysed(value: bytes, memory: Memory, length: int, tokens: bytes) -> bytes:
    """A stored row and id with all derived fields computed again; `tokens` are the first chunk's vectors."""
    (row,), _ = unpack_rows([value])
    verdicts = int(row["helpful"]), int(row["wrong"])
    places = int(row["doc"]), length, int(row["session_position"]), int(row["chunk_count"])
    return pack_row(memory, *places, verdicts, TokenSign.of_bytes(tokens))


def renumbered(value: bytes, doc: int) -> bytes:
    """A stored row and id with another document number."""
    return value[: _SIZE.size] + _DOC.pack(doc) + value[_SIZE.size + _DOC.size :]


def embedded(value: bytes, embeddings: Sequence[Embedding]) -> bytes:
    """A stored row and id with embeddings added; a row of an older version becomes longer."""
    return with_chunks(value, len(embeddings), TokenSign.of(embeddings))


def with_chunks(value: bytes, chunk_count: int, token_sign: TokenSign) -> bytes:
    """A stored row and id with so many chunks of embeddings; a row of an older version becomes longer."""
    return _changed(value, {"chunk_count": chunk_count, "token_sign": token_sign})


def judged(value: bytes, verdicts: tuple[int, int]) -> bytes:
    """A stored row and id with other verdicts; a row of an older version becomes longer."""
    return _changed(value, dict(zip(("helpful", "wrong"), verdicts, strict=True)))


def _changed(value: bytes, fields: Mapping[str, int]) -> bytes:
    """A stored row extended to all present fields, with these set; bytes after it stay."""
    end = _SIZE.size + _SIZE.unpack_from(value)[0]
    row = bytearray(value[_SIZE.size : end].ljust(ROW.itemsize, b"\0"))
    known = np.frombuffer(row, ROW, 1)
    for name, field in fields.items():
        known[name] = field
    return _SIZE.pack(len(row)) + row + value[end:]


def unpack_rows(values: Sequence[bytes]) -> tuple[NDArray[np.void], list[str]]:
    """Stored rows as one structured array, and the ids; an unknown kind or sign, as of a damaged disk, is 0."""
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
