"""PostgreSQL as an engine of tables: any number of services may have one database open, and write to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, LiteralString

import msgspec
import psycopg
from psycopg import sql

from hummock.core.claims import Claim, ClaimLost
from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import HummockError, StartError, Unavailable
from hummock.store.errors import AnalyzerTooNew, SchemaTooNew, SpaceDiffers
from hummock.store.postgresql import schema
from hummock.store.postgresql.connections import (
    PATIENCE_S,
    WRITE_PATIENCE_S,
    Connections,
    DatabaseUnreachable,
    NoAnswer,
    PatientConnection,
    is_lost,
)
from hummock.store.postgresql.schema import SchemaOutgrown
from hummock.store.postgresql.transaction import RowTable, RowTransaction
from hummock.store.tables import keys, record_codec
from hummock.store.tables.damage import Damage
from hummock.store.tables.engine import TABLE_NAMES, Scope, Tables, Transaction
from hummock.store.tables.projects import DIRECTORY_KEY, active_space
from hummock.text.analyzer import ANALYZER_VERSION

CHANNEL = "hummock"
"""On which every write is told: the project's seq after it, and its name."""

_BEGIN_READING: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITING: LiteralString = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_ENTER: LiteralString = "SELECT number, record FROM hummock.enter({})"
_ENTER_NUMBER: LiteralString = (
    "SELECT set_config('hummock.scope', {}, true), "
    "(SELECT value FROM hummock.project WHERE project = 0 AND key = {}) AS record"
)
_ENTER_TO_WRITE: LiteralString = "SELECT name_key, number, record FROM hummock.enter_to_write({})"
_REQUIRE_CLAIM = b"""
SELECT FROM hummock.claim JOIN hummock.service ON service.id = claim.holder AND service.until > clock_timestamp()
WHERE claim.work = %s AND claim.project = %s AND claim.fence = %s AND claim.holder = %s FOR SHARE OF claim
"""
_TRIES = 5
_OWN_NUMBER = 2
"""The class of locks on projects that have no name any more."""
_COPYING = 3
"""That of whoever copies projects into the database."""


class DatabaseUnusable(StartError):
    """The database cannot be opened."""

    reason = "STORE_UNUSABLE"

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} cannot be used: {why}")
        self.place = place


class DatabaseIsCopiedInto(StartError):
    """Somebody copies projects into the database."""

    reason = "STORE_IS_COPIED_INTO"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place}: another `hummock copy` writes into it; wait for its end, or stop it")
        self.place = place


class Database:
    """An `Engine`. Safe to use from several threads, each of which has a connection while it reads or writes."""

    failures: tuple[type[Exception], ...] = (psycopg.Error,)
    fatal: tuple[type[Exception], ...] = ()

    def __init__(self, dsn: str, space: EmbeddingSpace, connections: int) -> None:
        """Opens the database, and makes the tables where there are none.

        Args:
            dsn: Its connection string.
            space: Of all vectors.
            connections: Most at once.

        Raises: StartError, Unavailable.
        """
        self.space = space
        self.damage = Damage()
        self._by_name = {name: RowTable.named(name) for name in TABLE_NAMES}
        self.tables = Tables(**self._by_name)
        self._connections = Connections(dsn, connections)
        self._table_bytes: dict[str, int] = {}
        self.outgrown: SchemaOutgrown | None = None
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
    def place(self) -> str:
        """The database, without what is secret of its connection string."""
        return self._connections.place

    @property
    def away(self) -> DatabaseUnreachable | None:
        """Why nothing can be asked of the database; None while it answers, as far as is known."""
        away = self._connections.away
        return None if away is None else away.again()

    @contextmanager
    def reading(self, scope: Scope = None) -> Iterator[RowTransaction]:
        """A transaction that reads at one moment. Raises: DatabaseUnreachable, SchemaOutgrown."""
        self._require_known_form()
        with self._said(), self._begun(scope) as txn:
            yield txn

    answering = reading

    @contextmanager
    def writing(
        self, parent: Transaction | None = None, projects: Sequence[str] = (), number: int | None = None
    ) -> Iterator[RowTransaction]:
        """A transaction that writes to these projects, for which it waits its turn among all services."""
        if parent is not None:
            with self._part(parent) as part:
                yield part
            return
        self._require_known_form()
        with ExitStack() as stack:
            txn = self._begin(
                stack, WRITE_PATIENCE_S, lambda own: self._begin_to_write(own, projects, number), writes=True
            )
            yield txn
            txn.commit()

    def next_number(self, txn: Transaction) -> int:
        """A number for a new project, which none has or had."""
        own = _own(txn)
        row = own.connection.execute(b"SELECT hummock.new_project()").fetchone()
        if row is None:
            raise Unavailable("PostgreSQL gave no number")
        own.numbers.append(int(row[0]))
        return int(row[0])

    def prefetch(self, txn: Transaction, wanted: Mapping[str, Sequence[bytes]]) -> None:
        """Reads in one go what will be asked for."""
        _own(txn).prefetch({self._by_name[name]: some for name, some in wanted.items()})

    def pending_count(self, txn: Transaction) -> int:
        """Memories of all projects whose vectors are still to be made, as the projects' records have it."""
        records = keys.entries(txn, self._by_name["project"], keys.PROJECT_NUMBERS)
        return sum(record_codec.decode_project(value).pending for _, value in records)

    def count(self, txn: Transaction, table: RowTable) -> int:
        """The rows of a table that the transaction may see."""
        row = _own(txn).connection.execute(table.count).fetchone()
        return 0 if row is None else int(row[0])

    def table_bytes(self, txn: Transaction, table: RowTable) -> int:
        """Of its rows and indexes, on the disk, as of the last `measure`."""
        return self._table_bytes.get(table.name, 0)

    def used_bytes(self, txn: Transaction) -> int:
        """What all tables take, as of the last `measure`."""
        return sum(self._table_bytes.values())

    def measure(self) -> None:
        """Looks what all tables take. Raises: DatabaseUnreachable."""
        statement = (
            b"SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n "
            b"ON n.oid = c.relnamespace WHERE n.nspname = 'hummock' AND c.relkind = 'r'"
        )
        with self.answering() as txn:
            self._table_bytes = dict(txn.connection.execute(statement).fetchall())

    def seq(self, number: int) -> int | None:
        """The writes that a project has accepted, by whatever service; None where it is gone."""
        with self._said():
            value = self._one_value(keys.project_number_key(number), "project")
        return None if value is None else record_codec.decode_project(value).seq

    def last_commit(self) -> int:
        """A number that moves with every transaction that writes, of whatever service. Raises: DatabaseUnreachable."""
        with self._said(), self._connections.one() as connection:
            row = connection.execute(b"SELECT hashtext(pg_current_snapshot()::text)").fetchone()
        return 0 if row is None else int(row[0])

    def between(
        self, txn: Transaction, table: RowTable, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` rows from one key on and before another, in order, in one go."""
        return _own(txn).rows(table.between, table, (table.project_of(first), first, end), limit)

    def tell(self, txn: Transaction, project: str, seq: int) -> None:
        """Lets all services know of a write, once it is durable."""
        _own(txn).tell(CHANNEL, f"{seq} {project}")

    def require_claim(self, txn: Transaction, claim: Claim) -> None:
        """Nobody else takes the claim until the transaction ends. Raises: ClaimLost."""
        named = (claim.work.value, keys.project_name_key(claim.project), claim.fence, claim.holder)
        cursor = _own(txn).connection.execute(_REQUIRE_CLAIM, named)
        if cursor.fetchone() is None:
            raise ClaimLost(claim)

    def ask(self, statement: bytes, arguments: Sequence[object] | Mapping[str, object]) -> list[tuple[Any, ...]]:
        """What one statement gives, which is a transaction of its own. Raises: DatabaseUnreachable."""
        with self._said(), self._connections.one() as connection:
            cursor = connection.execute(statement, arguments)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def by_itself(self) -> Iterator[PatientConnection]:
        """A connection of its own, so that it waits for nobody. Raises: DatabaseUnreachable."""
        with self._connections.alone() as connection:
            schema.become_service(connection, self.place)
            connection.patience_s = PATIENCE_S
            yield connection

    def require_form(self, connection: PatientConnection) -> None:
        """Looks whether this version still knows the tables; from then on nothing is read or written where it does not.

        Raises: SchemaOutgrown.
        """
        needed = schema.needed_form_of(connection)
        if needed > len(schema.MIGRATIONS):
            self.outgrown = SchemaOutgrown(self.place, needed)
            raise self.outgrown

    @contextmanager
    def listening(self) -> Iterator[PatientConnection]:
        """A connection of its own that hears of all writes from now on. Raises: DatabaseUnreachable."""
        with self._connections.alone() as connection:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
            connection.patience_s = PATIENCE_S
            yield connection

    def look(self) -> None:
        """Notes that the server has answered somebody, and looks whether it answers callers again where it did not."""
        self._connections.look()

    @contextmanager
    def copied_into(self) -> Iterator[None]:
        """While it is entered nobody else copies projects into the database. Raises: DatabaseIsCopiedInto."""
        with self._connections.alone() as connection:
            row = connection.execute(b"SELECT pg_try_advisory_lock(%s, 0)", (_COPYING,)).fetchone()
            if row is None or not row[0]:
                raise DatabaseIsCopiedInto(self.place)
            yield

    def unusable(self, error: Exception) -> HummockError:
        """What is said at the start of a failure."""
        if is_lost(error):
            return self._connections.unreachable(error)
        return DatabaseUnusable(self.place, str(error).strip())

    def unreachable(self, error: Exception) -> HummockError:
        """What callers are told of a failure."""
        return self._connections.unreachable(error)

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()

    def _require_known_form(self) -> None:
        if self.outgrown is not None:
            raise self.outgrown

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Says of a server that is gone that it is; what a server refuses is a defect of ours, and stays what it is."""
        try:
            yield
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            raise self._connections.unreachable(error) from error

    @contextmanager
    def _begun(self, scope: Scope) -> Iterator[RowTransaction]:
        with ExitStack() as stack:
            yield self._begin(stack, PATIENCE_S, lambda own: self._begin_to_read(own, scope), writes=False)

    def _begin(
        self, stack: ExitStack, patience_s: float, begin: Callable[[RowTransaction], None], *, writes: bool
    ) -> RowTransaction:
        """A transaction that has begun, and ends with the stack: without its changes, unless it was committed.

        Where a server went away each of its connections is found to be broken once, so that there are several tries.
        """
        for tries_left in reversed(range(_TRIES)):
            with ExitStack() as tried:
                connection = tried.enter_context(self._connections.one())
                tried.callback(_give_up, connection)
                txn = RowTransaction(connection, [], writes=writes)
                try:
                    begin(txn)
                except psycopg.OperationalError as error:
                    if not tries_left or isinstance(error, NoAnswer) or not connection.broken:
                        raise
                    continue
                connection.patience_s = patience_s
                stack.push(tried.pop_all())
                return txn
        raise AssertionError("the last try returns or raises")

    def _begin_to_read(self, txn: RowTransaction, scope: Scope) -> None:
        """Begins, and lets a transaction see one project, in one go."""
        if scope is None:
            txn.connection.execute(_BEGIN_READING)
        elif isinstance(scope, int):
            key = keys.project_number_key(scope)
            ((_, record),) = _begun(txn, _BEGIN_READING, _ENTER_NUMBER, str(scope), key)
            txn.numbers.append(scope)
            txn.know(self._by_name["project"], key, record)
        else:
            name_key = keys.project_name_key(scope)
            ((number, record),) = _begun(txn, _BEGIN_READING, _ENTER, name_key)
            self._entered(txn, name_key, number, record)

    def _begin_to_write(self, txn: RowTransaction, projects: Sequence[str], number: int | None) -> None:
        """Begins, waits until nobody else writes to these projects, and lets the transaction see and write them."""
        if number is not None:
            txn.connection.execute(_BEGIN_WRITING)
            txn.connection.execute(b"SELECT pg_advisory_xact_lock(%s, %s)", (_OWN_NUMBER, number))
            txn.connection.execute(b"SELECT set_config('hummock.scope', %s, true)", (str(number),))
            txn.numbers.append(number)
        elif projects:
            # In one order, so that no two services wait for each other.
            name_keys = sorted(map(keys.project_name_key, projects))
            for name_key, found, record in _begun(txn, _BEGIN_WRITING, _ENTER_TO_WRITE, name_keys):
                self._entered(txn, name_key, found, record)
        else:
            txn.connection.execute(_BEGIN_WRITING)

    def _entered(self, txn: RowTransaction, name_key: bytes, number: bytes | None, record: bytes | None) -> None:
        table = self._by_name["project"]
        txn.know(table, name_key, number)
        if number is not None:
            txn.numbers.append(keys.unpack_project(number))
            txn.know(table, keys.project_number_key(keys.unpack_project(number)), record)

    @contextmanager
    def _part(self, parent: Transaction) -> Iterator[RowTransaction]:
        """A part of a transaction that is undone alone."""
        own = _own(parent)
        own.flush()
        part = own.part()
        own.connection.execute(b"SAVEPOINT part")
        try:
            yield part
            part.flush()
        except BaseException:
            own.connection.execute(b"ROLLBACK TO SAVEPOINT part")
            raise
        own.connection.execute(b"RELEASE SAVEPOINT part")
        own.take(part)

    def _record_space(self) -> int:
        """The number of the active space; a new database records the given one."""
        with self.writing(number=0) as txn:
            value = txn.get(DIRECTORY_KEY, db=self._by_name["meta"])
            if value is not None:
                return self._recorded_space(value)
            space = record_codec.SpaceRecord(1, self.space.id, self.space.model, self.space.dim, self.space.token_dim)
            record = record_codec.DirectoryRecord(
                schema=record_codec.SCHEMA, active_space=space.number, spaces=(space,), analyzer=ANALYZER_VERSION
            )
            txn.put(DIRECTORY_KEY, record_codec.encode(record), db=self._by_name["meta"])
            return space.number

    def _recorded_space(self, value: bytes) -> int:
        schema_of_records = record_codec.decode_schema(value).schema
        if schema_of_records > record_codec.SCHEMA:
            raise SchemaTooNew(self.place, schema_of_records, record_codec.SCHEMA)
        try:
            recorded = record_codec.decode_directory(value)
        except msgspec.MsgspecError as error:
            raise DatabaseUnusable(self.place, f"its record is damaged ({error}); restore it from a backup") from error
        if recorded.analyzer > ANALYZER_VERSION:
            raise AnalyzerTooNew(self.place, recorded.analyzer, ANALYZER_VERSION)
        active = active_space(recorded)
        if active.id != self.space.id:
            raise SpaceDiffers(self.place, (active.model, active.id), (self.space.model, self.space.id))
        return active.number

    def _one_value(self, key: bytes, table: str) -> bytes | None:
        with self._connections.one() as connection:
            row = connection.execute(self._by_name[table].get, (0, key), binary=True).fetchone()
        return None if row is None else row[0]


def recorded_model(connection: PatientConnection) -> str | None:
    """Name of the model whose vectors a database holds; None when it holds none yet. Writes nothing."""
    recorded = recorded_directory(connection)
    return None if recorded is None else active_space(recorded).model


def recorded_directory(connection: PatientConnection) -> record_codec.DirectoryRecord | None:
    """What a database says of itself; None where nothing was ever stored in it. Writes nothing."""
    if not schema.form_of(connection):
        return None
    row = connection.execute(RowTable.named("meta").get, (0, DIRECTORY_KEY), binary=True).fetchone()
    return None if row is None else record_codec.decode_directory(row[0])


def _begun(
    txn: RowTransaction, begin: LiteralString, enter: LiteralString, *arguments: object
) -> list[tuple[Any, ...]]:
    """The rows of a statement that goes to the server together with the one that begins the transaction."""
    statement = sql.SQL(enter).format(*map(sql.Literal, arguments))
    cursor = txn.connection.execute(sql.SQL("; ").join([sql.SQL(begin), statement]))
    cursor.nextset()
    return cursor.fetchall()


def _own(txn: Transaction) -> RowTransaction:
    """A transaction as this engine knows it."""
    if not isinstance(txn, RowTransaction):
        raise TypeError(f"{type(txn).__name__} is no transaction of PostgreSQL")
    return txn


def _give_up(connection: PatientConnection) -> None:
    """Ends a transaction that has not ended; a connection that is broken is thrown away by its pool."""
    connection.patience_s = PatientConnection.patience_s
    if connection.closed or connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        return
    try:
        connection.execute(b"ROLLBACK")
    except psycopg.Error:
        connection.close()
