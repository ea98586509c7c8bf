"""Isolation by the database itself: rows by project, and the service's role from what it does not need."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import cast

import psycopg
import pytest
from psycopg import sql

from hummock.store.postgresql.database import Database
from hummock.store.postgresql.opening import recorded_model_of
from hummock.store.postgresql.schema import (
    MIGRATIONS,
    SERVICE_ROLE,
    RoleTooStrong,
    SchemaMissing,
    SchemaNewer,
    become_service,
    bring_up,
    form_of,
)
from hummock.store.tables.engine import TABLE_NAMES
from tests.ports.asking import ask, ids, put
from tests.postgresql.node import ROLE, Node
from tests.store.opening import opened_shared
from tests.strategies import SPACE, Entry

pytestmark = pytest.mark.long

_LOGIN = "login_of_a_service"


def connected(dsn: str) -> psycopg.Connection:
    """A connection with the service's role, outside any project."""
    connection = psycopg.connect(dsn, autocommit=True)
    become_service(connection, "here")
    return connection


def seen(connection: psycopg.Connection, table: str, scope: str | None) -> set[int]:
    """The projects whose rows a transaction sees that names none in its statement."""
    with connection.transaction():
        if scope is not None:
            connection.execute("SELECT set_config('hummock.scope', %s, true)", (scope,))
        rows = connection.execute(sql.SQL("SELECT project FROM hummock.{}").format(sql.Identifier(table)))
        return {row[0] for row in rows}


def test_a_transaction_sees_and_writes_to_no_project_but_the_one_it_has_entered(database: str) -> None:
    with opened_shared(database) as store:
        put(store, "p", Entry(id="a", seeds=(1,)))
        put(store, "q", Entry(id="b", seeds=(2,)))
    with connected(database) as connection:
        for table in ("memory", "payload", "vector", "column", "by_id", "ops", "term", "checksum"):
            assert seen(connection, table, None) == set()
            assert seen(connection, table, "1") == {1}
            assert seen(connection, table, "2") == {2}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SET hummock.scope = '1'; INSERT INTO hummock.memory VALUES (2, '', '')")
        with connection.transaction():
            connection.execute("SELECT set_config('hummock.scope', '1', true)")
            assert connection.execute("DELETE FROM hummock.memory WHERE project = 2").rowcount == 0
    with opened_shared(database) as store:
        assert ids(ask(store, "q", terms=("tide",))) == {"b"}


def test_row_level_security_holds_for_every_table_and_its_owner(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'hummock'::regnamespace AND relkind = 'r' "
            "AND relrowsecurity AND relforcerowsecurity"
        ).fetchall()
        owned = connection.execute("SELECT count(*) FROM pg_class WHERE relowner = %s::regrole", (SERVICE_ROLE,))
        assert {name for (name,) in rows} == set(TABLE_NAMES)
        assert owned.fetchone() == (0,)


def test_a_role_that_owns_the_tables_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummock.store.postgresql.schema.SERVICE_ROLE", ROLE)
    with psycopg.connect(database, autocommit=True) as connection, pytest.raises(RoleTooStrong, match="owns tables"):
        become_service(connection, "here")


def test_a_login_that_is_only_a_member_of_the_role_opens_a_database_that_is_there(node: Node, database: str) -> None:
    with psycopg.connect(node.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(_LOGIN)))
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN IN ROLE {}").format(sql.Identifier(_LOGIN), sql.Identifier(SERVICE_ROLE))
        )
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    with opened_shared(node.dsn_of(str(name), _LOGIN)) as store:
        put(store, "p", Entry(id="a"))
        assert ids(ask(store, "p", terms=("tide",))) == {"a"}


def test_whoever_may_not_make_the_tables_is_told_what_to_do(node: Node, bare_database: str) -> None:
    with psycopg.connect(node.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier("nobody_special")))
        connection.execute("CREATE ROLE nobody_special LOGIN")
    name = str(psycopg.conninfo.conninfo_to_dict(bare_database)["dbname"])
    with (
        pytest.raises(SchemaMissing, match="GRANT hummock_service"),
        opened_shared(node.dsn_of(name, "nobody_special")),
    ):
        pass


def test_several_services_that_start_at_once_make_the_tables_once(bare_database: str) -> None:
    def start(_: int) -> None:
        with opened_shared(bare_database):
            pass

    assert recorded_model_of(bare_database) is None
    with ThreadPoolExecutor(3) as starters:
        list(starters.map(start, range(3)))
    assert recorded_model_of(bare_database) == SPACE.model
    with psycopg.connect(bare_database) as connection:
        assert form_of(connection) == len(MIGRATIONS)


def test_tables_of_a_later_form_are_refused(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO hummock.migration (form) VALUES (999)")
        with pytest.raises(SchemaNewer, match="form 999"):
            bring_up(connection, "here")


def test_a_transaction_in_which_a_statement_has_failed_is_never_taken_for_committed(database: str) -> None:
    with opened_shared(database) as store:
        put(store, "p", Entry(id="a"))
        writing = cast(Database, store._engine).writing(projects=["p"])
        with pytest.raises(psycopg.errors.InFailedSqlTransaction), writing as txn:
            fail(txn.connection)
        assert ids(ask(store, "p", terms=("tide",))) == {"a"}


def fail(connection: psycopg.Connection) -> None:
    """Makes a statement fail, and ignores the error."""
    with suppress(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM hummock.nothing")
