"""A transaction of PostgreSQL as an engine's `Transaction`: keys and values of tables, read and written by rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import LiteralString, cast, overload

import psycopg
from psycopg import sql

from hummock.store.postgresql.connections import LOAD_PATIENCE_S, PATIENCE_S, WRITE_PATIENCE_S, Lent, PatientConnection
from hummock.store.postgresql.exchange import Answer, Statement, bytea_array, int4, int4_array, int8
from hummock.store.postgresql.rows import RowCursor
from hummock.store.postgresql.schema import SHARED_TABLES
from hummock.store.tables.engine import ChecksItsPages

_PROJECT_BYTES = 4

_COMMIT = Statement(b"COMMIT")
_NOTIFY = b"SELECT pg_notify($1, $2)"
_FIRST_ROWS = 2  # Rows read ahead for an ordered read, which mostly only tests whether there are any.
_MANY_ROWS = 256  # Statements for more rows than this get the longer deadline for loads.
Row = tuple[bytes, bytes]  # A key and its value.


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table with the statements that read and write it."""

    name: str  # Name in the schema.
    is_shared: bool  # Whether its keys belong to no project.
    get: bytes
    up: bytes
    up_from: bytes
    between: bytes
    down: bytes
    down_from_end: bytes
    first_from: bytes
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
            get=statement("SELECT value FROM {table} WHERE project = $1 AND key = $2"),
            up=statement("SELECT key, value FROM {table} WHERE project = $1 AND key > $2 ORDER BY key LIMIT $3"),
            up_from=statement("SELECT key, value FROM {table} WHERE project = $1 AND key >= $2 ORDER BY key LIMIT $3"),
            between=statement(
                "SELECT key, value FROM {table} WHERE project = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4"
            ),
            down=statement("SELECT key, value FROM {table} WHERE project = $1 AND key < $2 ORDER BY key DESC LIMIT $3"),
            down_from_end=statement("SELECT key, value FROM {table} WHERE project = $1 ORDER BY key DESC LIMIT $2"),
            first_from=statement(
                "SELECT start, key, value FROM unnest($2::bytea[]) AS given (start) CROSS JOIN LATERAL "
                "(SELECT key, value FROM {table} WHERE project = $1 AND key >= start ORDER BY key LIMIT $3) AS first"
            ),
            count=statement("SELECT count(*) FROM {table}"),
            put=statement(
                "INSERT INTO {table} (project, key, value) SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[]) "
                "ON CONFLICT (project, key) DO UPDATE SET value = excluded.value"
            ),
            remove=statement(
                "DELETE FROM {table} USING unnest($1::int[], $2::bytea[]) AS gone (project, key) "
                "WHERE {alone}.project = gone.project AND {alone}.key = gone.key"
            ),
        )

    def project_of(self, key: bytes) -> int:
        """The number of the project in a key; 0 for a key of no project."""
        return 0 if self.is_shared else int.from_bytes(key[:_PROJECT_BYTES], "big")


KeysOfTables = Mapping[RowTable, Sequence[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """Statements that set the rows visible to a transaction."""

    begin: Sequence[Statement]  # Statements that begin a transaction at one moment.
    # Statements that give the same visibility to statements sent together with them, without a transaction.
    look: Sequence[Statement] = ()
    brings: Sequence[bytes] = ()  # Keys of the table of projects whose values `entered` caches.
    # Caches the answers to `begin` in the transaction.
    entered: Callable[[RowTransaction, Sequence[Answer]], None] = lambda txn, answers: None
    # Caches the answers to `look` in the transaction.
    looked: Callable[[RowTransaction, Sequence[Answer]], None] = lambda txn, answers: None


class RowTransaction(ChecksItsPages):
    """A transaction on one connection, for one thread.

    It begins with the first read that must be of its moment, in the same round trip. A `prefetch` before that runs
    outside of it: each is one statement with its own moment.

    Puts are pending and visible to reads of their keys; they are written before an ordered read of their table, and
    at the end. Several statements whose answers are not needed go to the server together.

    `numbers` are the known numbers of the projects that it has entered.
    """

    def __init__(
        self, lent: Lent, entrance: Entrance, numbers: Sequence[int], *, writes: bool = False, is_loose: bool = False
    ) -> None:
        """`writes` lets it write; with `is_loose` it never begins: its reads are of different moments."""
        self.numbers = list(numbers)
        self._lent = lent
        self._entrance = entrance
        self._writes = writes
        self._is_loose = is_loose
        self._has_begun = False
        self._known: dict[str, dict[bytes, bytes | None]] = {}
        self._pages: dict[str, dict[bytes, list[Row]]] = {}
        self._waiting: dict[str, tuple[RowTable, dict[bytes, None]]] = {}
        self._told: list[tuple[str, str]] = []

    @property
    def connection(self) -> PatientConnection:
        """Its connection; available once the transaction has begun."""
        return self._lent.connection

    def begin(self, statements: Sequence[Statement] = (), patience_s: float = PATIENCE_S) -> list[Answer]:
        """Begin if necessary, and run the statements in the same round trip with at least this deadline in seconds."""
        if self._is_loose:
            return self._look(statements)
        if self._has_begun:
            patience_s = max(patience_s, WRITE_PATIENCE_S) if self._writes else patience_s
            return self._lent.ask(statements, patience_s) if statements else []
        begin = self._entrance.begin
        answers = self._lent.ask_first([*begin, *statements], patience_s)
        self._has_begun = True
        self._entrance.entered(self, answers[: len(begin)])
        return answers[len(begin) :]

    @overload
    def get(self, key: bytes, /, *, db: RowTable) -> bytes | None: ...

    @overload
    def get(self, key: bytes, default: bytes, /, *, db: RowTable) -> bytes: ...

    def get(self, key: bytes, default: bytes | None = None, /, *, db: RowTable) -> bytes | None:
        known = self._known.get(db.name)
        if known is None or key not in known:
            known = self._read(key, db)
        value = known[key]
        return default if value is None else value

    def put(self, key: bytes, value: bytes, /, *, db: RowTable) -> None:
        self.know(db, key, bytes(value))
        self._waits(db)[key] = None

    def delete(self, key: bytes, /, *, db: RowTable) -> None:
        self.know(db, key, None)
        self._waits(db)[key] = None

    def pop(self, key: bytes, /, *, db: RowTable) -> bytes | None:
        value = self.get(key, db=db)
        if value is not None:
            self.delete(key, db=db)
        return value

    def replace(self, key: bytes, value: bytes, /, *, db: RowTable) -> bytes | None:
        before = self.get(key, db=db)
        self.put(key, value, db=db)
        return before

    def cursor(self, db: RowTable, /) -> RowCursor:
        return RowCursor(self, db)

    def part(self) -> RowTransaction:
        """A nested transaction, whose writes may be undone alone; this one must have flushed its own."""
        part = RowTransaction(self._lent, self._entrance, self.numbers, writes=True)
        part._has_begun = True
        part._known = {name: dict(known) for name, known in self._known.items()}
        return part

    def take(self, part: RowTransaction) -> None:
        """Take over the cached values of a committed part."""
        self._known, self.numbers = part._known, part.numbers
        self._pages.clear()

    def know(self, table: RowTable, key: bytes, value: bytes | None) -> None:
        """Cache the value of a key, so that it is not read."""
        self._known.setdefault(table.name, {})[key] = value

    def prefetch(self, wanted: KeysOfTables) -> None:
        """Read keys of several tables, all of one project, in one statement."""
        parts = self._unknown(wanted)
        if parts:
            (answer,) = self._look([_of_several(parts)])
            self._fetched(parts, answer)

    def foresee(self, projects: Iterable[tuple[KeysOfTables, KeysOfTables]]) -> None:
        """Begin, and fetch in the same round trip for each project some keys, and the first rows after others."""
        statements: list[Statement] = []
        taken: list[Callable[[Answer], None]] = []
        for wanted, starts in projects:
            parts = self._unknown(wanted)
            if parts:
                statements.append(_of_several(parts))
                taken.append(partial(self._fetched, parts))
            for table, some in starts.items():
                arguments = (int4(table.project_of(some[0])), bytea_array(some), int8(_FIRST_ROWS))
                statements.append(Statement(table.first_from, arguments))
                taken.append(partial(self._paged, table, some))
        for take, answer in zip(taken, self.begin(statements), strict=True):
            take(answer)

    def several(self, table: RowTable, keys: Sequence[bytes]) -> list[Row]:
        """The existing ones of these keys, all of one project, with their values."""
        self.prefetch({table: keys})
        known = self._known.get(table.name, {})
        found = ((key, known[key]) for key in keys)
        return [(key, value) for key, value in found if value is not None]

    def rows(self, statement: bytes, table: RowTable, arguments: Sequence[bytes], most: int) -> list[Row]:
        """At most `most` rows that a statement finds in a table; its pending writes are flushed first."""
        asked = [*self._written(table), Statement(statement, (*arguments, int8(most)))]
        answers = self.begin(asked, PATIENCE_S if most <= _MANY_ROWS else LOAD_PATIENCE_S)
        return cast("list[Row]", answers[-1].rows)

    def rows_ahead(self, table: RowTable, start: bytes) -> tuple[list[Row], bool] | None:
        """The first rows from a key on and whether these are all, or None if they were not read ahead."""
        page = self._pages.get(table.name, {}).get(start)
        if page is None:
            return None
        are_all = len(page) < _FIRST_ROWS
        _, waiting = self._waiting.get(table.name, (table, {}))
        put = [key for key in waiting if start <= key and (are_all or key <= page[-1][0])]
        known = self._known[table.name] if put else {}
        now = sorted((dict(page) | {key: known[key] for key in put}).items())
        rows = [(key, value) for key, value in now if value is not None]
        return (rows, are_all) if rows or are_all else None

    def tell(self, channel: str, message: str) -> None:
        """Notify listeners on a channel once the transaction is committed."""
        self._told.append((channel, message))

    def commit(self) -> None:
        """Write all pending changes and commit, in one round trip."""
        done = self.begin([*self._all_written(), _COMMIT])[-1].done
        # COMMIT after a failed statement rolls back; only its command tag shows that.
        if done != _COMMIT.text:
            raise psycopg.errors.InFailedSqlTransaction("a statement had failed, and the transaction was undone")

    def flush(self, *behind: Statement) -> None:
        """Write all that is pending, and run these statements after it, in one round trip."""
        self.begin([*self._all_written(), *behind])

    def _look(self, statements: Sequence[Statement]) -> list[Answer]:
        """Run statements in the transaction, or without one if it has not begun."""
        if self._has_begun or self._writes:
            return self.begin(statements)
        look = self._entrance.look
        answers = self._lent.ask_first([*look, *statements], PATIENCE_S)
        self._entrance.looked(self, answers[: len(look)])
        return answers[len(look) :]

    def _all_written(self) -> list[Statement]:
        waiting, self._waiting = self._waiting, {}
        for name in waiting:  # rows read ahead lack these writes from now on
            self._pages.pop(name, None)
        told, self._told = self._told, []
        written = [statement for name in sorted(waiting) for statement in self._writing(*waiting[name])]
        return written + [Statement(_NOTIFY, (channel.encode(), message.encode())) for channel, message in told]

    def _written(self, table: RowTable) -> list[Statement]:
        waiting = self._waiting.pop(table.name, None)
        if waiting is None:
            return []
        self._pages.pop(table.name, None)
        return self._writing(*waiting)

    def _writing(self, table: RowTable, keys: Iterable[bytes]) -> list[Statement]:
        known = self._known[table.name]
        # In the order of keys, so that two transactions that write the same ones cannot deadlock.
        ordered = sorted(keys)
        put = [(key, value) for key in ordered if (value := known[key]) is not None]
        gone = [key for key in ordered if known[key] is None]
        statements = []
        if put:
            put_keys, values = [key for key, _ in put], [value for _, value in put]
            projects = int4_array(map(table.project_of, put_keys))
            statements.append(Statement(table.put, (projects, bytea_array(put_keys), bytea_array(values))))
        if gone:
            statements.append(Statement(table.remove, (int4_array(map(table.project_of, gone)), bytea_array(gone))))
        return statements

    def _waits(self, table: RowTable) -> dict[bytes, None]:
        return self._waiting.setdefault(table.name, (table, {}))[1]

    def _read(self, key: bytes, table: RowTable) -> dict[bytes, bytes | None]:
        """Cached rows of a table after a key of it has been read."""
        if not self._has_begun and key in self._entrance.brings and table.name == "project":
            self.begin()
        known = self._known.setdefault(table.name, {})
        if key not in known:
            (answer,) = self.begin([Statement(table.get, (int4(table.project_of(key)), key))])
            known[key] = answer.rows[0][0] if answer.rows else None
        return known

    def _unknown(self, wanted: KeysOfTables) -> list[tuple[RowTable, list[bytes]]]:
        unknown = (
            (table, [key for key in some if key not in self._known.get(table.name, ())])
            for table, some in wanted.items()
        )
        return [(table, some) for table, some in unknown if some]

    def _fetched(self, parts: Sequence[tuple[RowTable, Sequence[bytes]]], answer: Answer) -> None:
        for table, some in parts:
            self._known.setdefault(table.name, {}).update(dict.fromkeys(some))
        for at, key, value in cast("list[tuple[bytes, bytes, bytes]]", answer.rows):
            self._known[parts[at[-1]][0].name][key] = value

    def _paged(self, table: RowTable, starts: Sequence[bytes], answer: Answer) -> None:
        pages = self._pages.setdefault(table.name, {})
        pages.update((start, []) for start in starts)
        for start, key, value in cast("list[tuple[bytes, bytes, bytes]]", answer.rows):
            pages[start].append((key, value))


def _of_several(parts: Sequence[tuple[RowTable, Sequence[bytes]]]) -> Statement:
    """The statement that reads keys of several tables; each row begins with its table's position among these."""
    arguments = [argument for table, some in parts for argument in (int4(table.project_of(some[0])), bytea_array(some))]
    return Statement(_several_statement(tuple(table.name for table, _ in parts)), arguments)


@lru_cache
def _several_statement(names: tuple[str, ...]) -> bytes:
    one = sql.SQL("SELECT {at}, key, value FROM {table} WHERE project = {project} AND key = ANY({keys})")
    parts = [
        one.format(
            at=sql.Literal(at),
            table=sql.Identifier("hummock", name),
            project=sql.SQL(f"${2 * at + 1}"),
            keys=sql.SQL(f"${2 * at + 2}"),
        )
        for at, name in enumerate(names)
    ]
    return sql.SQL(" UNION ALL ").join(parts).as_bytes()
