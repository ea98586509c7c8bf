"""Sessions and messages as they are on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice

import lmdb

from hummock.core.errors import SessionNotFound
from hummock.core.session import MessagePage, Session, SessionMessage, SessionPage
from hummock.store import scan
from hummock.store.environment import Environment
from hummock.store.records import messages as records
from hummock.store.views.residents import project_number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Opened:
    """A session's record in a read transaction."""

    txn: lmdb.Transaction[bytes]
    project: int
    record: records.SessionRecord


class SessionReads:
    """The store's `ports.Sessions`."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._tables = environment.tables

    def get(self, project: str, session_id: str) -> Session:
        """One session."""
        with self._opened(project, session_id) as opened:
            return records.session_of(opened.record)

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> SessionPage:
        """At most `limit` sessions, the one that moved last first."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return SessionPage(sessions=(), next_behind=None)
            prefix = records.order_prefix(number, archived=archived)
            start = b"" if behind is None else records.order_key(number, behind - 1, archived=archived)
            places = islice(scan.entries(txn, self._tables.session_order, prefix, start), limit + 1)
            found = [records.decode_session(txn.get(key, b"", db=self._tables.session_record)) for _, key in places]
        return SessionPage(
            sessions=tuple(records.session_of(record) for record in found[:limit]),
            next_behind=found[limit - 1].moved if len(found) > limit else None,
        )

    def all(self, project: str) -> tuple[Session, ...]:
        """All sessions as they are at one moment."""
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            if number is None:
                return ()
            prefixes = [records.order_prefix(number, archived=archived) for archived in (True, False)]
            places = [reversed(list(scan.entries(txn, self._tables.session_order, prefix))) for prefix in prefixes]
            values = [txn.get(key, b"", db=self._tables.session_record) for _, key in chain(*places)]
        return tuple(records.session_of(records.decode_session(value)) for value in values)

    def message(self, project: str, session_id: str, message_id: str) -> SessionMessage | None:
        """One message; None where the session has none with this id."""
        with self._opened(project, session_id) as opened:
            key = records.message_id_key(opened.project, opened.record.number, message_id)
            value = opened.txn.get(key, db=self._tables.message_id)
            return None if value is None else self._read(opened, records.number_of(value))[0]

    def before(self, project: str, session_id: str, position: int | None, limit: int, most_bytes: int) -> MessagePage:
        """At most `limit` messages directly before a position, in the order of time."""
        with self._opened(project, session_id) as opened:
            end = opened.record.message_count + 1
            if position is not None:
                end = min(end, position)
            first = max(1, end - limit)
            found = _fitting(range(end - 1, first - 1, -1), lambda at: self._read(opened, at), most_bytes)
        messages = tuple(reversed(found))
        oldest = messages[0].position if messages else end
        return MessagePage(messages=messages, has_before=oldest > 1)

    def behind(
        self, project: str, session_id: str, position: int, most_bytes: int, number: int | None = None
    ) -> tuple[SessionMessage, ...]:
        """The messages directly behind a position, in the order of time."""
        with self._opened(project, session_id) as opened:
            if number not in (None, opened.record.number):
                raise SessionNotFound(session_id)
            positions = range(position + 1, opened.record.message_count + 1)
            return tuple(_fitting(positions, lambda at: self._read(opened, at), most_bytes))

    @contextmanager
    def _opened(self, project: str, session_id: str) -> Iterator[_Opened]:
        with self._environment.reading() as txn:
            number = project_number(txn, self._environment, project)
            key = b"" if number is None else records.session_key(number, session_id)
            value = txn.get(key, db=self._tables.session_record) if key else None
            if number is None or value is None:
                raise SessionNotFound(session_id)
            yield _Opened(txn=txn, project=number, record=records.decode_session(value))

    def _read(self, opened: _Opened, position: int) -> tuple[SessionMessage, int]:
        """A message and its bytes."""
        key = records.message_key(opened.project, opened.record.number, position)
        value = opened.txn.get(key, b"", db=self._tables.message)
        return records.message_of(value, position), len(value)


def _fitting(
    positions: range, read: Callable[[int], tuple[SessionMessage, int]], most_bytes: int
) -> list[SessionMessage]:
    """The messages of these positions, in their order, as many as fit; one at least, where there is one."""
    found: list[SessionMessage] = []
    for position in positions:
        message, size_bytes = read(position)
        most_bytes -= size_bytes
        if found and most_bytes < 0:
            break
        found.append(message)
    return found
