"""Equality of texts: one definition, for all callers and stores.

Two tellings are one memory where every field is equal, texts as they are written. Only line ends and outer white space
do not count. What a text is found, ranked and shown by folds more (`likeness.py`) and has no say here.
"""

from __future__ import annotations

import struct
from hashlib import blake2b

import msgspec
from msgspec.structs import astuple

from hummock.core.memory import Draft, Memory, MemoryIndex

_FLOAT = struct.Struct("<f")


def identity(told: Draft | Memory, index: MemoryIndex) -> bytes:
    """16 bytes that are equal for what is the same memory of one kind and one origin.

    An id is not part of it, for the server makes one where none is given. Neither is the time at which it was learnt:
    whoever gives one asks for a memory of that time (`ports.TextKey`).

    Args:
        told: With its payload.
        index: Its complete index, with what is derived where nothing was given.
    """
    payload = told.payload
    if payload is None:
        raise ValueError("the memory was read without its payload")
    said = (
        written(payload.content),
        written(payload.raw),
        () if payload.detail is None else [_written(part) for part in astuple(payload.detail)],
        written(index.title),
        written(index.summary),
        sorted(index.tags),
        told.session_id,
        told.speaker,
        told.writer,
        told.metadata,
        told.event_time,
        told.expire_time,
        told.emotion_label,
        # What came over the wire has this precision.
        _FLOAT.pack(told.trust),
        sorted(told.supersedes),
        told.source_hash,
    )
    return blake2b(msgspec.msgpack.encode(said), digest_size=16).digest()


def written(text: str) -> str:
    """The text with LF for line ends and without outer white space.

    The first line of several keeps its indentation, which says how far the others are indented.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    if "\n" not in plain.lstrip():
        return plain.lstrip()
    first = len(plain) - len(plain.lstrip())
    return plain[plain.rfind("\n", 0, first) + 1 :]


def _written(part: str | int | tuple[str, ...]) -> str | int | tuple[str, ...]:
    return written(part) if isinstance(part, str) else part
