"""What a write changes in the sessions of its project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import lmdb

from hummock.core.session import Session, SessionMessage
from hummock.store import keys, scan
from hummock.store.environment import Tables
from hummock.store.records import codec
from hummock.store.records import messages as records


class SessionUnit:
    """The store's SessionWork."""

    def __init__(
        self, txn: lmdb.Transaction[bytes], tables: Tables, number: int, on_change: Callable[[], None]
    ) -> None:
        """Args are the write's transaction, the project's number, and what is called before anything is changed."""
        self._txn = txn
        self._tables = tables
        self._project = number
        self._on_change = on_change
        self.has_put = False
        self.put_bytes = 0

    def get(self, session_id: str) -> Session | None:
        """A session."""
        record = self._find(session_id)
        return None if record is None else records.session_of(record)

    def active(self) -> Session | None:
        """Of the sessions that are not archived the one that moved last."""
        prefix = records.order_prefix(self._project, archived=False)
        for _, key in scan.entries(self._txn, self._tables.session_order, prefix):
            return records.session_of(records.decode_session(self._txn.get(key, b"", db=self._tables.session_record)))
        return None

    def message(self, session_id: str, message_id: str) -> SessionMessage | None:
        """A message of a session that is there."""
        number = self._present(session_id).number
        key = records.message_id_key(self._project, number, message_id)
        position = self._txn.get(key, db=self._tables.message_id)
        return None if position is None else self._message(number, records.number_of(position))

    def create(self, session: Session) -> None:
        """Stores a session whose id is free; it has moved last."""
        tick = self._tick()
        self._put(records.session_record(session, tick, tick))

    def change(self, session: Session) -> None:
        """Replaces a session's values; its place in the order stays."""
        self._on_change()
        record = self._present(session.id)
        self._leave_order(record)
        self._put(records.session_record(session, record.number, record.moved))

    def append(self, session: Session, message: SessionMessage) -> SessionMessage:
        """Stores a message behind the newest one; the session has moved last."""
        record, tick = self._present(session.id), self._tick()
        self._leave_order(record)
        placed = replace(message, position=record.message_count + 1)
        self._put(records.session_record(replace(session, message_count=placed.position), record.number, tick))
        by_id = records.message_id_key(self._project, record.number, message.id)
        self._txn.put(by_id, records.packed(placed.position), db=self._tables.message_id)
        self._put_message(record.number, placed)
        return placed

    def learnt(self, session_id: str, message: SessionMessage) -> None:
        """Replaces a message that is there by one that differs in its memory alone."""
        self._on_change()
        self._put_message(self._present(session_id).number, message)

    def delete(self, session_id: str) -> None:
        """Makes a session that is there disappear; its messages are left to `clear`."""
        self._on_change()
        record = self._present(session_id)
        self._leave_order(record)
        self._txn.delete(records.session_key(self._project, session_id), db=self._tables.session_record)
        self._txn.put(records.messages_prefix(self._project, record.number), b"", db=self._tables.session_deleted)

    def clear(self, limit: int) -> bool:
        """Removes at most `limit` messages of sessions that were deleted; whether some are left."""
        deleted = scan.entries(self._txn, self._tables.session_deleted, keys.project_prefix(self._project))
        for prefix in [key for key, _ in deleted]:
            # Positions, not texts: a text may have half a megabyte.
            found = list(islice(scan.entries(self._txn, self._tables.message_id, prefix), limit + 1))
            self._on_change()
            for by_id, position in found[:limit]:
                self._txn.delete(prefix + position, db=self._tables.message)
                self._txn.delete(by_id, db=self._tables.message_id)
            if len(found) > limit:
                return True
            limit -= len(found)
            self._txn.delete(prefix, db=self._tables.session_deleted)
        return False

    def _find(self, session_id: str) -> records.SessionRecord | None:
        value = self._txn.get(records.session_key(self._project, session_id), db=self._tables.session_record)
        return None if value is None else records.decode_session(value)

    def _present(self, session_id: str) -> records.SessionRecord:
        record = self._find(session_id)
        if record is None:
            raise ValueError(f"session {session_id} is not there")
        return record

    def _message(self, number: int, position: int) -> SessionMessage:
        value = self._txn.get(records.message_key(self._project, number, position), b"", db=self._tables.message)
        return records.message_of(value, position)

    def _put(self, record: records.SessionRecord) -> None:
        self.has_put = True
        key = records.session_key(self._project, record.id)
        self._txn.put(key, codec.encode(record), db=self._tables.session_record)
        place = records.order_key(self._project, record.moved, archived=record.is_archived)
        self._txn.put(place, key, db=self._tables.session_order)

    def _put_message(self, number: int, message: SessionMessage) -> None:
        self.has_put = True
        key = records.message_key(self._project, number, message.position)
        value = codec.encode(records.message_record(message))
        self._txn.put(key, value, db=self._tables.message)
        self.put_bytes += len(value)

    def _leave_order(self, record: records.SessionRecord) -> None:
        place = records.order_key(self._project, record.moved, archived=record.is_archived)
        self._txn.delete(place, db=self._tables.session_order)

    def _tick(self) -> int:
        """The next number of the project: for a session, and for its place in the order."""
        self._on_change()
        key = records.clock_key(self._project)
        tick = 1 + records.number_of(self._txn.get(key, records.packed(0), db=self._tables.session_order))
        self._txn.put(key, records.packed(tick), db=self._tables.session_order)
        return tick
