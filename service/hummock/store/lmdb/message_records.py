"""Sessions and messages as they lie in the store, and their keys. See `record_codec`."""

from __future__ import annotations

import struct

import msgspec

from hummock.core.session import Session, SessionMessage
from hummock.store.lmdb import keys
from hummock.store.lmdb.record_codec import Fields, decode_array, encode

_NUMBER = struct.Struct(">Q")
_ORDER = struct.Struct(">BQ")
_LAST = (1 << 64) - 1


class SessionRecord(msgspec.Struct, frozen=True):
    """A session; its `number` stands for it in keys and is never used again, `moved` is its place in the order."""

    session: Session
    moved: int


_SESSION = Fields(Session, but_for="number")
_MESSAGE = Fields(SessionMessage, but_for="position")


def encode_session(record: SessionRecord) -> bytes:
    """A session's number and place, and what else it holds."""
    return encode((record.session.number, record.moved, *_SESSION.values(record.session)))


def decode_session(value: bytes) -> SessionRecord:
    """Inverse of `encode_session`."""
    number, moved, *values = decode_array(value)
    return SessionRecord(_SESSION.value(values, number=number), moved)


def encode_message(message: SessionMessage) -> bytes:
    """A message; its session and its position are its key."""
    return encode(_MESSAGE.values(message))


def decode_message(value: bytes, position: int) -> SessionMessage:
    """Inverse of `encode_message`."""
    return _MESSAGE.value(decode_array(value), position=position)


def clock_key(project: int) -> bytes:
    """In the table of the order, behind all places: the last number that was given."""
    return keys.project_prefix(project) + b"\xff"


def session_key(project: int, session_id: str) -> bytes:
    """A session by its id."""
    return keys.name_key(project, session_id)


def order_prefix(project: int, *, archived: bool) -> bytes:
    """What the places of all archived sessions, or of all others, begin with."""
    return keys.project_prefix(project) + bytes([archived])


def order_key(project: int, moved: int, *, archived: bool) -> bytes:
    """A session's place; the one that moved last comes first."""
    return keys.project_prefix(project) + _ORDER.pack(archived, _LAST - moved)


def messages_prefix(project: int, number: int) -> bytes:
    """What the messages of a session begin with, by position and by id."""
    return keys.project_prefix(project) + _NUMBER.pack(number)


def message_key(project: int, number: int, position: int) -> bytes:
    """A message by its position."""
    return messages_prefix(project, number) + _NUMBER.pack(position)


def message_id_key(project: int, number: int, message_id: str) -> bytes:
    """A message by its id."""
    return messages_prefix(project, number) + message_id.encode()


def number_of(key: bytes) -> int:
    """The number at the end of a key or a value."""
    return int(_NUMBER.unpack(key[-_NUMBER.size :])[0])


def packed(number: int) -> bytes:
    """A number as a value."""
    return _NUMBER.pack(number)
