"""One PostgreSQL for tests and for trying out: `python -m tests.postgresql.node .pg`, which `make pg` runs.

It listens on a Unix socket and nowhere else, in a directory that only its user may enter: that is its password. The
role `hummock` owns a database of its name and is no superuser.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.postgresql.account import Account, Unusable, server_account
from tests.postgresql.family import family, kill_all, signal_all
from tests.postgresql.lock import DirectoryInUse, locked
from tests.postgresql.programs import ProgramsMissing, find_programs

SUPERUSER: Final = "postgres"
ROLE: Final = "hummock"
"""Owns what the service uses, and makes the role that it works as."""
_PORT: Final = 5432
"""Port in the socket's name; nobody listens on it."""
_MOST_SOCKET_BYTES: Final = 103
"""Longest path of a socket on macOS; Linux allows four more bytes."""
_START_S: Final = 60
"""Seconds for a start, which may include recovery."""
_STOPS: Final = ((signal.SIGINT, 30), (signal.SIGQUIT, 10))
"""Fast, then immediate, each with its deadline in seconds."""
_HASTE: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_LINES_SHOWN: Final = 15


class NodeFailed(Exception):
    """A program of PostgreSQL's did not do its work; with the last lines of its log."""

    def __init__(self, what: str, log: Path) -> None:
        lines: list[str] = []
        with suppress(FileNotFoundError):  # somebody may have removed the directory
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        super().__init__("\n".join([f"{what}; the end of {log}:", *lines[-_LINES_SHOWN:]]))
        self.log = log


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A PostgreSQL that answers.

    Attributes:
        directory: Holds its data, its log and, where the path is short enough, its socket.
        sockets: The folder of its socket.
        postmaster: The process whose children are all the others.
    """

    directory: Path
    sockets: Path
    postmaster: subprocess.Popen[bytes]

    @property
    def dsn(self) -> str:
        """DSN of the superuser."""
        return self.dsn_of("postgres", SUPERUSER)

    def dsn_of(self, database: str, role: str = ROLE) -> str:
        """DSN of a database; the default role is the one the service connects as."""
        return f"postgresql://{role}@/{quote(database)}?host={quote(str(self.sockets), safe='')}&port={_PORT}"

    def create_database(self, name: str, template: str = "template1") -> str:
        """A copy of the template, which nobody may be connected to; the copy's DSN, for its owner ROLE."""
        create = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}")
        self._execute(create.format(*map(sql.Identifier, (name, ROLE, template))))
        return self.dsn_of(name)

    def drop_database(self, name: str) -> None:
        """Drops a database, if it is there, and ends who is connected to it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def kill(self) -> None:
        """Ends all its processes as a power cut would."""
        kill_all(family(self.postmaster.pid))
        self.postmaster.wait()  # lets the operating system forget it

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_node(directory: Path, *, durable: bool = True) -> Iterator[Node]:
    """A PostgreSQL with the directory's data, which is made where there is none; stopped at exit.

    Args:
        directory: Made if it is not there; from then on only the server's user and root may enter it.
        durable: Whether it waits for the disk. What it acknowledges otherwise is lost when the machine goes down,
            though not when its processes are killed.

    Raises:
        ProgramsMissing: There is no PostgreSQL.
        Unusable: The directory is closed to the server's user, or holds something else.
        DirectoryInUse: Another one runs in it.
        NodeFailed: It did not start.
    """
    account = server_account()
    programs = find_programs(account)
    directory = directory.absolute()
    account.own(directory)
    with (
        (directory / "log").open("a", encoding="utf-8") as log,
        locked(directory) as lock,
        _socket_folder(directory, account) as sockets,
    ):
        _make_data(account, programs, directory, log, durable=durable)
        settings = {"listen_addresses": "", "unix_socket_directories": str(sockets), "log_timezone": "UTC"}
        settings |= {} if durable else _HASTE
        command: list[str | Path] = [programs / "postgres", "-D", directory / "data", "-p", str(_PORT)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        postmaster = account.start(command, directory, log, keep=[lock.fileno()])
        with _stopped_at_exit(postmaster):
            node = Node(directory=directory, sockets=sockets, postmaster=postmaster)
            _await_answer(node)
            _provide_role(node)
            yield node


@contextmanager
def _socket_folder(directory: Path, account: Account) -> Iterator[Path]:
    """The directory itself, or one of a shorter path that goes at exit."""
    if len(f"{directory}/.s.PGSQL.{_PORT}".encode()) <= _MOST_SOCKET_BYTES:
        yield directory
        return
    with TemporaryDirectory(prefix="pg-", dir="/tmp") as name:
        account.own(Path(name))
        yield Path(name)


def _make_data(account: Account, programs: Path, directory: Path, log: IO[str], *, durable: bool) -> None:
    """Makes `data`, unless it is there. It gets its name when it is whole: a killed attempt counts for nothing."""
    if (directory / "data").exists():
        return
    unfinished = directory / "data.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    command: list[str | Path] = [
        programs / "initdb",
        "-D",
        unfinished,
        "-U",
        SUPERUSER,
        "--encoding=UTF8",
        "--locale=C",
    ]
    command += ["--data-checksums", "--auth-local=trust", "--auth-host=reject", *([] if durable else ["--no-sync"])]
    if account.run(command, directory, log) != 0:
        raise NodeFailed("initdb could not make the data directory", Path(log.name))
    unfinished.rename(directory / "data")


@contextmanager
def _stopped_at_exit(postmaster: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stops the server and waits until nothing of it is left; another Ctrl-C meanwhile means the next, harder stop."""
    try:
        yield
    finally:
        signal_all(family(postmaster.pid), signal.SIGCONT)  # one that is frozen hears nothing
        interruption: KeyboardInterrupt | None = None
        for number, patience_s in _STOPS:
            postmaster.send_signal(number)
            try:
                postmaster.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                continue
            except KeyboardInterrupt as again:
                interruption = again
        kill_all(family(postmaster.pid))
        postmaster.wait()
        if interruption is not None:
            raise interruption


def _await_answer(node: Node) -> None:
    log = node.directory / "log"
    until = time.monotonic() + _START_S
    while True:
        if node.postmaster.poll() is not None:
            raise NodeFailed("PostgreSQL did not start", log)
        try:
            psycopg.connect(node.dsn, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            if time.monotonic() > until:
                raise NodeFailed(f"PostgreSQL did not answer within {_START_S} s", log) from error
        time.sleep(0.05)


def _provide_role(node: Node) -> None:
    """Creates ROLE and its database, unless they are there."""
    with psycopg.connect(node.dsn, autocommit=True) as connection:
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE]).rowcount:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(sql.Identifier(ROLE)))
        is_there = connection.execute("SELECT FROM pg_database WHERE datname = %s", [ROLE]).rowcount
    if not is_there:
        node.create_database(ROLE)


def main() -> int:
    """Runs a node until it is interrupted; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args().directory
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a shell has its background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    try:
        with running_node(directory) as node:
            print(f"PostgreSQL runs in {node.directory}; Ctrl-C stops it.\n", flush=True)
            print(f"    hummock serve --store '{node.dsn_of(ROLE)}'\n", flush=True)
            node.postmaster.wait()
            raise NodeFailed("PostgreSQL has ended", node.directory / "log")
    except (ProgramsMissing, Unusable, DirectoryInUse, NodeFailed) as failure:
        raise SystemExit(f"error: {failure}") from failure
    except KeyboardInterrupt:
        print("stopped", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
