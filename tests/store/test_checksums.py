"""Data that the disk did not keep as written is noticed, left out, reported, and never shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import lmdb
import pytest

from hummock.core.errors import DataLoss
from hummock.core.memory import Filter
from hummock.store import WritableStore
from hummock.store.errors import MemoryDamaged, SchemaTooNew
from hummock.store.tables import keys, reads, record_codec, sessions
from tests.ports.asking import ask, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.store.test_golden_directories import everything, restored
from tests.strategies import Entry, delete_request, put_request

PARTS = ("memory", "payload", "column", "terms", "vector")
ALL = frozenset(f"m{number}" for number in range(5))


def filled(directory: Path) -> None:
    with opened(directory) as store:
        put(store, "p", *(Entry(id=f"m{number}", words=("tide", f"w{number}"), seeds=(number,)) for number in range(5)))


def changed(directory: Path, table: str, change: Callable[[bytes], bytes | None], at: int = 2) -> None:
    """Changes what a table holds of one memory, behind the store's back; None removes it."""
    with lmdb.open(str(directory), max_dbs=64, map_size=1 << 28, lib_version=0) as env:
        database = env.open_db(table.encode())
        with env.begin(write=True) as txn:
            key, value = list(txn.cursor(database))[at]
            new = change(value)
            if new is None:
                txn.delete(key, db=database)
            else:
                txn.put(key, new, db=database)


def flipped(value: bytes) -> bytes:
    """A copy of the value with one bit flipped, in the middle."""
    at = len(value) // 2
    return value[:at] + bytes([value[at] ^ 4]) + value[at + 1 :]


def listed(store: WritableStore) -> set[str]:
    return {memory.id for memory in store.page("p", Filter(), 0, 100, full=True).memories}


@pytest.mark.parametrize("change", [flipped, lambda value: value[:-1], lambda value: None])
@pytest.mark.parametrize("table", PARTS)
def test_a_damaged_memory_is_left_out_and_all_others_are_there(
    tmp_path: Path, table: str, change: Callable[[bytes], bytes | None]
) -> None:
    filled(tmp_path)
    changed(tmp_path, table, change)
    with opened(tmp_path) as store:
        # What lies in the view is read when it is loaded, the rest with the hits.
        store.load("p", ask(store, terms=["tide"], pool=100).rows["doc"].tolist(), full=True)
        assert ids(ask(store, terms=["tide"], pool=100)) == ids(ask(store, seed=1, pool=100)) == ALL - {"m2"}
        assert listed(store) == ALL - {"m2"}
        assert {one.memory.id for one in store.export("p", 0, 1, with_vectors=True).memories} == ALL - {"m2"}
        assert (at(store, "p").damaged(), at(store, "q").damaged(), store.status().damaged_count) == (1, 0, 1)
        assert store.trouble() == ""


@pytest.mark.parametrize("table", ["memory", "payload"])
def test_a_damaged_memory_that_is_asked_for_by_its_id_is_an_error(tmp_path: Path, table: str) -> None:
    filled(tmp_path)
    changed(tmp_path, table, flipped)
    with opened(tmp_path) as store:
        with pytest.raises(MemoryDamaged, match="memory m2 is damaged on the disk") as caught:
            store.get("p", ["m1", "m2"], 0, full=True)
        assert isinstance(caught.value, DataLoss)
        assert caught.value.reason == "RECORD_DAMAGED"
        assert store.get("p", ["m1"], 0, full=True)[0] is not None


@pytest.mark.parametrize("table", ["payload", "terms", "vector", "column"])
def test_a_memory_that_was_damaged_can_be_written_again_and_is_whole(tmp_path: Path, table: str) -> None:
    filled(tmp_path)
    changed(tmp_path, table, flipped)
    with opened(tmp_path) as store:
        assert len(listed(store)) == 4
        assert at(store, "p").damaged() == 1
        put(store, "p", Entry(id="m2", words=("tide", "w2"), seeds=(2,)))
        assert listed(store) == ids(ask(store, terms=["tide"], pool=100)) == ALL
        assert at(store, "p").damaged() == 0
        assert store.get("p", ["m2"], 0, full=True)[0] is not None
    with opened(tmp_path) as store:
        assert listed(store) == ids(ask(store, terms=["tide"], pool=100)) == ALL


@pytest.mark.parametrize("table", ["payload", "terms", "vector", "column"])
def test_a_memory_that_was_damaged_can_be_deleted(tmp_path: Path, table: str) -> None:
    filled(tmp_path)
    changed(tmp_path, table, flipped)
    with opened(tmp_path) as store:
        assert len(listed(store)) == 4
        store.write("p", delete_request(["m2"])).result(30)
        assert listed(store) == ids(ask(store, terms=["tide"], pool=100)) == ALL - {"m2"}
        assert at(store, "p").damaged() == 0


def test_a_record_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    """Both are what was written, and neither is what was written there."""
    filled(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=64, map_size=1 << 28, lib_version=0) as env:
        database = env.open_db(b"payload")
        with env.begin(write=True) as txn:
            (first, one), (second, other), *_ = txn.cursor(database)
            txn.put(first, other, db=database)
            txn.put(second, one, db=database)
    with opened(tmp_path) as store:
        for memory_id in ("m0", "m1"):
            with pytest.raises(MemoryDamaged):
                store.get("p", [memory_id], 0, full=True)


def test_a_record_that_is_none_in_a_place_of_nobody_is_left_out(tmp_path: Path) -> None:
    """The value has no checksum, like everything written before there were any, and cannot be read either."""
    filled(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=64, map_size=1 << 28, lib_version=0) as env:
        database = env.open_db(b"memory")
        with env.begin(write=True) as txn:
            txn.put(keys.doc_key(1, 1 << 47), b"\xd4" + bytes(60), db=database)
    with opened(tmp_path) as store:
        assert {one.memory.id for one in store.export("p", 0, 1, with_vectors=True).memories} == listed(store) == ALL
        assert store.status().damaged_count == 1


def test_a_directory_of_before_checksums_gets_them_as_memories_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-44."""
    restored(tmp_path, "before_checksums")
    with opened(tmp_path) as store:
        before = everything(store)
        old = before["record"]
        store.write("loan", put_request([Entry(id="new")])).result(30)
    with lmdb.open(str(tmp_path), max_dbs=64, readonly=True, lib_version=0) as env:
        checksum, memory = (env.open_db(name, create=False) for name in (b"checksum", b"memory"))
        with env.begin() as txn:
            # The new one has its own, and the old ones theirs, since a start has made their words anew.
            assert txn.stat(checksum)["entries"] == txn.stat(memory)["entries"] > 1
    with opened(tmp_path) as store:
        assert everything(store)["record"] == old
        assert set(everything(store)) == {*before, "new"}
    # Who would not write them does not open it any more.
    with monkeypatch.context() as patch:
        patch.setattr(record_codec, "SCHEMA", 1)
        with pytest.raises(SchemaTooNew), opened(tmp_path):
            pass


def test_parts_of_before_checksums_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    restored(tmp_path, "before_checksums")
    changed(tmp_path, "memory", lambda value: b"\xc1", at=1)
    with opened(tmp_path) as store:
        found = set(everything(store))
        assert len(found) == 5
        with pytest.raises(MemoryDamaged):
            store.get("loan", ["domain"], 0, full=True)


@pytest.mark.parametrize(
    ("module", "read"),
    [
        (reads, lambda store: store.get("p", ["m1"], 0, full=True)),
        (sessions, lambda store: store.sessions.get("p", "s1")),
    ],
)
def test_a_database_whose_pages_are_damaged_is_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: Callable[[WritableStore], object]
) -> None:
    """LMDB raises CorruptedError for a page with invalid content."""

    def corrupted(*args: object) -> None:
        raise lmdb.CorruptedError("mdb_get")

    filled(tmp_path)
    with opened(tmp_path) as store:
        monkeypatch.setattr(module, "project_number", corrupted)
        with pytest.raises(DataLoss, match="restore the directory from a backup"):
            read(store)
        assert "is damaged" in store.trouble()
