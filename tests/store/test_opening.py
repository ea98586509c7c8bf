from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lmdb
import pytest

from hummock.core.errors import StartError, Unavailable
from hummock.core.memory import Filter
from hummock.store import recorded_model, require_free
from hummock.store.errors import (
    AnalyzerTooNew,
    DirectoryInUse,
    DirectoryUnusable,
    OpenedInOtherProcess,
    SchemaTooNew,
    SpaceDiffers,
)
from hummock.store.lmdb.files import DirectoryLock
from hummock.store.tables import lookups, record_codec
from hummock.text.analyzer import ANALYZER_VERSION
from tests.ports.asking import ask, put
from tests.store.opening import opened
from tests.strategies import SPACE, Entry, put_request


def test_a_second_store_on_the_same_directory_fails_at_once(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(DirectoryInUse, match=str(os.getpid())), opened(tmp_path):
        pass
    with opened(tmp_path):
        pass


def test_whether_a_directory_is_held_can_be_asked_without_taking_it(tmp_path: Path) -> None:
    require_free(tmp_path / "absent")
    with opened(tmp_path), pytest.raises(DirectoryInUse, match=str(os.getpid())):
        require_free(tmp_path)
    require_free(tmp_path)
    assert not (tmp_path / "absent").exists()


@pytest.mark.long
def test_a_killed_process_leaves_the_directory_free(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hummock.store.lmdb.files import DirectoryLock\n"
        "lock = DirectoryLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryInUse) as caught, opened(tmp_path):
            pass
        assert caught.value.pid == str(holder.pid)
        assert str(tmp_path) in str(caught.value)
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=30)
    with opened(tmp_path):
        pass


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_neither_holds_the_directory_nor_uses_the_store(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        go = context.Event()

        def child() -> None:
            try:
                store.project("p")
            except OpenedInOtherProcess as error:
                there.send(str(error))
            go.wait(30)

        process = context.Process(target=child, daemon=True)
        process.start()
        assert here.poll(30)
        assert str(os.getpid()) in here.recv()
        assert ask(store, terms=["tide"]).memory_id == ("a",)
    DirectoryLock(tmp_path).release()
    go.set()
    process.join(30)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(DirectoryUnusable, match="choose another directory"), opened(path):
        pass
    with pytest.raises(DirectoryUnusable), opened(path / "below"):
        pass


def test_a_map_beyond_the_address_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DirectoryUnusable, match=r"lower storage\.map_bytes"), opened(tmp_path, map_bytes=1 << 60):
        pass
    with opened(tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is writable for root")
def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DirectoryUnusable, match="write access"), opened(tmp_path):
        pass
    tmp_path.chmod(0o700)


def test_a_damaged_data_file_is_refused_and_kept(tmp_path: Path) -> None:
    """Never wipe."""
    data = tmp_path / "data.mdb"
    data.write_bytes(b"not a database" * 1000)
    with pytest.raises(DirectoryUnusable, match="backup"), opened(tmp_path):
        pass
    with pytest.raises(DirectoryUnusable):
        recorded_model(tmp_path)
    assert data.read_bytes() == b"not a database" * 1000
    DirectoryLock(tmp_path).release()


def test_another_embedding_space_is_refused_and_both_models_are_named(tmp_path: Path) -> None:
    """S4-55: a model of other dimensions removes nothing."""
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
    other = replace(SPACE, id="00" * 16, model="other-model", dim=2 * SPACE.dim)
    with pytest.raises(SpaceDiffers, match="test-model") as caught, opened(tmp_path, space=other):
        pass
    assert "other-model" in str(caught.value)
    assert caught.value.reason == "EMB_SPACE_MISMATCH"
    with opened(tmp_path) as store:
        assert ask(store, seed=1).memory_id == ("a",)
    with opened(tmp_path) as store:
        assert ask(store, seed=1).memory_id == ("a",)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """S4-44."""
    with lmdb.open(str(tmp_path), max_dbs=64) as env, env.begin(write=True) as txn:
        meta = env.open_db(b"meta", txn=txn)
        txn.put(b"directory", record_codec.encode([record_codec.SCHEMA + 1, {"anything": "else"}]), db=meta)
    with pytest.raises(SchemaTooNew, match="newer"), opened(tmp_path):
        pass
    with pytest.raises(StartError):
        recorded_model(tmp_path)


def test_a_damaged_record_of_the_directory_is_named(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), max_dbs=64) as env, env.begin(write=True) as txn:
        txn.put(b"directory", b"\xc1", db=env.open_db(b"meta", txn=txn))
    with pytest.raises(DirectoryUnusable, match="backup"), opened(tmp_path):
        pass


def test_the_recorded_model_is_known_before_opening(tmp_path: Path) -> None:
    assert recorded_model(tmp_path) is None
    assert recorded_model(tmp_path / "missing") is None
    assert list(tmp_path.iterdir()) == []
    with opened(tmp_path):
        pass
    assert recorded_model(tmp_path) == "test-model"


def test_a_start_that_was_cut_short_begins_again(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    assert recorded_model(tmp_path) is None
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        store.close()
        with pytest.raises(Unavailable):
            store.page("p", Filter(), 0, 10, full=True)
        with pytest.raises(Unavailable):
            store.write("p", put_request([Entry(id="b")])).result(timeout=30)


def test_closing_finishes_the_queued_writes(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        futures = [store.write("p", put_request([Entry(id=f"m{number}")])) for number in range(300)]
        store.close()
        assert [future.result(timeout=0).seq for future in futures] == list(range(1, 301))
    with opened(tmp_path) as store:
        project = store.project("p")
        assert project is not None
        assert project.memory_count == 300


def test_a_directory_of_a_later_analyzer_is_refused_until_that_one_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its terms would no longer meet those of a query, and memories would be lost without a word."""
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
    with monkeypatch.context() as patch:
        patch.setattr(lookups, "ANALYZER_VERSION", ANALYZER_VERSION - 1)
        with pytest.raises(AnalyzerTooNew, match="or a later one") as caught, opened(tmp_path):
            pass
        with pytest.raises(StartError):
            recorded_model(tmp_path)
    assert (caught.value.recorded, caught.value.known) == (ANALYZER_VERSION, ANALYZER_VERSION - 1)
    assert str(tmp_path) in str(caught.value)
    with opened(tmp_path) as store:
        assert ask(store, terms=["tide"]).memory_id == ("a",)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files are read from /proc")
def test_a_new_directory_outlives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Acknowledged = durable: synced data in a file whose name is not synced would be gone."""
    synced: set[Path] = set()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    directory = tmp_path / "made" / "deeper"
    with opened(directory):
        assert {directory, directory.parent, tmp_path} <= synced
    synced.clear()
    with opened(directory):
        assert synced == set()
