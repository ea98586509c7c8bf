"""The check of a directory: nothing is wrong with what the store wrote, and each class of damage is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import lmdb
import pytest
from msgspec.structs import replace

from hummock.core.errors import HummockError
from hummock.core.review import Quarantined
from hummock.ports.writes import UnitOfWork
from hummock.store.errors import DirectoryUnusable
from hummock.store.tables import integrity, keys, record_codec
from hummock.store.upkeep import Report, check
from tests.ports.asking import put
from tests.store.opening import MIB, opened
from tests.store.test_golden_directories import NAMES, restored
from tests.store.test_project_removal import fill, removal
from tests.strategies import Entry, delete_request, embedding, write_request

SECRET = "潮汐"

Alter: TypeAlias = Callable[["Tables"], None]


class Tables:
    """A write transaction, and its tables by name."""

    def __init__(self, env: lmdb.Environment, txn: lmdb.Transaction[bytes]) -> None:
        self._env, self._txn = env, txn

    def keys(self, table: str) -> list[bytes]:
        """Keys of the first project in a table."""
        prefix = b"" if table in ("retired", "retired_age", "by_digest", "expiry") else keys.project_prefix(1)
        with self._txn.cursor(self._db(table)) as cursor:
            return [key for key in cursor.iternext(keys=True, values=False) if key.startswith(prefix)]

    def drop(self, table: str, at: int = 0) -> None:
        self._txn.delete(self.keys(table)[at], db=self._db(table))

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._txn.put(key, value, db=self._db(table))

    def value(self, table: str) -> bytes:
        """Value of the table's first key."""
        return self._txn.get(self.keys(table)[0], b"", db=self._db(table))

    def garble(self, table: str) -> None:
        self.put(table, self.keys(table)[0], b"\xc1garbled")

    def record(self, **fields: object) -> None:
        """Changes the record of the first project."""
        key = keys.project_number_key(1)
        record = record_codec.decode_project(self._txn.get(key, b"", db=self._db("project")))
        for name, value in fields.items():
            setattr(record, name, value)
        self.put("project", key, record_codec.encode(record))

    def _db(self, table: str) -> lmdb._Database:
        return self._env.open_db(table.encode(), self._txn)


def altered(data: Path, alter: Alter) -> None:
    with lmdb.open(str(data), max_dbs=64, map_size=256 * MIB) as env, env.begin(write=True) as txn:
        alter(Tables(env, txn))


def checked(data: Path) -> Report:
    return check(data, lambda done, total: None)


def put_ending(unit: UnitOfWork) -> None:
    """A memory that ends some time."""
    entry = Entry(id="ends", words=(SECRET,))
    unit.put(replace(entry.memory(), expire_time=9e9), entry.key, entry.terms(), [embedding(1)])


def hold_one(unit: UnitOfWork) -> None:
    memory = replace(Entry(id="held", words=(SECRET,)).memory(), chunk_count=0)
    unit.review.put(Quarantined(memory=memory, families=("override",), hold_time=1.0))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path) as store:
        fill(store)
        store.write("p", write_request(put_ending)).result(30)
        store.write("p", write_request(hold_one)).result(30)
        # The only one with its text: it leaves its vectors.
        put(store, "p", Entry(id="gone", seeds=(77,)))
        store.write("p", delete_request(["gone"])).result(30)
    return tmp_path


def resealed(tables: Tables, table: str, key: bytes) -> bytes:
    """The value of a table's first key, as it would be stored under another one."""
    return integrity.seal(key, integrity.opened(tables.keys(table)[0], tables.value(table)) or b"")


DAMAGES: dict[str, tuple[str, Alter]] = {
    "memory": ("a payload has no memory", lambda tables: tables.drop("memory")),
    "memory read": ("a memory cannot be read", lambda tables: tables.garble("memory")),
    "sum": ("a memory is not what was written", lambda tables: tables.garble("payload")),
    "payload": ("a memory has no payload", lambda tables: tables.drop("payload")),
    "payload read": ("a payload cannot be read", lambda tables: tables.garble("payload")),
    "column": ("a memory has no row of columns", lambda tables: tables.drop("column")),
    "terms": ("a memory has no list of terms", lambda tables: tables.drop("terms")),
    "list": ("a list of terms cannot be read", lambda tables: tables.put("terms", tables.keys("terms")[0], b"123")),
    "term": ("a memory holds a term that has no name", lambda tables: tables.drop("term")),
    "terms to give": ("a term's number is still to be given", lambda tables: tables.record(next_term=1)),
    "by_id": ("a memory is not found by its id", lambda tables: tables.drop("by_id")),
    "id": ("an id names no memory", lambda tables: tables.put("by_id", keys.name_key(1, "?"), b"\xff" * 8)),
    "by_text": ("a memory is not found by its text", lambda tables: tables.drop("by_text")),
    "text": ("a text names no memory", lambda tables: tables.put("by_text", keys.text_key(1, b"?", 999), b"")),
    "vector": ("a chunk has no vector", lambda tables: tables.drop("vector")),
    "vector read": ("a vector cannot be read", lambda tables: tables.put("vector", tables.keys("vector")[0], b"12")),
    "vectors": ("a vector has no memory", lambda tables: tables.put("vector", keys.chunk_key(1, 1, 999, 0), b"12")),
    "token": ("token vectors have no memory", lambda tables: tables.put("token", keys.chunk_key(1, 1, 999, 0), b"")),
    "pending": ("a memory without vectors does not wait for any", lambda tables: tables.drop("pending")),
    "waits": (
        "what has vectors, or is none, waits for some",
        lambda tables: tables.put("pending", keys.doc_key(1, 999), b""),
    ),
    "kinds": ("the counts of memories by kind are wrong", lambda tables: tables.record(kinds={4: 7})),
    "pending count": ("the count of memories that wait for vectors is wrong", lambda tables: tables.record(pending=7)),
    "docs to give": ("a document's number is still to be given", lambda tables: tables.record(next_doc=2)),
    "expiry": ("a memory that ends is not noted", lambda tables: tables.drop("expiry")),
    "end": ("an end of a memory has no memory", lambda tables: tables.put("expiry", keys.expiry_key(1.0, 1, 999), b"")),
    "digests": (
        "a digest has no chunk",
        lambda tables: tables.put("by_digest", bytes(16) + keys.chunk_key(1, 1, 999, 0), b""),
    ),
    "review read": ("what is held for review cannot be read", lambda tables: tables.garble("review")),
    "review": (
        "what is held for review is under another id",
        lambda tables: tables.put("review", keys.name_key(1, "?"), resealed(tables, "review", keys.name_key(1, "?"))),
    ),
    "retired": ("vectors of removed texts and their ages differ", lambda tables: tables.drop("retired_age")),
    "session": ("a place in the order of sessions has no session", lambda tables: tables.drop("session_record")),
    "place": ("a session has no place", lambda tables: tables.drop("session_order")),
    "message": ("a session lacks a message", lambda tables: tables.drop("message", 2)),
    "message read": ("a message cannot be read", lambda tables: tables.garble("message")),
    "message id": ("a message is not found by its id", lambda tables: tables.drop("message_id")),
    "event": ("the learning log lacks an event", lambda tables: tables.drop("event")),
    "event read": ("an event cannot be read", lambda tables: tables.garble("event")),
    "late event": (
        "an event is behind the end of the learning log",
        lambda tables: tables.put("event", keys.event_key(1, 99), b"\xc1"),
    ),
    "state": ("the state of learning cannot be read", lambda tables: tables.garble("learning")),
    "operation": (
        "an operation is of no write that is kept",
        lambda tables: tables.put("ops", keys.op_key(1, 99, 0), bytes(9)),
    ),
    "removal": (
        "the id of a removed memory has no removal",
        lambda tables: tables.put("removed", keys.op_key(1, 2, 77), b"?"),
    ),
    "age": ("the answer to a request has no age", lambda tables: tables.drop("request_age")),
    "name": (
        "a project is not found by its name",
        lambda tables: tables.put("project", keys.project_name_key("p"), keys.pack_project(77)),
    ),
    "number": ("a project's number is still to be given", lambda tables: tables.put("meta", b"next_project", b"\x01")),
    "stranger": (
        "table payload has entries of a project that is not there",
        lambda tables: tables.put("payload", keys.doc_key(77, 1), b""),
    ),
}


def test_nothing_is_wrong_with_what_was_written_nor_with_what_a_removal_left(data: Path) -> None:
    """I3."""
    report = checked(data)
    assert report.problems == ()
    assert report.counts["memories"] == 23
    assert (report.counts["messages"], report.counts["sessions"], report.counts["projects"]) == (5, 1, 1)
    with opened(data) as store:
        store.remove_project("p", removal()).result(30)
    assert checked(data).problems == ()


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_found_and_no_content_is_said(data: Path, name: str) -> None:
    """I3."""
    what, alter = DAMAGES[name]
    altered(data, alter)
    problems = checked(data).problems
    assert what in [problem.what for problem in problems]
    assert SECRET not in repr(problems)
    assert all(problem.project in ("", "p") for problem in problems)


@pytest.mark.parametrize("name", NAMES)
def test_directories_of_earlier_versions_are_sound(tmp_path: Path, name: str) -> None:
    restored(tmp_path, name)
    assert checked(tmp_path).problems == ()


def test_a_directory_without_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(DirectoryUnusable, match="holds no data") as caught:
        checked(tmp_path)
    assert isinstance(caught.value, HummockError)
