"""Sessions and their messages: storage format, reads and writes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hummock.core.errors import SessionNotFound
from hummock.core.session import MessagePage, Session, SessionMessage, SessionPage
from hummock.ports.sessions import Sessions, SessionWork
from hummock.store.errors import EntryDamaged
from hummock.store.tables import integrity, keys
from hummock.store.tables.engine import Engine, Table, Tables, Transaction
from hummock.store.tables.integrity import Damage
from hummock.store.tables.lookups import project_number
from hummock.store.tables.record_codec import Fields, decode_array, encode

_NUMBER = struct.Struct(">Q")
_ORDER = struct.Struct(">BQ")
_LAST = (1 << 64) - 1


class SessionRecord(Struct, frozen=True):
    """A session; its `number` is used in keys and never again, `moved` is its place in the order."""

    session: Session
    moved: int


_SESSION = Fields(Session, but_for="number")
_MESSAGE = Fields(SessionMessage, but_for="position")


def encode_session(record: SessionRecord) -> bytes:
    """Encode a session with its number and place."""
    return encode((record.session.number, record.moved, *_SESSION.values(record.session)))


def decode_session(value: bytes) -> SessionRecord:
    """Inverse of `encode_session`."""
    number, moved, *values = decode_array(value)
    return SessionRecord(_SESSION.value(values, number=number), moved)


def encode_message(message: SessionMessage) -> bytes:
    """Encode a message; its key has the session and the position."""
    return encode(_MESSAGE.values(message))


def decode_message(value: bytes, position: int) -> SessionMessage:
    """Inverse of `encode_message`."""
    return _MESSAGE.value(decode_array(value), position=position)


def clock_key(project: int) -> bytes:
    """Key of the project's last session number, in the order table after all places."""
    return keys.project_prefix(project) + b"\xff"


def order_prefix(project: int, *, archived: bool) -> bytes:
    """Key prefix of the places of all archived sessions, or of all others."""
    return keys.project_prefix(project) + bytes([archived])


def order_key(project: int, moved: int, *, archived: bool) -> bytes:
    """Key of a session's place; the most recently moved session comes first."""
    return keys.project_prefix(project) + _ORDER.pack(archived, _LAST - moved)


def messages_prefix(project: int, number: int) -> bytes:
    """Key prefix of a session's messages, by position and by id."""
    return keys.project_prefix(project) + _NUMBER.pack(number)


def message_key(project: int, number: int, position: int) -> bytes:
    """Key of a message by its position."""
    return messages_prefix(project, number) + _NUMBER.pack(position)


def message_id_key(project: int, number: int, message_id: str) -> bytes:
    """Key of a message by its id."""
    return messages_prefix(project, number) + message_id.encode()


def number_of(key: bytes) -> int:
    """The number at the end of a key or a value."""
    return int(_NUMBER.unpack(key[-_NUMBER.size :])[0])


packed: Final[Callable[[int], bytes]] = _NUMBER.pack
"""Encode a number as a value."""


_A_SESSION, _A_MESSAGE = "a session", "a message of a session"


def read_session(key: bytes, stored: bytes) -> SessionRecord:
    """Decode a stored session. Raises: EntryDamaged."""
    return integrity.decoded(_A_SESSION, key, stored, decode_session)


def read_message(key: bytes, stored: bytes) -> SessionMessage:
    """Decode a stored message. Raises: EntryDamaged."""
    return integrity.decoded(_A_MESSAGE, key, stored, lambda value: decode_message(value, number_of(key)))


def read_number(key: bytes, stored: bytes) -> int:
    """Decode the position of a message id, or a project's last session number. Raises: EntryDamaged."""
    return number_of(integrity.number("a number of a session", key, stored))


def _found(txn: Transaction, table: Table, key: bytes, what: str, is_lost: integrity.Lost) -> bytes | None:
    """The stored value of a key, or None. Raises: EntryDamaged: the entry is lost."""
    stored = txn.get(key, db=table)
    if stored is None and is_lost(txn, table, key):
        raise EntryDamaged(what)
    return stored


def _in_order(
    txn: Transaction, tables: Tables, damage: Damage, prefix: bytes, start: bytes = b""
) -> Iterator[SessionRecord]:
    """Sessions in the order of their places; damaged sessions and places are recorded and left out."""
    for place, key in integrity.entries(txn, tables.session_order, prefix, start):
        if key is None:
            damage.note_entry("a place of a session", place)
            continue
        try:
            yield read_session(key, txn.get(key, b"", db=tables.session_record))
        except EntryDamaged as error:
            damage.note_entry(error.what, key)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Opened:
    txn: Transaction
    project: int
    record: SessionRecord


class SessionReads(Sessions):
    """Sessions read from the tables."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tables = engine.tables
        self._damage = engine.damage

    def get(self, project: str, session_id: str) -> Session:
        with self._opened(project, session_id) as opened:
            return opened.record.session

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> SessionPage:
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return SessionPage(sessions=(), next_behind=None)
            prefix = order_prefix(number, archived=archived)
            start = b"" if behind is None else order_key(number, behind - 1, archived=archived)
            found = list(islice(_in_order(txn, self._tables, self._damage, prefix, start), limit + 1))
        return SessionPage(
            sessions=tuple(record.session for record in found[:limit]),
            next_behind=found[limit - 1].moved if len(found) > limit else None,
        )

    def all(self, project: str) -> tuple[Session, ...]:
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return ()
            prefixes = [order_prefix(number, archived=archived) for archived in (True, False)]
            found = [reversed(list(_in_order(txn, self._tables, self._damage, prefix))) for prefix in prefixes]
        return tuple(record.session for records in found for record in records)

    def message(self, project: str, session_id: str, message_id: str) -> SessionMessage | None:
        with self._opened(project, session_id) as opened:
            key = message_id_key(opened.project, opened.record.session.number, message_id)
            value = _found(opened.txn, self._tables.message_id, key, _A_MESSAGE, integrity.number_may_be_lost)
            found = None if value is None else self._read(opened, read_number(key, value))[0]
            return None if found is None or found.is_deleted else found

    def before(self, project: str, session_id: str, position: int | None, limit: int, most_bytes: int) -> MessagePage:
        with self._opened(project, session_id) as opened:
            end = opened.record.session.last_position + 1
            if position is not None:
                end = min(end, position)
            found = _fitting(self._there(opened, range(end - 1, 0, -1)), limit, most_bytes)
            oldest = found[-1].position if found else end
            has_before = oldest > 1
            if opened.record.session.deleted_count:
                has_before = any(True for _ in self._there(opened, range(oldest - 1, 0, -1)))
        return MessagePage(messages=tuple(reversed(found)), has_before=has_before)

    def behind(
        self,
        project: str,
        session_id: str,
        position: int,
        most_bytes: int,
        number: int | None = None,
        last: int | None = None,
    ) -> tuple[SessionMessage, ...]:
        with self._opened(project, session_id) as opened:
            if number not in (None, opened.record.session.number):
                raise SessionNotFound(session_id)
            newest = opened.record.session.last_position
            positions = range(position + 1, min(newest, newest if last is None else last) + 1)
            return tuple(_fitting(self._whole(opened, positions), len(positions), most_bytes))

    @contextmanager
    def _opened(self, project: str, session_id: str) -> Iterator[_Opened]:
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            key = b"" if number is None else keys.name_key(number, session_id)
            if number is None:
                raise SessionNotFound(session_id)
            what = f"session {session_id}"
            value = _found(txn, self._tables.session_record, key, what, integrity.may_be_lost)
            if value is None:
                raise SessionNotFound(session_id)
            yield _Opened(txn=txn, project=number, record=_named(session_id, key, value))

    def _read(self, opened: _Opened, position: int) -> tuple[SessionMessage, int]:
        key = message_key(opened.project, opened.record.session.number, position)
        value = opened.txn.get(key, b"", db=self._tables.message)
        return read_message(key, value), len(value)

    def _there(self, opened: _Opened, positions: range) -> Iterator[tuple[SessionMessage, int]]:
        """Messages that are not deleted, and their bytes."""
        return (found for found in self._whole(opened, positions) if not found[0].is_deleted)

    def _whole(self, opened: _Opened, positions: range) -> Iterator[tuple[SessionMessage, int]]:
        """Messages and their bytes, in this order; damaged ones are recorded and left out."""
        for position in positions:
            try:
                yield self._read(opened, position)
            except EntryDamaged as error:
                number = opened.record.session.number
                self._damage.note_entry(error.what, message_key(opened.project, number, position))


def _named(session_id: str, key: bytes, stored: bytes) -> SessionRecord:
    """Decode a session; an error names its id. Raises: EntryDamaged."""
    try:
        return read_session(key, stored)
    except EntryDamaged as error:
        raise EntryDamaged(f"session {session_id}") from error


def _fitting(messages: Iterator[tuple[SessionMessage, int]], limit: int, most_bytes: int) -> list[SessionMessage]:
    """The first messages within both limits; at least one if there is any."""
    found: list[SessionMessage] = []
    for message, size_bytes in islice(messages, limit):
        most_bytes -= size_bytes
        if found and most_bytes < 0:
            break
        found.append(message)
    return found


def sessions_of(txn: Transaction, tables: Tables, project: int) -> Iterator[Session]:
    """All intact sessions of a project, in no particular order."""
    for key, value in keys.entries(txn, tables.session_record, keys.project_prefix(project)):
        with suppress(EntryDamaged):
            yield read_session(key, value).session


class SessionUnit(SessionWork):
    """Sessions within a unit of work."""

    def __init__(
        self, txn: Transaction, tables: Tables, damage: Damage, number: int, on_change: Callable[[], None]
    ) -> None:
        """`number` is the project's; `on_change` is called before any change."""
        self._txn = txn
        self._tables = tables
        self._damage = damage
        self._project = number
        self._on_change = on_change
        self.has_put = False
        self.has_removed = False
        self.put_bytes = 0

    def get(self, session_id: str) -> Session | None:
        record = self._find(session_id)
        return None if record is None else record.session

    def active(self) -> Session | None:
        prefix = order_prefix(self._project, archived=False)
        first = next(_in_order(self._txn, self._tables, self._damage, prefix), None)
        return None if first is None else first.session

    def message(self, session_id: str, message_id: str) -> SessionMessage | None:
        number = self._present(session_id).session.number
        key = message_id_key(self._project, number, message_id)
        position = _found(self._txn, self._tables.message_id, key, _A_MESSAGE, integrity.is_lost)
        return None if position is None else self._message(number, read_number(key, position))

    def behind(self, session_id: str, position: int) -> Iterator[SessionMessage]:
        session = self._present(session_id).session
        for at in range(position + 1, session.last_position + 1):
            message = self._message(session.number, at)
            if not message.is_deleted:
                yield message

    def create(self, session: Session) -> None:
        tick = self._tick()
        self._put(SessionRecord(replace(session, number=tick), tick))

    def change(self, session: Session) -> None:
        self._on_change()
        record = self._present(session.id)
        self._leave_order(record)
        self._put(SessionRecord(replace(session, number=record.session.number), record.moved))

    def append(self, session: Session, message: SessionMessage) -> SessionMessage:
        record, tick = self._present(session.id), self._tick()
        self._leave_order(record)
        number, position = record.session.number, record.session.last_position + 1
        placed = replace(message, position=position)
        count = record.session.message_count + 1
        self._put(SessionRecord(replace(session, message_count=count, number=number), tick))
        by_id = message_id_key(self._project, number, message.id)
        self._txn.put(by_id, integrity.seal(by_id, packed(position)), db=self._tables.message_id)
        self._put_message(number, placed)
        return placed

    def learnt(self, session_id: str, message: SessionMessage) -> None:
        self._on_change()
        self._put_message(self._present(session_id).session.number, message)

    def put(self, session: Session, messages: Sequence[SessionMessage]) -> None:
        had_put = self.has_put
        self.change(session)
        for message in messages:
            self._put_message(session.number, message)
        if all(message.is_deleted for message in messages):  # removals alone are allowed in a full store
            self.has_put, self.has_removed = had_put, True

    def delete(self, session_id: str) -> None:
        """Make an existing session disappear; `clear` removes its messages."""
        self._on_change()
        self.has_removed = True
        record = self._present(session_id)
        self._leave_order(record)
        self._txn.delete(keys.name_key(self._project, session_id), db=self._tables.session_record)
        self._txn.put(messages_prefix(self._project, record.session.number), b"", db=self._tables.session_deleted)

    def clear(self, limit: int) -> bool:
        deleted = keys.entries(self._txn, self._tables.session_deleted, keys.project_prefix(self._project))
        for prefix in [key for key, _ in deleted]:
            # Found by id, as a message itself may have half a megabyte.
            found = list(islice(keys.entries(self._txn, self._tables.message_id, prefix), limit + 1))
            self._on_change()
            self.has_removed = True
            for by_id, stored in found[:limit]:
                # The message of a damaged position stays, unreachable.
                position = integrity.opened_number(by_id, stored)
                if position is not None:
                    self._txn.delete(prefix + position, db=self._tables.message)
                self._txn.delete(by_id, db=self._tables.message_id)
            if len(found) > limit:
                return True
            limit -= len(found)
            self._txn.delete(prefix, db=self._tables.session_deleted)
        return False

    def _find(self, session_id: str) -> SessionRecord | None:
        key = keys.name_key(self._project, session_id)
        value = _found(self._txn, self._tables.session_record, key, f"session {session_id}", integrity.is_lost)
        return None if value is None else _named(session_id, key, value)

    def _present(self, session_id: str) -> SessionRecord:
        record = self._find(session_id)
        if record is None:
            raise ValueError(f"session {session_id} is not there")
        return record

    def _message(self, number: int, position: int) -> SessionMessage:
        key = message_key(self._project, number, position)
        return read_message(key, self._txn.get(key, b"", db=self._tables.message))

    def _put(self, record: SessionRecord) -> None:
        self.has_put = True
        key = keys.name_key(self._project, record.session.id)
        self._txn.put(key, integrity.seal(key, encode_session(record)), db=self._tables.session_record)
        place = order_key(self._project, record.moved, archived=record.session.is_archived)
        self._txn.put(place, integrity.seal(place, key), db=self._tables.session_order)

    def _put_message(self, number: int, message: SessionMessage) -> None:
        self.has_put = True
        key = message_key(self._project, number, message.position)
        value = integrity.seal(key, encode_message(message))
        self._txn.put(key, value, db=self._tables.message)
        self.put_bytes += len(value)

    def _leave_order(self, record: SessionRecord) -> None:
        place = order_key(self._project, record.moved, archived=record.session.is_archived)
        self._txn.delete(place, db=self._tables.session_order)

    def _tick(self) -> int:
        """The project's next number, for a session and for its place in the order."""
        self._on_change()
        key = clock_key(self._project)
        stored = _found(self._txn, self._tables.session_order, key, "the clock of sessions", integrity.may_be_lost)
        tick = 1 if stored is None else 1 + read_number(key, stored)
        self._txn.put(key, integrity.seal(key, packed(tick)), db=self._tables.session_order)
        return tick
