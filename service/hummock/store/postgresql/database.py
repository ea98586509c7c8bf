"""PostgreSQL as an engine of tables: any number of services may have one database open, and write to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import sql

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import HummockError
from hummock.ports.writes import Claim, ClaimLost
from hummock.store.errors import DatabaseIsCopiedInto, DatabaseUnusable, ProjectGone
from hummock.store.postgresql import schema
from hummock.store.postgresql.connections import (
    PATIENCE_S,
    Connections,
    DatabaseUnreachable,
    PatientConnection,
    is_lost,
)
from hummock.store.postgresql.exchange import Answer, Statement, bytea_array, int4
from hummock.store.postgresql.schema import SchemaOutgrown
from hummock.store.postgresql.transaction import Entrance, KeysOfTables, RowTable, RowTransaction
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import TABLE_NAMES, Foreseen, Scope, Tables, Transaction
from hummock.store.tables.integrity import Damage
from hummock.store.tables.lookups import DIRECTORY_KEY, first_record, known_record, number_of_space

CHANNEL = "hummock"  # Channel on which every write is notified: the project's seq after it, and its name.

_BEGIN_READING = Statement(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_BEGIN_WRITING = Statement(b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
_SAVEPOINT = Statement(b"SAVEPOINT part")
_UNDO_PART = Statement(b"ROLLBACK TO SAVEPOINT part")
_KEEP_PART = Statement(b"RELEASE SAVEPOINT part")
_ENTER = b"SELECT number, record FROM hummock.enter($1)"
_SET_SCOPE = b"SELECT set_config('hummock.scope', $1, true)"
_ENTER_NUMBER = _SET_SCOPE + b", (SELECT value FROM hummock.project WHERE project = 0 AND key = $2)"
_ENTER_TO_WRITE = b"SELECT name_key, number, record FROM hummock.enter_to_write($1)"
_LOCK = b"SELECT pg_advisory_xact_lock($1, $2)"
_REQUIRE_CLAIM = b"""
SELECT FROM hummock.claim JOIN hummock.service ON service.id = claim.holder AND service.until > clock_timestamp()
WHERE claim.work = %s AND claim.project = %s AND claim.fence = %s AND claim.holder = %s FOR SHARE OF claim
"""
_MOST_NUMBERS = 65_536  # Upper bound on cached project numbers by name: some 8 MB. A full cache is emptied.
_OWN_NUMBER = 2  # Class of locks on projects without a name.
_COPYING = 3  # Key of the lock that a process holds while it copies projects into the database.


class Database:
    """An `Engine`. Thread-safe: each thread has its own connection while it reads or writes."""

    failures: tuple[type[Exception], ...] = (psycopg.Error,)
    fatal: tuple[type[Exception], ...] = ()

    def __init__(self, dsn: str, space: EmbeddingSpace, connections: int) -> None:
        """Open the database with so many connections; creates missing tables. Raises: StartError, Unavailable."""
        self.space = space
        self.damage = Damage()
        self.other_spaces: tuple[int, ...] = ()
        self._by_name = {name: RowTable.named(name) for name in TABLE_NAMES}
        self.tables = Tables(**self._by_name)
        self._connections = pool = Connections(dsn, connections)
        self.place = pool.place
        self.look, self.unreachable, self.close = pool.look, pool.unreachable, pool.close
        self._table_bytes: dict[str, int] = {}
        self.outgrown: SchemaOutgrown | None = None
        self._numbers: dict[bytes, int] = {}
        try:
            with self._connections.alone() as connection:
                schema.bring_up(connection, self.place)
                schema.become_service(connection, self.place)
            self._connections.open()
            self.space_number = self._record_space()
            self.measure()
        except BaseException:
            self._connections.close()
            raise

    @property
    def away(self) -> DatabaseUnreachable | None:
        """Why the database cannot be reached; None while it answers, as far as is known."""
        away = self._connections.away
        return None if away is None else away.again()

    @contextmanager
    def reading(self, scope: Scope = None) -> Iterator[RowTransaction]:
        """A read transaction at one moment. Raises: DatabaseUnreachable, SchemaOutgrown."""
        self._require_known_form()
        with self._said(), self._connections.lent() as lent:
            numbers = [scope] if isinstance(scope, int) else []
            yield RowTransaction(lent, self._entrance(scope), numbers)

    answering = reading

    @contextmanager
    def looking(self, scope: Scope = None) -> Iterator[RowTransaction]:
        """Reads that may be of different moments: each is one round trip, without a transaction; see `Engine`."""
        self._require_known_form()
        with self._said(), self._connections.lent() as lent:
            if not isinstance(scope, str):
                numbers = [] if scope is None else [scope]
                yield RowTransaction(lent, _look_at(numbers), numbers, is_loose=True)
                return
            name_key = keys.project_name_key(scope)
            number = self._numbers.get(name_key)
            txn = RowTransaction(lent, self._entrance(scope, number), [], is_loose=True)
            if number is not None:
                # Each read checks whether the cached number is still valid.
                txn.know(self._by_name["project"], name_key, keys.pack_project(number))
            yield txn

    @contextmanager
    def writing(
        self,
        parent: Transaction | None = None,
        projects: Sequence[str] = (),
        number: int | None = None,
        foreseen: Mapping[str, Foreseen] | None = None,
    ) -> Iterator[RowTransaction]:
        """A write transaction for these projects, which waits for their locks among all services."""
        if parent is not None:
            with self._part(parent) as part:
                yield part
            return
        self._require_known_form()
        with self._connections.lent() as lent:
            txn = RowTransaction(lent, self._entrance_to_write(projects, number), [], writes=True)
            txn.foresee(self._of_each(foreseen or {}))
            yield txn
            txn.commit()

    def next_number(self, txn: Transaction) -> int:
        own = _own(txn)
        (answer,) = own.begin([Statement(b"SELECT hummock.new_project()")])
        made = int.from_bytes(answer.rows[0][0] or b"", "big")
        own.numbers.append(made)
        return made

    def prefetch(self, txn: Transaction, wanted: Mapping[str, Sequence[bytes]]) -> None:
        """Read keys ahead, in one statement."""
        _own(txn).prefetch(self._by_table(wanted))

    def pending_count(self, txn: Transaction) -> int:
        """Number of memories without vectors in all projects, from the projects' records."""
        records = keys.entries(txn, self._by_name["project"], keys.PROJECT_NUMBERS)
        return sum(record_codec.decode_project(value).pending for _, value in records)

    def count(self, txn: Transaction, table: RowTable) -> int:
        (answer,) = _own(txn).begin([Statement(table.count)])
        return int.from_bytes(answer.rows[0][0] or b"", "big")

    def table_bytes(self, txn: Transaction, table: RowTable) -> int:
        """Bytes of the table's rows and indexes on disk, as of the last `measure`."""
        return self._table_bytes.get(table.name, 0)

    def used_bytes(self, txn: Transaction) -> int:
        """Bytes of all tables, as of the last `measure`."""
        return sum(self._table_bytes.values())

    def measure(self) -> None:
        """Measure the size of all tables. Raises: DatabaseUnreachable."""
        statement = (
            b"SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n "
            b"ON n.oid = c.relnamespace WHERE n.nspname = 'hummock' AND c.relkind = 'r'"
        )
        with self.answering() as txn:
            (answer,) = txn.begin([Statement(statement)])
        self._table_bytes = {(name or b"").decode(): int.from_bytes(size or b"", "big") for name, size in answer.rows}

    def seq(self, number: int) -> int | None:
        """Sequence number of a project's last write by any service; None if it was removed."""
        self._require_known_form()
        statement = Statement(self._by_name["project"].get, (int4(0), keys.project_number_key(number)))
        with self._said(), self._connections.lent() as lent:
            (answer,) = lent.ask_first([statement], PATIENCE_S)
        value = answer.rows[0][0] if answer.rows else None
        return None if value is None else record_codec.decode_project(value).seq

    def last_commit(self) -> int:
        with self._said(), self._connections.lent() as lent:
            (answer,) = lent.ask_first([Statement(b"SELECT hashtext(pg_current_snapshot()::text)")], PATIENCE_S)
        return int.from_bytes(answer.rows[0][0] or b"", "big")

    def between(
        self, txn: Transaction, table: RowTable, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` rows from the key `first` on and before `end`, in order, in one round trip."""
        return _own(txn).rows(table.between, table, (int4(table.project_of(first)), first, end), limit)

    def tell(self, txn: Transaction, project: str, seq: int) -> None:
        _own(txn).tell(CHANNEL, f"{seq} {project}")

    def require_claim(self, txn: Transaction, claim: Claim) -> None:
        """Lock the claim against other services until the transaction ends. Raises: ClaimLost."""
        named = (claim.work.value, keys.project_name_key(claim.project), claim.fence, claim.holder)
        cursor = _own(txn).connection.execute(_REQUIRE_CLAIM, named)
        if cursor.fetchone() is None:
            raise ClaimLost(claim)

    def ask(self, statement: bytes, arguments: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Rows of one statement, run in its own transaction. Raises: DatabaseUnreachable."""
        with self._said(), self._connections.one() as connection:
            cursor = connection.execute(statement, arguments)
            return cursor.fetchall() if cursor.description else []

    def now_s(self) -> float:
        """Unix seconds by the database's own clock. Raises: DatabaseUnreachable."""
        return float(self.ask(b"SELECT extract(epoch FROM clock_timestamp())::float8", ())[0][0])

    @contextmanager
    def by_itself(self) -> Iterator[PatientConnection]:
        """A connection outside the pool, which never waits for others. Raises: DatabaseUnreachable."""
        with self._connections.alone() as connection:
            schema.become_service(connection, self.place)
            connection.patience_s = PATIENCE_S
            yield connection

    def require_form(self, connection: PatientConnection) -> None:
        """Check that this version knows the schema, or let all later calls fail. Raises: SchemaOutgrown."""
        needed = schema.needed_form_of(connection)
        if needed > len(schema.MIGRATIONS):
            self.outgrown = SchemaOutgrown(self.place, needed)
            raise self.outgrown

    @contextmanager
    def listening(self) -> Iterator[PatientConnection]:
        """A separate connection that receives notifications of all writes. Raises: DatabaseUnreachable."""
        with self._connections.alone() as connection:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
            connection.patience_s = PATIENCE_S
            yield connection

    @contextmanager
    def copied_into(self) -> Iterator[None]:
        """Hold the lock on copying projects into the database. Raises: DatabaseIsCopiedInto: another holds it."""
        with self._connections.alone() as connection:
            row = connection.execute(b"SELECT pg_try_advisory_lock(%s, 0)", (_COPYING,)).fetchone()
            if row is None or not row[0]:
                raise DatabaseIsCopiedInto(self.place)
            yield

    def unusable(self, error: Exception) -> HummockError:
        if is_lost(error):
            return self._connections.unreachable(error)
        return DatabaseUnusable(self.place, str(error).strip())

    def _require_known_form(self) -> None:
        if self.outgrown is not None:
            raise self.outgrown

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Report a lost server as unreachable; a refused statement is a defect of ours and stays as it is."""
        try:
            yield
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            raise self._connections.unreachable(error) from error

    def _entrance(self, scope: Scope, number: int | None = None) -> Entrance:
        """The statements that let a read transaction see a project, or none; `number` is the one it must have."""
        if scope is None:
            return Entrance(begin=(_BEGIN_READING,))
        if isinstance(scope, int):
            key, prefix = keys.project_number_key(scope), keys.project_prefix(scope)
            settings = self._by_name["settings"]
            enter = Statement(_ENTER_NUMBER, (str(scope).encode(), key))

            def knows(txn: RowTransaction, answers: Sequence[Answer]) -> None:
                _, entered, set_by_it = answers
                txn.know(self._by_name["project"], key, entered.rows[0][1])
                txn.know(settings, prefix, set_by_it.rows[0][0] if set_by_it.rows else None)

            # Views need the settings as well.
            begin = (_BEGIN_READING, enter, Statement(settings.get, (int4(scope), prefix)))
            return Entrance(begin=begin, look=_look_at([scope]).look, brings=(key,), entered=knows)
        name_key = keys.project_name_key(scope)
        enter = Statement(_ENTER, (name_key,))

        def enters(txn: RowTransaction, answers: Sequence[Answer]) -> None:
            self._entered(txn, name_key, *answers[-1].rows[0])
            if number is not None and txn.numbers != [number]:
                raise ProjectGone

        return Entrance(begin=(_BEGIN_READING, enter), look=(enter,), brings=(name_key,), entered=enters, looked=enters)

    def _entrance_to_write(self, projects: Sequence[str], number: int | None) -> Entrance:
        """The statements by which a write transaction locks these projects, and may see and write them."""
        if number is not None:
            lock = Statement(_LOCK, (int4(_OWN_NUMBER), int4(number)))
            scope = Statement(_SET_SCOPE, (str(number).encode(),))
            return Entrance(begin=(_BEGIN_WRITING, lock, scope), entered=lambda txn, _: txn.numbers.append(number))
        if not projects:
            return Entrance(begin=(_BEGIN_WRITING,))
        # Sorted, so that two services cannot deadlock.
        name_keys = sorted(map(keys.project_name_key, projects))

        def enters_all(txn: RowTransaction, answers: Sequence[Answer]) -> None:
            for name_key, *found in answers[-1].rows:
                self._entered(txn, name_key or b"", *found)

        return Entrance(
            begin=(_BEGIN_WRITING, Statement(_ENTER_TO_WRITE, (bytea_array(name_keys),))), entered=enters_all
        )

    def _entered(self, txn: RowTransaction, name_key: bytes, number: bytes | None, record: bytes | None) -> None:
        table = self._by_name["project"]
        txn.know(table, name_key, number)
        if number is None:
            self._numbers.pop(name_key, None)
            return
        txn.numbers = sorted({*txn.numbers, keys.unpack_project(number)})
        txn.know(table, keys.project_number_key(keys.unpack_project(number)), record)
        if len(self._numbers) >= _MOST_NUMBERS:
            self._numbers.clear()
        self._numbers[name_key] = keys.unpack_project(number)

    def _of_each(self, foreseen: Mapping[str, Foreseen]) -> Iterator[tuple[KeysOfTables, KeysOfTables]]:
        """The foreseen reads of projects with known numbers; a number now used by another project finds nothing."""
        for project, of_number in foreseen.items():
            number = self._numbers.get(keys.project_name_key(project))
            if number is not None:
                wanted, starts = of_number(number)
                yield self._by_table(wanted), self._by_table(starts)

    def _by_table(self, by_name: Mapping[str, Sequence[bytes]]) -> KeysOfTables:
        return {self._by_name[name]: some for name, some in by_name.items()}

    @contextmanager
    def _part(self, parent: Transaction) -> Iterator[RowTransaction]:
        own = _own(parent)
        own.flush(_SAVEPOINT)
        part = own.part()
        try:
            yield part
            part.flush()
        except BaseException:
            own.flush(_UNDO_PART)
            raise
        own.flush(_KEEP_PART)
        own.take(part)

    def _record_space(self) -> int:
        with self.writing(number=0) as txn:
            value = txn.get(DIRECTORY_KEY, db=self._by_name["meta"])
            if value is None:
                value = record_codec.encode(first_record(self.space))
                txn.put(DIRECTORY_KEY, value, db=self._by_name["meta"])
        try:
            return number_of_space(known_record(value, self.place), self.space, self.place)
        except msgspec.MsgspecError as error:
            raise DatabaseUnusable(self.place, f"its record is damaged ({error}); restore it from a backup") from error


def _look_at(numbers: Sequence[int]) -> Entrance:
    """The statements that let a read without a transaction see a project, or none."""
    return Entrance(begin=(), look=[Statement(_SET_SCOPE, (str(number).encode(),)) for number in numbers])


def recorded_directory(connection: PatientConnection) -> record_codec.DirectoryRecord | None:
    """The record of a database; None if nothing was ever stored in it. Writes nothing."""
    if not schema.form_of(connection):
        return None
    statement = "SELECT value FROM hummock.meta WHERE project = 0 AND key = %s"
    row = connection.execute(statement, (DIRECTORY_KEY,), binary=True).fetchone()
    return None if row is None else record_codec.decode_directory(row[0])


def _own(txn: Transaction) -> RowTransaction:
    if not isinstance(txn, RowTransaction):
        raise TypeError(f"{type(txn).__name__} is no transaction of PostgreSQL")
    return txn
