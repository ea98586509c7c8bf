"""Pool of PostgreSQL connections with a deadline for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo
from psycopg.abc import PQGen
from psycopg_pool import ConnectionPool, PoolTimeout

from hummock.core.errors import StoreUnreachable
from hummock.store.postgresql.exchange import Answer, Exchange, NoAnswer, Statement
from hummock.store.postgresql.schema import become_service

PATIENCE_S = 2.0
"""Deadline in seconds for one statement of a read, or for a new connection: a frozen server does not answer at all."""

_LOST_PATIENCE_S = 0.5
"""Deadline in seconds for a connection just after one was lost, as the waiting threads are needed elsewhere too."""

_SILENT_PATIENCE_S = 0.1  # Deadline in seconds for a connection, once the server has not answered for PATIENCE_S.
WRITE_PATIENCE_S = 10.0  # Deadline in seconds for a commit, which waits for a synchronous standby.
LOAD_PATIENCE_S = 30.0  # Deadline in seconds for a statement of thousands of rows.

_TRIES = 5
_ROLLBACK = Statement(b"ROLLBACK")
_LOCK_PATIENCE_MS = 1500
"""Deadline for a lock that another service holds: shorter than PATIENCE_S, so that the server itself reports why."""
_SETTINGS = (
    # Every statement finds rows by its table's primary key: planning it each time costs more than running it.
    b"SET plan_cache_mode = force_generic_plan",
    b"SET lock_timeout = %d" % _LOCK_PATIENCE_MS,
)

_INSIDE = (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR)

_KEEPALIVE = {
    "connect_timeout": "2", "keepalives": "1", "keepalives_idle": "2", "keepalives_interval": "1",
    "keepalives_count": "2", "tcp_user_timeout": "2000",
}  # fmt: skip # pairs

Value = TypeVar("Value")


class DatabaseUnreachable(StoreUnreachable):
    """PostgreSQL does not answer, or has no server that accepts writes at the moment."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place} does not answer ({why}); what was not acknowledged may be tried again, and calls are answered as "
            "soon as a server takes over"
        )
        self.place = place
        self._why = why

    def again(self) -> DatabaseUnreachable:
        """An equal error, for another caller."""
        return DatabaseUnreachable(self.place, self._why)


class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if an answer does not come in `patience_s` seconds."""

    patience_s = PATIENCE_S
    _exchange: Exchange | None = None

    def ask(self, statements: Sequence[Statement], patience_s: float) -> list[Answer]:
        """Send statements together and wait for all answers; see `Exchange`."""
        if self._exchange is None:
            self._exchange = Exchange(self.pgconn)
        return self._exchange(statements, patience_s)

    def wait(self, gen: PQGen[Value], interval: float = 0.1, timeout: float | None = None) -> Value:
        """Wait for an answer. Raises: NoAnswer."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience_s)
        except psycopg.errors._WaitTimeout as error:
            self.pgconn.finish()
            raise NoAnswer(f"no answer in {self.patience_s:g} s") from error


def place_of(dsn: str) -> str:
    """A connection string without its secrets, for messages."""
    parts = conninfo.conninfo_to_dict(dsn)
    hosts = str(parts.get("host") or "localhost")
    ports = str(parts.get("port") or "5432").split(",")
    names = hosts.split(",")
    if len(ports) == 1:
        ports *= len(names)
    where = ",".join(f"{name}:{port}" for name, port in zip(names, ports, strict=False))
    return f"postgresql://{where}/{parts.get('dbname') or parts.get('user') or ''}"


class Connections:
    """A pool of connections with the service's role. Thread-safe.

    `away` is the last error, if the server has not answered since; None while it answers.
    """

    def __init__(self, dsn: str, most: int) -> None:
        """Connections are opened on demand. A `dsn` with several hosts needs `target_session_attrs=read-write`."""
        self.place = place_of(dsn)
        self.away: DatabaseUnreachable | None = None
        self._answered_s = time.monotonic()
        self._dsn = conninfo.make_conninfo(dsn, **_missing(dsn))
        self._pool: ConnectionPool[PatientConnection] = ConnectionPool(
            self._dsn,
            connection_class=PatientConnection,
            kwargs={"autocommit": True, "prepare_threshold": 1, "application_name": "hummock"},
            min_size=1,
            max_size=most,
            configure=self._configure,
            reset=_require_idle,
            timeout=PATIENCE_S,
            reconnect_timeout=PATIENCE_S,
            max_lifetime=3600,
            name="hummock-postgresql",
            open=False,
        )

    def open(self) -> None:
        """Open the pool."""
        self._pool.open()

    @contextmanager
    def alone(self) -> Iterator[PatientConnection]:
        """A connection outside the pool, with the role of the connection string. Raises: DatabaseUnreachable."""
        try:
            connection = PatientConnection.connect(self._dsn, autocommit=True)
        except psycopg.OperationalError as error:
            raise self.unreachable(error) from error
        with connection:
            connection.patience_s = LOAD_PATIENCE_S
            yield connection

    @contextmanager
    def one(self) -> Iterator[PatientConnection]:
        """A connection of the pool. Raises: psycopg.OperationalError."""
        with self._pool.connection(self._patience_s()) as connection:
            yield connection
            if connection.closed:
                self.lost()
            else:
                self.answered()

    @contextmanager
    def lent(self) -> Iterator[Lent]:
        """A connection of the pool, taken on first use."""
        lent = Lent(self)
        try:
            yield lent
        finally:
            lent.give_back()

    def take(self) -> PatientConnection:
        """A connection of the pool. Raises: psycopg.OperationalError."""
        return self._pool.getconn(self._patience_s())

    def give_back(self, connection: PatientConnection) -> None:
        """Return a connection to the pool."""
        self._pool.putconn(connection)

    def answered(self) -> None:
        """Record that the server has answered through the pool."""
        self.away, self._answered_s = None, time.monotonic()

    def lost(self) -> None:
        """Record that a connection was lost, if no caller gets the error."""
        self.away = self.away or DatabaseUnreachable(self.place, "a connection was lost")

    def unreachable(self, error: Exception) -> DatabaseUnreachable:
        """The error for callers after a failure."""
        lines = str(error).strip().splitlines()
        self.away = away = DatabaseUnreachable(self.place, lines[0] if lines else type(error).__name__)
        if isinstance(error, NoAnswer) and self._is_silent():
            # Otherwise each remaining connection would time out in turn.
            self._pool.drain()
        return away

    def look(self) -> None:
        """Record an answer on any connection; after a failure test whether the pool reaches the server again.

        Until it does, callers should not wait: the first of several hosts may be one that never answers.
        """
        self._answered_s = time.monotonic()
        if self.away is not None:
            with suppress(psycopg.Error), self.lent() as lent:
                lent.ask_first([Statement(b"SELECT 1")], PATIENCE_S)

    def close(self) -> None:
        """Close all connections; those in use are closed when returned."""
        self._pool.close(timeout=1)

    def _patience_s(self) -> float:
        if self.away is None:
            return PATIENCE_S
        return _SILENT_PATIENCE_S if self._is_silent() else _LOST_PATIENCE_S

    def _is_silent(self) -> bool:
        return time.monotonic() - self._answered_s >= PATIENCE_S

    def _configure(self, connection: PatientConnection) -> None:
        connection.patience_s = PATIENCE_S
        become_service(connection, self.place)
        connection.execute(b"; ".join(_SETTINGS))


class Lent:
    """A connection taken from the pool on first use, for one thread."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: PatientConnection | None = None

    @property
    def connection(self) -> PatientConnection:
        """The connection itself; available after the first statement."""
        if self._connection is None:
            raise RuntimeError("nothing has been asked of a connection yet")
        return self._connection

    def ask(self, statements: Sequence[Statement], patience_s: float) -> list[Answer]:
        """Send statements after those sent before, and return the answers. Raises: psycopg.Error."""
        answers = self.connection.ask(statements, patience_s)
        self._connections.answered()
        return answers

    def ask_first(self, statements: Sequence[Statement], patience_s: float) -> list[Answer]:
        """Run statements independent of earlier ones; on another connection if this is broken. Raises: psycopg.Error.

        After a server's end each pooled connection is found broken once, hence several attempts.
        """
        for tries_left in reversed(range(_TRIES)):
            if self._connection is None:
                self._connection = self._connections.take()
            try:
                return self.ask(statements, patience_s)
            except psycopg.OperationalError as error:
                if not tries_left or isinstance(error, NoAnswer) or not self._connection.broken:
                    raise
                self.give_back()
        raise AssertionError("the last try returns or raises")

    def give_back(self) -> None:
        """End an open transaction and return the connection; the pool discards a broken one."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        status = connection.pgconn.transaction_status
        try:
            if status in _INSIDE:
                connection.ask([_ROLLBACK], PATIENCE_S)
            elif status != psycopg.pq.TransactionStatus.IDLE:
                connection.close()  # an exchange was interrupted
        except psycopg.Error:
            connection.close()
            self._connections.lost()
        finally:
            self._connections.give_back(connection)


def is_lost(error: Exception) -> bool:
    """Whether the server is gone or accepts no more writes, in contrast to one refused statement."""
    if is_passing(error):
        return False
    return isinstance(error, PoolTimeout | psycopg.OperationalError | psycopg.errors.ReadOnlySqlTransaction)


def is_passing(error: Exception) -> bool:
    """Whether a transaction failed by a conflict with another one, so that a retry may succeed."""
    return isinstance(error, psycopg.errors.TransactionRollback | psycopg.errors.LockNotAvailable)


def _require_idle(connection: PatientConnection) -> None:
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        raise psycopg.OperationalError("the connection was left inside a transaction")


def _missing(dsn: str) -> dict[str, str]:
    given = conninfo.conninfo_to_dict(dsn)
    return {name: value for name, value in _KEEPALIVE.items() if name not in given}
