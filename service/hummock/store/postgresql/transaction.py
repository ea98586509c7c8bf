"""A transaction of PostgreSQL as an engine's `Transaction`: keys and values of tables, read and written by rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString, overload

import psycopg
from psycopg import Cursor as SqlCursor
from psycopg import sql

from hummock.store.postgresql.connections import LOAD_PATIENCE_S, PatientConnection
from hummock.store.postgresql.rows import RowCursor
from hummock.store.postgresql.schema import SHARED_TABLES
from hummock.store.tables.engine import ChecksItsPages

_PROJECT_BYTES = 4

_MANY_ROWS = 256
"""So many take longer than a server that answers at all."""

Row = tuple[bytes, bytes]
"""A key and its value."""


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table, and the statements that read and write it.

    Attributes:
        name: In the schema.
        is_shared: Whether its keys are no project's.
    """

    name: str
    is_shared: bool
    get: bytes
    several: bytes
    up: bytes
    up_from: bytes
    between: bytes
    down: bytes
    down_from_end: bytes
    count: bytes
    put: bytes
    remove: bytes

    @classmethod
    def named(cls, name: str) -> RowTable:
        """A table of the schema."""

        def statement(text: LiteralString) -> bytes:
            return sql.SQL(text).format(table=sql.Identifier("hummock", name), alone=sql.Identifier(name)).as_bytes()

        return cls(
            name=name,
            is_shared=name in SHARED_TABLES,
            get=statement("SELECT value FROM {table} WHERE project = %s AND key = %s"),
            several=statement("SELECT key, value FROM {table} WHERE project = %s AND key = ANY(%s)"),
            up=statement("SELECT key, value FROM {table} WHERE project = %s AND key > %s ORDER BY key LIMIT %s"),
            up_from=statement("SELECT key, value FROM {table} WHERE project = %s AND key >= %s ORDER BY key LIMIT %s"),
            between=statement(
                "SELECT key, value FROM {table} WHERE project = %s AND key >= %s AND key < %s ORDER BY key LIMIT %s"
            ),
            down=statement("SELECT key, value FROM {table} WHERE project = %s AND key < %s ORDER BY key DESC LIMIT %s"),
            down_from_end=statement("SELECT key, value FROM {table} WHERE project = %s ORDER BY key DESC LIMIT %s"),
            count=statement("SELECT count(*) FROM {table}"),
            put=statement(
                "INSERT INTO {table} (project, key, value) SELECT * FROM unnest(%s::int[], %s::bytea[], %s::bytea[]) "
                "ON CONFLICT (project, key) DO UPDATE SET value = excluded.value"
            ),
            remove=statement(
                "DELETE FROM {table} USING unnest(%s::int[], %s::bytea[]) AS gone (project, key) "
                "WHERE {alone}.project = gone.project AND {alone}.key = gone.key"
            ),
        )

    def project_of(self, key: bytes) -> int:
        """The number of the project whose key it is; 0 where it is nobody's."""
        return 0 if self.is_shared else int.from_bytes(key[:_PROJECT_BYTES], "big")


class RowTransaction(ChecksItsPages):
    """What happens on one connection between its BEGIN and its end.

    What is put waits, and is what reads of its keys find; it is written before rows of its table are read in order, and
    at the end. Several statements that need no answer go to the server together.
    """

    def __init__(self, connection: PatientConnection, numbers: Sequence[int], *, writes: bool) -> None:
        """`numbers` are those of the projects that it has entered."""
        self.connection = connection
        self.numbers = list(numbers)
        self._writes = writes
        self._cursor: SqlCursor[Any] = connection.cursor(binary=True)
        self._known: dict[str, dict[bytes, bytes | None]] = {}
        self._waiting: dict[str, tuple[RowTable, dict[bytes, None]]] = {}
        self._told: list[tuple[str, str]] = []

    @overload
    def get(self, key: bytes, /, *, db: RowTable) -> bytes | None: ...

    @overload
    def get(self, key: bytes, default: bytes, /, *, db: RowTable) -> bytes: ...

    def get(self, key: bytes, default: bytes | None = None, /, *, db: RowTable) -> bytes | None:
        """The value of a key."""
        known = self._known.get(db.name)
        if known is not None and key in known:
            value = known[key]
        else:
            value = self._read(key, db)
            if self._writes:
                self.know(db, key, value)
        return default if value is None else value

    def put(self, key: bytes, value: bytes, /, *, db: RowTable) -> None:
        """Gives a key a value."""
        self.know(db, key, bytes(value))
        self._waits(db)[key] = None

    def delete(self, key: bytes, /, *, db: RowTable) -> None:
        """Removes a key, if it is there."""
        self.know(db, key, None)
        self._waits(db)[key] = None

    def pop(self, key: bytes, /, *, db: RowTable) -> bytes | None:
        """Removes a key; what it had."""
        value = self.get(key, db=db)
        if value is not None:
            self.delete(key, db=db)
        return value

    def replace(self, key: bytes, value: bytes, /, *, db: RowTable) -> bytes | None:
        """Gives a key a value; what it had before."""
        before = self.get(key, db=db)
        self.put(key, value, db=db)
        return before

    def cursor(self, db: RowTable, /) -> RowCursor:
        """A cursor that is nowhere yet."""
        return RowCursor(self, db)

    def part(self) -> RowTransaction:
        """A part of this one, which has written all that it had; what it writes may be undone alone."""
        part = RowTransaction(self.connection, self.numbers, writes=True)
        part._known = {name: dict(known) for name, known in self._known.items()}
        return part

    def take(self, part: RowTransaction) -> None:
        """What a part has written is this one's."""
        self._known, self.numbers = part._known, part.numbers

    def know(self, table: RowTable, key: bytes, value: bytes | None) -> None:
        """Notes what a key has, so that it is not read."""
        self._known.setdefault(table.name, {})[key] = value

    def prefetch(self, wanted: Mapping[RowTable, Sequence[bytes]]) -> None:
        """Reads keys of several tables in one go; all of them are of one project."""
        unknown = {
            table: [key for key in some if key not in self._known.get(table.name, ())] for table, some in wanted.items()
        }
        parts = [(table, some) for table, some in unknown.items() if some]
        if not parts:
            return
        statement = b" UNION ALL ".join(
            b"SELECT %d, key, value FROM (%s) AS part%d" % (at, table.several, at)
            for at, (table, _) in enumerate(parts)
        )
        arguments = [argument for table, some in parts for argument in (table.project_of(some[0]), some)]
        for table, some in parts:
            self._known.setdefault(table.name, {}).update(dict.fromkeys(some))
        for at, key, value in self._cursor.execute(statement, arguments).fetchall():
            self._known[parts[at][0].name][key] = value

    def several(self, table: RowTable, keys: Sequence[bytes]) -> list[Row]:
        """Those of these keys that are there, with their values; all of them are of one project."""
        self.prefetch({table: keys})
        known = self._known.get(table.name, {})
        found = ((key, known[key]) for key in keys)
        return [(key, value) for key, value in found if value is not None]

    def rows(self, statement: bytes, table: RowTable, arguments: Sequence[object], most: int) -> list[Row]:
        """At most so many rows of a table that a statement finds, with what waits for it written."""
        self._write(table)
        with self._patience(LOAD_PATIENCE_S if most > _MANY_ROWS else self.connection.patience_s):
            return self._cursor.execute(statement, (*arguments, most)).fetchall()

    def tell(self, channel: str, message: str) -> None:
        """Says something to all who listen, once the transaction has been committed."""
        self._told.append((channel, message))

    def commit(self) -> None:
        """Writes all that waits, and makes it durable, in one go."""
        with self.connection.pipeline():
            self.flush()
            self._cursor.execute(b"COMMIT")
        # A transaction in which a statement has failed is undone by it, and nothing else says so.
        if self._cursor.statusmessage != "COMMIT":
            raise psycopg.errors.InFailedSqlTransaction("a statement had failed, and the transaction was undone")

    def flush(self) -> None:
        """Writes all that waits, in one go."""
        waiting, self._waiting = self._waiting, {}
        told, self._told = self._told, []
        if not waiting and not told:
            return
        with self.connection.pipeline():
            for name in sorted(waiting):
                self._send(*waiting[name])
            for channel, message in told:
                self._cursor.execute(b"SELECT pg_notify(%s, %s)", (channel, message))

    def _write(self, table: RowTable) -> None:
        waiting = self._waiting.pop(table.name, None)
        if waiting is not None:
            self._send(*waiting)

    def _send(self, table: RowTable, keys: Iterable[bytes]) -> None:
        known = self._known[table.name]
        # In the order of keys: two transactions that write the same ones wait for each other in one order alone.
        ordered = sorted(keys)
        put = [(key, value) for key in ordered if (value := known[key]) is not None]
        gone = [key for key in ordered if known[key] is None]
        if put:
            projects = [table.project_of(key) for key, _ in put]
            self._cursor.execute(table.put, (projects, [key for key, _ in put], [value for _, value in put]))
        if gone:
            self._cursor.execute(table.remove, ([table.project_of(key) for key in gone], gone))

    @contextmanager
    def _patience(self, patience_s: float) -> Iterator[None]:
        before, self.connection.patience_s = self.connection.patience_s, patience_s
        try:
            yield
        finally:
            self.connection.patience_s = before

    def _waits(self, table: RowTable) -> dict[bytes, None]:
        return self._waiting.setdefault(table.name, (table, {}))[1]

    def _read(self, key: bytes, table: RowTable) -> bytes | None:
        row = self._cursor.execute(table.get, (table.project_of(key), key)).fetchone()
        return None if row is None else row[0]
