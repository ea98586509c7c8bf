"""Sessions and messages as they lie in the store, and their keys. Records evolve as those of `codec.py`."""

from __future__ import annotations

import struct

import msgspec

from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.store.lmdb import keys

_NUMBER = struct.Struct(">Q")
_ORDER = struct.Struct(">BQ")
_LAST = (1 << 64) - 1


class SessionRecord(msgspec.Struct, array_like=True, frozen=True):
    """A session; `number` stands for it in keys and is never used again, `moved` is its place in the order."""

    number: int
    moved: int
    id: str
    title: str
    create_time: float
    update_time: float
    is_archived: bool
    message_count: int


class MessageRecord(msgspec.Struct, array_like=True, frozen=True):
    """A message; its session and its position are its key."""

    id: str
    role: int
    content: str
    raw: str
    send_time: float
    memory_id: str = ""


_SESSION = msgspec.msgpack.Decoder(SessionRecord)
_MESSAGE = msgspec.msgpack.Decoder(MessageRecord)


def decode_session(value: bytes) -> SessionRecord:
    """A record that was encoded."""
    return _SESSION.decode(value)


def decode_message(value: bytes) -> MessageRecord:
    """A record that was encoded."""
    return _MESSAGE.decode(value)


def session_record(session: Session, number: int, moved: int) -> SessionRecord:
    """The record of a session."""
    return SessionRecord(
        number=number,
        moved=moved,
        id=session.id,
        title=session.title,
        create_time=session.create_time,
        update_time=session.update_time,
        is_archived=session.is_archived,
        message_count=session.message_count,
    )


def session_of(record: SessionRecord) -> Session:
    """The session of a record."""
    return Session(
        id=record.id,
        title=record.title,
        create_time=record.create_time,
        update_time=record.update_time,
        is_archived=record.is_archived,
        message_count=record.message_count,
        number=record.number,
    )


def message_record(message: SessionMessage) -> MessageRecord:
    """The record of a message."""
    return MessageRecord(
        id=message.id,
        role=message.role,
        content=message.content,
        raw=message.raw,
        send_time=message.send_time,
        memory_id=message.memory_id,
    )


def message_of(value: bytes, position: int) -> SessionMessage:
    """The message of an encoded record."""
    record = decode_message(value)
    return SessionMessage(
        id=record.id,
        role=PromptRole(record.role),
        content=record.content,
        raw=record.raw,
        send_time=record.send_time,
        position=position,
        memory_id=record.memory_id,
    )


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
