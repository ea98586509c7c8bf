"""Damage below the store: its file is cut, emptied, moved, replaced, or is none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import lmdb
import pytest

from hummock.store import recorded_model
from hummock.store.errors import DataFileCut, DirectoryInUse, DirectoryReplaced, DirectoryUnusable
from hummock.store.lmdb.files import DATA_FILE, LOCK_FILE, DataFile, require_whole
from hummock.store.write.writer import Writer
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.strategies import Entry

PAGE = 4096


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A directory that holds memories."""
    with opened(tmp_path) as store:
        for number in range(40):
            put(store, "p", Entry(id=f"m{number}", words=("x" * 3000,)))
    return tmp_path


@pytest.mark.parametrize("pages", [3, 5, 20, -2, -1])
def test_a_file_that_is_cut_short_is_refused_before_it_is_mapped(made: Path, pages: int) -> None:
    """Mapped, it would end the process without a word."""
    data = made / DATA_FILE
    whole = data.read_bytes()
    size = pages * PAGE + (0 if pages > 0 else len(whole))
    os.truncate(data, size)
    with pytest.raises(DirectoryUnusable, match=f"it has {size} bytes of .*backup"), opened(made):
        pass
    with pytest.raises(DirectoryUnusable, match="cut short"):
        recorded_model(made)
    data.write_bytes(whole)
    with opened(made) as store:
        assert len(ask(store, seed=1, pool=100)) == 40


@pytest.mark.long
def test_a_file_that_ends_before_pages_that_nobody_uses_is_whole(tmp_path: Path) -> None:
    """LMDB never writes pages that one transaction takes and gives back: its files may end before them."""
    short, random = 0, Random(7)  # noqa: S311 - a seed, not a secret
    with lmdb.open(str(tmp_path), max_dbs=2, map_size=1 << 28, lib_version=0) as env:
        table = env.open_db(b"t")
        for _ in range(300):
            with env.begin(write=True) as txn:
                names = [str(random.randrange(400)).encode() for _ in range(random.randrange(1, 40))]
                for name in names:
                    txn.put(name, bytes(random.randrange(1, 20_000)), db=table)
                for name in names[: random.randrange(len(names) + 1)]:
                    txn.delete(name, db=table)
            short += (tmp_path / DATA_FILE).stat().st_size < (env.info()["last_pgno"] + 1) * PAGE
            require_whole(tmp_path)
    assert short > 10


def test_a_file_that_is_cut_short_while_it_is_used_is_not_read_any_more(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who reads at the very moment of the cut ends with the process: here nobody does, not even the writer at rest.
    monkeypatch.setattr(Writer, "_rest", lambda writer, work: False)
    with opened(made) as store:
        assert len(ask(store, seed=1, pool=100)) == 40
        os.truncate(made / DATA_FILE, 3 * PAGE)
        with pytest.raises(DataFileCut, match="restore the directory from a backup"):
            store.get("p", ["m1"], 0, full=True)
        with pytest.raises(DataFileCut):
            put(store, "p", Entry(id="more"))
        # Zeros in the place of what was lost mend nothing.
        os.truncate(made / DATA_FILE, 1 << 22)
        with pytest.raises(DataFileCut):
            store.get("p", ["m1"], 0, full=True)


def test_a_file_that_grows_while_two_threads_ask_for_its_size_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first learns its size, then it grows and the second notes that, then the first looks at what it learnt."""
    file = DataFile(tmp_path, is_read_only=False)
    fstat, asked = os.fstat, 0

    def slow_fstat(descriptor: int) -> os.stat_result:
        nonlocal asked
        asked += 1
        learnt = fstat(descriptor)
        if asked == 1:
            os.truncate(tmp_path / DATA_FILE, learnt.st_size + PAGE)
            file.require_size()
        return learnt

    monkeypatch.setattr(os, "fstat", slow_fstat)
    file.require_size()
    file.require_size()
    assert asked == 3
    os.truncate(tmp_path / DATA_FILE, 0)
    with pytest.raises(DataFileCut):
        file.require_size()
    file.release()


@pytest.mark.parametrize("kind", ["a pipe", "a directory", "a socket"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / DATA_FILE
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a directory":
        path.mkdir()
    else:
        os.mknod(path, 0o600 | 0o140000)
    for attempt in (lambda: opened(tmp_path).__enter__(), lambda: recorded_model(tmp_path)):
        with pytest.raises(DirectoryUnusable, match=f"{DATA_FILE} is {kind}"):
            attempt()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_directory_that_has_lost_its_file_does_not_start_as_a_new_one(made: Path, is_there: bool) -> None:
    whole = (made / DATA_FILE).read_bytes()
    os.truncate(made / DATA_FILE, 0) if is_there else (made / DATA_FILE).unlink()
    for _ in range(2):
        with pytest.raises(DirectoryUnusable, match=f"it has held memories, .*{'empty' if is_there else 'missing'}"):
            opened(made).__enter__()
    assert is_there == (made / DATA_FILE).exists()
    (made / DATA_FILE).write_bytes(whole)
    with opened(made) as store:
        assert len(ask(store, seed=1, pool=100)) == 40


def test_a_first_start_that_was_cut_short_begins_again(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("12345\n")
    (tmp_path / DATA_FILE).touch()
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))


def test_nothing_is_written_to_a_file_that_is_not_at_its_path(made: Path) -> None:
    data, away = made / DATA_FILE, made / "away"
    with opened(made) as store:
        for replace in (lambda: None, lambda: shutil.copy(away, data), data.mkdir):
            data.rename(away)
            replace()
            with pytest.raises(DirectoryReplaced, match=r"data\.mdb was moved, removed or replaced"):
                put(store, "p", Entry(id="lost"))
            assert store.get("p", ["m1", "lost"], 0, full=True)[0] is not None
            shutil.rmtree(data, ignore_errors=True)
            away.rename(data)
            put(store, "p", Entry(id="kept"))
    with opened(made) as store:
        assert ids(ask(store, seed=1, pool=100)) == {f"m{number}" for number in range(40)} | {"kept"}


def test_a_directory_that_is_gone_is_said_to_be(made: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = tmp_path_factory.mktemp("away") / "data"
    with opened(made) as store:
        made.rename(away)
        with pytest.raises(DirectoryReplaced):
            put(store, "p", Entry(id="lost"))
        away.rename(made)
        put(store, "p", Entry(id="kept"))


@pytest.mark.long
def test_a_lock_that_is_removed_lets_nobody_write(made: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.store.opening import opened\n"
        "with opened(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        (made / LOCK_FILE).unlink()
        with pytest.raises(DirectoryInUse, match="its lock was removed"):
            opened(made).__enter__()
        holder.send_signal(signal.SIGKILL)
        holder.wait(30)
    with opened(made) as store:
        (made / LOCK_FILE).unlink()
        with pytest.raises(DirectoryReplaced, match="lock was moved"):
            put(store, "p", Entry(id="lost"))
