"""Statements that are sent together: whole, in order, and seen by nobody who has not entered the project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import psycopg
import pytest

from hummock.store.postgresql.connections import LOAD_PATIENCE_S, PatientConnection
from hummock.store.postgresql.database import Database
from hummock.store.postgresql.exchange import NoAnswer, Statement, bytea_array, int4, int8
from hummock.store.postgresql.schema import become_service
from hummock.store.tables import keys
from hummock.store.tables.engine import Foreseen
from tests.ports.asking import put
from tests.store.opening import MIB, opened_shared
from tests.strategies import Entry

pytestmark = pytest.mark.long

ECHO = b"SELECT $1::bytea"


@pytest.fixture
def connection(database: str) -> Iterator[PatientConnection]:
    with PatientConnection.connect(database, autocommit=True) as made:
        become_service(made, "here")
        yield made


@pytest.fixture
def engine(database: str) -> Iterator[Database]:
    """The database of a store of two projects."""
    with opened_shared(database) as store:
        put(store, "p", Entry(id="a", seeds=(1,)))
        put(store, "q", Entry(id="b", seeds=(2,)))
        yield cast(Database, store._engine)


def test_answers_of_any_size_and_bytes_come_in_the_order_of_what_was_asked(connection: PatientConnection) -> None:
    for _ in range(2):  # prepared the first time
        answers = connection.ask([Statement(ECHO, (bytes([number]),)) for number in range(5)], 10)
        assert [answer.rows for answer in answers] == [[(bytes([number]),)] for number in range(5)]
    large = bytes(2 * MIB)
    answers = connection.ask([Statement(ECHO, (large,))] * 8, LOAD_PATIENCE_S)
    assert all(answer.rows == [(large,)] for answer in answers)
    values = [b"", b"\0", bytes(range(256)), b"\xff" * 300]
    (answer,) = connection.ask([Statement(b"SELECT unnest($1::bytea[])", (bytea_array(values),))], 10)
    assert [row[0] for row in answer.rows] == values


def test_behind_a_statement_that_fails_none_is_run(connection: PatientConnection) -> None:
    insert = Statement(b"INSERT INTO hummock.meta VALUES (0, $1, '')", (b"key",))
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.ask([Statement(b"SELECT 1 / $1::int", (int4(0),)), insert], 10)
    (counted,) = connection.ask([Statement(b"SELECT count(*) FROM hummock.meta")], 10)
    assert counted.rows == [(int8(0),)]


def test_what_was_prepared_before_a_failure_is_not_prepared_again(connection: PatientConnection) -> None:
    prepared = Statement(b"SELECT count(*) FROM pg_prepared_statements")
    counts = []
    for _ in range(3):
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.ask([Statement(ECHO, (b"",)), Statement(b"SELECT 1 / $1::int", (int4(0),))], 10)
        counts += connection.ask([prepared], 10)[0].rows
    assert counts == [(int8(3),)] * 3


def test_a_server_that_says_nothing_loses_the_connection(connection: PatientConnection) -> None:
    with pytest.raises(NoAnswer):
        connection.ask([Statement(b"SELECT pg_sleep(30)")], 0.01)
    assert connection.broken


def test_a_read_of_one_project_finds_nothing_of_another_nor_behind_it(engine: Database) -> None:
    count = Statement(engine.tables.memory.count)
    with engine.looking(1) as txn:
        assert txn.begin([count])[0].rows == [(int8(1),)]
        assert txn.connection.ask([count], 10)[0].rows == [(int8(0),)]
    doc_keys = [keys.doc_key(number, 1) for number in (1, 2)]
    with engine.looking(1) as txn:
        memory = engine.tables.memory
        assert [txn.get(key, db=memory) is not None for key in doc_keys] == [True, False]


def test_rows_that_were_read_ahead_have_what_was_put_since(engine: Database) -> None:
    table, before, behind = engine.tables.request, keys.name_key(1, "a"), keys.name_key(1, "z")
    prefix = keys.project_prefix(1)
    with engine.writing(projects=["p"]) as txn:
        txn.put(keys.name_key(1, "m"), b"stored", db=table)
    foreseen: dict[str, Foreseen] = {"p": lambda number: ({}, {"request": [prefix]})}
    with engine.writing(projects=["p"], foreseen=foreseen) as txn:
        txn.put(behind, b"new", db=table)
        txn.put(before, b"first", db=table)
        assert [value for _, value in keys.entries(txn, table, prefix)] == [b"first", b"stored", b"new"]
        txn.delete(keys.name_key(1, "m"), db=table)
        assert [value for _, value in keys.entries(txn, table, prefix)] == [b"first", b"new"]


def test_rows_that_were_read_ahead_are_not_all_there_are(engine: Database) -> None:
    table, prefix = engine.tables.request, keys.project_prefix(1)
    names = [f"{number:02}" for number in range(40)]
    with engine.writing(projects=["p"]) as txn:
        for name in names:
            txn.put(keys.name_key(1, name), name.encode(), db=table)
    foreseen: dict[str, Foreseen] = {"p": lambda number: ({}, {"request": [prefix]})}
    with engine.writing(projects=["p"], foreseen=foreseen) as txn:
        for name in names[:20]:
            txn.delete(keys.name_key(1, name), db=table)
        txn.put(keys.name_key(1, "99"), b"99", db=table)
        found = [value.decode() for _, value in keys.entries(txn, table, prefix)]
    assert found == [*names[20:], "99"]


def test_of_a_project_whose_number_is_another_one_nothing_is_foreseen(engine: Database) -> None:
    """Another service has removed it, and a project of its name has come since."""
    engine._numbers[keys.project_name_key("p")] = 2  # what another service's removal would leave
    key = keys.name_key(1, "a")
    foreseen: dict[str, Foreseen] = {"p": lambda number: ({"by_id": [keys.name_key(number, "a")]}, {})}
    with engine.writing(projects=["p"], foreseen=foreseen) as txn:
        assert txn.get(key, db=engine.tables.by_id) is not None
        assert engine._numbers[keys.project_name_key("p")] == 1
