"""A server that is gone, or frozen, is said at once; what was acknowledged is there when it is back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from psycopg import sql

from hummock.core.errors import Unavailable
from hummock.store.postgresql.schema import become_service
from hummock.store.tables import keys
from hummock.store.tables.engine import TABLE_NAMES
from tests.ports.asking import ask, ids, put
from tests.postgresql.family import frozen
from tests.postgresql.node import running_node
from tests.store.opening import opened_shared
from tests.strategies import Entry, put_request

pytestmark = pytest.mark.long

Answer = TypeVar("Answer")

_TRIES = 30
"""Number of tries; each waits for a connection, so that together they outlast any start."""


def eventually(call: Callable[[], Answer], error: type[Exception] = Unavailable) -> Answer:
    """Result of a call, repeated until the database answers."""
    for _ in range(_TRIES):
        with suppress(error):
            return call()
    return call()


def test_a_server_that_was_killed_is_said_and_what_was_acknowledged_is_there_again(directory: Path) -> None:
    with ExitStack() as running:
        node = running.enter_context(running_node(directory))
        with opened_shared(node.dsn_of("hummock")) as store:
            put(store, "p", Entry(id="a"))
            node.kill()
            running.close()
            for _ in range(3):
                with pytest.raises(Unavailable, match="does not answer"):
                    ask(store, "p", terms=("tide",))
            with pytest.raises(Unavailable, match="does not answer"):
                put(store, "p", Entry(id="b"))
            with pytest.raises(Unavailable, match="does not answer"):
                store.status()
            with running_node(directory):
                assert ids(eventually(lambda: ask(store, "p", terms=("tide",)))) == {"a"}
                eventually(lambda: put(store, "p", Entry(id="c", words=("tide", "c"))))
                assert ids(ask(store, "p", terms=("tide",))) == {"a", "c"}
                store._health.look()
                assert store.status().write_fault == ""


def test_a_server_that_is_frozen_is_given_up_and_used_again_when_it_thaws(directory: Path) -> None:
    with running_node(directory) as node, opened_shared(node.dsn_of("hummock")) as store:
        put(store, "p", Entry(id="a"))
        with frozen(node.postmaster.pid), pytest.raises(Unavailable, match="does not answer"):
            ask(store, "p", terms=("tide",))
        assert ids(eventually(lambda: ask(store, "p", terms=("tide",)))) == {"a"}
        eventually(lambda: put(store, "p", Entry(id="b", words=("tide", "b"))))
        assert ids(ask(store, "p", terms=("tide",))) == {"a", "b"}


def test_a_write_that_was_cut_off_and_is_sent_again_happens_once(directory: Path) -> None:
    request = put_request([Entry(id="a")], request_id="5d1a7c0e-6b0f-4e1a-9d55-0c2c6f5b7a11")
    with ExitStack() as running:
        node = running.enter_context(running_node(directory))
        with opened_shared(node.dsn_of("hummock")) as store:
            written = store.write("p", request).result(30)
            node.kill()
            running.close()
            with running_node(directory):
                again = eventually(lambda: store.write("p", request).result(30))
    assert (again.seq, again.is_repeat) == (written.seq, True)


def test_a_project_that_another_service_writes_to_for_long_is_no_database_that_is_away(database: str) -> None:
    with opened_shared(database) as store, psycopg.connect(database) as another:
        put(store, "p", Entry(id="a"))
        become_service(another, "here")
        another.execute("SELECT FROM hummock.enter_to_write(%s::bytea[])", [[keys.project_name_key("p")]])
        with pytest.raises(Unavailable, match="another service wrote the same"):
            put(store, "p", Entry(id="b"))
        assert store.status().write_fault == ""
        assert ids(ask(store, "p", terms=("tide",))) == {"a"}
        another.rollback()
        put(store, "p", Entry(id="c", words=("tide", "c")))
        assert ids(ask(store, "p", terms=("tide",))) == {"a", "c"}


def test_a_store_that_has_gone_back_is_read_anew(database: str) -> None:
    """A store goes back when its new leader had not received the last writes of the old one."""
    with opened_shared(database) as store:
        put(store, "p", Entry(id="a"))
        with psycopg.connect(database, autocommit=True) as connection:
            become_service(connection, "here")
            before = rows_of(connection)
            put(store, "p", Entry(id="b", words=("tide", "b")))
            assert ids(ask(store, "p", terms=("tide",))) == {"a", "b"}
            go_back(connection, before)
        assert ids(ask(store, "p", terms=("tide",))) == {"a"}


Rows = dict[str, list[tuple[int, bytes, bytes]]]


def rows_of(connection: psycopg.Connection) -> Rows:
    """All rows that project 1 and the whole store have."""
    with connection.transaction():
        connection.execute("SELECT set_config('hummock.scope', '1', true)")
        return {
            name: connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier("hummock", name))).fetchall()
            for name in TABLE_NAMES
        }


def go_back(connection: psycopg.Connection, before: Rows) -> None:
    """Lets the store be as it was."""
    with connection.transaction():
        connection.execute("SELECT set_config('hummock.scope', '1', true)")
        for name, rows in before.items():
            table = sql.Identifier("hummock", name)
            connection.execute(sql.SQL("DELETE FROM {}").format(table))
            connection.cursor().executemany(sql.SQL("INSERT INTO {} VALUES (%s, %s, %s)").format(table), rows)
