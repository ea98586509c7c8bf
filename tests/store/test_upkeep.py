"""Problems that the store notices while it is open."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest

from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.files import DATA_FILE
from hummock.store.lmdb.room import HELD_S, READERS_S
from hummock.store.write import writer
from tests.fakes import FakeClock
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import Entry


@pytest.fixture(autouse=True)
def looks_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the store from looking of its own accord; tests tell it when."""
    monkeypatch.setattr(writer, "_WATCH_S", 3600.0)


READS = """
import sys, lmdb
env = lmdb.open(sys.argv[1], readonly=True, max_dbs=64, lib_version=0)
txn = env.begin()
print("reads", flush=True)
sys.stdin.read()
"""


@contextmanager
def reading(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads from the database, as a tool that inspects it does, and does not end."""
    with subprocess.Popen(
        [sys.executable, "-c", READS, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reads\n"
        yield process
        process.kill()


def grown(directory: Path, *, kills: bool) -> int:
    """Bytes by which the file grows while a memory is rewritten often and a reader stays, or is killed."""
    clock = FakeClock()
    with opened(directory, clock=clock) as store:
        put(store, "p", Entry(id="a", words=("x" * 9000,)))
        before = (directory / DATA_FILE).stat().st_size
        with reading(directory) as process:
            if kills:
                process.send_signal(signal.SIGKILL)
                process.wait(30)
            for number in range(120):
                clock.move(1.0)
                put(store, "p", Entry(id="a", words=("x" * 9000, str(number))))
        return (directory / DATA_FILE).stat().st_size - before


@pytest.mark.long
def test_what_a_killed_reader_held_is_free_soon(tmp_path: Path) -> None:
    """S4-02: until a restart no page was used again."""
    assert 4 * grown(tmp_path / "killed", kills=True) < grown(tmp_path / "stays", kills=False)


def test_the_process_that_keeps_pages_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store, caplog.at_level(logging.WARNING):
        put(store, "p", Entry(id="a"))
        with reading(tmp_path) as process:
            put(store, "p", Entry(id="b"), Entry(id="c"))
            store._health.look()
            for _ in range(int(HELD_S / READERS_S)):
                clock.move(READERS_S)
                assert caplog.text == ""
                store._health.look()
            clock.move(READERS_S)
            store._health.look()
            assert f"process {process.pid} has read from the database for 60 s and 1 writes" in caplog.text
        caplog.clear()
        with store._engine.reading():
            for _ in range(8):
                clock.move(READERS_S)
                store._health.look()
        assert f"process {os.getpid()} (this service) has read" in caplog.text


def test_a_file_that_is_gone_is_trouble_until_it_is_back_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as store:
        assert store.trouble() == ""
        (tmp_path / DATA_FILE).rename(tmp_path / "away")
        for _ in range(3):
            store._health.look()
            assert "data.mdb was moved" in store.trouble()
            assert store.status().write_fault == store.trouble()
        assert caplog.text.count("nothing is written any more") == 1
        (tmp_path / "away").rename(tmp_path / DATA_FILE)
        store._health.look()
        assert (store.trouble(), store.status().write_fault) == ("", "")
        assert "as it was" in caplog.text


@pytest.mark.parametrize("what", ["clear_dead_readers", "oldest_reader"])
def test_a_look_at_readers_that_fails_stops_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """The writer's thread looks, here at the write after the first ten seconds."""

    def failing(_: Environment) -> None:
        raise lmdb.BadRslotError("mdb_reader_check")

    monkeypatch.setattr(writer, "_WATCH_S", 0.001)
    monkeypatch.setattr(Environment, what, failing)
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store, caplog.at_level(logging.WARNING):
        clock.move(READERS_S)
        while "table of readers could not be read" not in caplog.text:
            put(store, "p", Entry(id="a"))
        put(store, "p", Entry(id="b"))
        assert store.trouble() == ""
        assert store.get("p", ["b"], 0, full=False)[0] is not None
