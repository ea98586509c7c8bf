"""Each fault of the disk has an error of its own, is said of the store while it lasts, and mends itself."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, cast

import lmdb
import pytest

from hummock.core.errors import HummockError, StorageFull, Unavailable
from hummock.store import WritableStore
from hummock.store.errors import DirectoryUnusable
from hummock.store.lmdb.environment import Environment, unusable
from hummock.store.write import writer
from hummock.store.write.group import GroupCommit
from tests.ports.asking import ask, put
from tests.store.opening import opened
from tests.strategies import Entry


@pytest.fixture(autouse=True)
def looks_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the store from looking of its own accord; tests tell it when."""
    monkeypatch.setattr(writer, "_WATCH_S", 3600.0)


FAULTS = {
    errno.ENOSPC: (StorageFull, "no space is left on the device.*make room on the disk"),
    errno.EDQUOT: (StorageFull, "disk quota of its user.*make room on the disk"),
    errno.EIO: (Unavailable, r"input/output error \(EIO\).*the disk's health"),
    errno.EROFS: (Unavailable, r"read-only \(EROFS\).*mount it for writing"),
    errno.EACCES: (Unavailable, r"access is denied \(EACCES\).*read and write access"),
    errno.EPERM: (Unavailable, r"not permitted \(EPERM\).*read and write access"),
    errno.ENOENT: (Unavailable, r"not there any more \(ENOENT\).*put it back"),
}


def failed(code: int) -> lmdb.Error:
    error = lmdb.Error("mdb_txn_commit")
    error.code = code  # type: ignore[misc] # as LMDB's own has it
    return error


class Faulty:
    """A disk that fails every commit with one error."""

    def __init__(self, patch: pytest.MonkeyPatch, code: int) -> None:
        begin = Environment.writing

        def writing(environment: Environment, *args: Any, **more: Any) -> object:
            cast("lmdb.Transaction[bytes]", begin(environment, *args, **more)).abort()
            raise failed(code)

        patch.setattr(Environment, "writing", writing)


def looked(store: WritableStore) -> str:
    """Message about writes after the store has looked again."""
    store._health.look()
    return store.status().write_fault


@pytest.mark.parametrize("code", FAULTS)
def test_each_fault_has_its_own_error_and_ends_by_itself(tmp_path: Path, code: int) -> None:
    """X1: never INTERNAL."""
    kind, says = FAULTS[code]
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        assert store.status().write_fault == ""
        with pytest.MonkeyPatch.context() as patch:
            Faulty(patch, code)
            with pytest.raises(kind, match=says) as caught:
                put(store, "p", Entry(id="b"))
            assert isinstance(caught.value, HummockError)
            assert looked(store) == str(caught.value)
            assert set(ask(store, seed=1).memory_id) == {"a"}
            assert store.trouble() == ""
        assert looked(store) == ""
        put(store, "p", Entry(id="b"))
    with opened(tmp_path) as store:
        assert set(ask(store, seed=1).memory_id) == {"a", "b"}


@pytest.mark.parametrize("code", FAULTS)
def test_a_start_names_the_fault_and_what_mends_it(tmp_path: Path, code: int) -> None:
    said = unusable(tmp_path, failed(code))
    assert isinstance(said, DirectoryUnusable)
    remedy = FAULTS[code][1].rpartition(".*")[2]
    assert remedy in str(said)


def test_a_disk_with_little_room_says_how_much_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(Environment, "free_disk_bytes", lambda self: 1000)
            with pytest.raises(StorageFull, match="1000 bytes are free, and the last 67108864 are kept"):
                put(store, "p", Entry(id="a"))
            assert looked(store) != ""
        assert looked(store) == ""


@pytest.mark.long
def test_what_the_map_keeps_for_deleting_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, map_bytes=4 << 20, quota_bytes=100 << 20) as store:
        big = [Entry(id=f"m{number}", words=("x" * 9000,)) for number in range(400)]
        with pytest.raises(StorageFull, match="besides the 524288 that are kept so that deleting works"):
            put(store, "p", *big)
        # The map is as large as it was told to be; nothing is at fault.
        assert store.status().write_fault == ""


def test_a_database_that_gave_up_is_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(group: GroupCommit, jobs: object, is_awaited: object) -> None:
        raise lmdb.PanicError("commit")

    with opened(tmp_path) as store:
        monkeypatch.setattr(GroupCommit, "_commit", panic)
        with pytest.raises(Unavailable):
            put(store, "p", Entry(id="a"))
        assert "restart the service" in store.trouble()
