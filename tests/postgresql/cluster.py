"""Three PostgreSQL under Patroni with three etcd: `python -m tests.postgresql.cluster`, which `make pg-cluster` runs.

All of it listens on loopback. One leads and takes writes; of the two that follow it one is synchronous, so that what
was acknowledged outlives the leader. Who leads is in etcd. Run as a command it has two services over it besides.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import SystemRandom
from typing import Final
from urllib.parse import quote

import psycopg
from psycopg import sql

from hummock import models
from tests.postgresql.account import Account, Unusable, server_account
from tests.postgresql.etcd import Etcd, find_etcd, initial_cluster, make_certificate
from tests.postgresql.interpreter import find_python
from tests.postgresql.lock import DirectoryInUse, locked
from tests.postgresql.member import Member, Passwords, Seen
from tests.postgresql.node import ROLE, SUPERUSER
from tests.postgresql.programs import ProgramsMissing, find_programs
from tests.postgresql.services import Service, ServiceFailed, two_services

MEMBERS: Final = ("pg1", "pg2", "pg3")
_ETCDS: Final = ("etcd1", "etcd2", "etcd3")
_STEP: Final = 10
"""Between the ports of one kind and the next: PostgreSQL, Patroni, etcd for Patroni, etcd for etcd, services."""
_KINDS: Final = 5
_FREE_PORTS: Final = range(20000, 30000, 100)
"""Below those that the system gives to connections."""
_CONNECT_S: Final = 3
"""A member that is frozen accepts a connection and says nothing."""
_HEALTHY_S: Final = 60
_LEADER_S: Final = 60
_LINES_SHOWN: Final = 12


class ClusterFailed(Exception):
    """The cluster did not do what was asked of it."""


class PortInUse(Exception):
    """Somebody else listens where the cluster is to."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} of 127.0.0.1 is in use; stop who listens there, or name another --first-port")
        self.port = port


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that was healthy when it was handed over; what breaks it comes from its holder.

    Attributes:
        directory: Holds all data, logs and passwords.
        password_file: What the DSNs name instead of passwords.
        members: By name.
        service_ports: For services over it.
    """

    directory: Path
    password_file: Path
    members: dict[str, Member]
    etcds: Sequence[Etcd]
    service_ports: Sequence[int]

    @property
    def dsn(self) -> str:
        """DSN of the service's database, at the member that takes writes."""
        return self.dsn_of(ROLE)

    def dsn_of(self, database: str, role: str = ROLE, *members: str) -> str:
        """DSN of a database at the given members, or at all; with several, it connects to the one that takes writes."""
        hosts = ",".join(f"127.0.0.1:{self.members[name].port}" for name in members or MEMBERS)
        attributes = "read-write" if len(members) != 1 else "any"
        passwords = quote(str(self.password_file), safe="")
        return (
            f"postgresql://{role}@{hosts}/{quote(database)}?target_session_attrs={attributes}"
            f"&connect_timeout={_CONNECT_S}&passfile={passwords}"
        )

    def leader(self) -> str | None:
        """Name of the member that takes writes now, or None."""
        return next((name for name, one in self.members.items() if one.leads() and self._takes_writes(name)), None)

    def see(self) -> list[Seen]:
        """All members, as the first that answers knows them."""
        return next(filter(None, (member.see() for member in self.members.values())), [])

    def is_healthy(self) -> bool:
        """True if one member leads and all others follow it, one of them synchronously.

        Patroni says it, and the leader: a member that is frozen is to Patroni what it was until its lease ends.
        """
        seen = sorted((one.role, one.state) for one in self.see())
        if seen != [("leader", "running"), ("replica", "streaming"), ("sync_standby", "streaming")]:
            return False
        try:
            with psycopg.connect(self.dsn_of("postgres", SUPERUSER)) as connection:
                states = connection.execute("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")
                return sorted(state for (state,) in states) == ["async", "sync"]
        except psycopg.OperationalError:
            return False

    def await_healthy(self, timeout_s: float = _HEALTHY_S) -> None:
        """Returns when it is healthy. Raises: ClusterFailed."""
        self.await_that("not healthy", self.is_healthy, timeout_s)

    def await_leader(self, other_than: str | None = None, timeout_s: float = _LEADER_S) -> str:
        """Waits for a leader other than the one named and returns its name. Raises: ClusterFailed."""
        found: list[str] = []

        def is_found() -> bool:
            leader = self.leader()
            found[:] = [leader] if leader not in (None, other_than) else []
            return bool(found)

        self.await_that("without a leader", is_found, timeout_s)
        return found[0]

    def await_that(self, lack: str, is_reached: Callable[[], bool], timeout_s: float) -> None:
        """Returns when it is reached. Raises: ClusterFailed, with the lack by name and what the logs say last."""
        until = time.monotonic() + timeout_s
        while not is_reached():
            if time.monotonic() > until:
                seen = ", ".join(f"{one.name} {one.role} {one.state}" for one in self.see()) or "nobody answers"
                raise ClusterFailed(f"the cluster is {lack} after {timeout_s:.0f} s: {seen}\n{self._logs()}")
            time.sleep(0.1)

    def switchover(self, candidate: str | None = None) -> str:
        """Makes another member the leader, in order; returns its name. Raises: ClusterFailed."""
        leader = self.await_leader()
        status, said = self.members[leader].switch_over(leader, candidate)
        if status != 200:
            raise ClusterFailed(f"Patroni did not switch over from {leader}: {status} {said}")
        return self.await_leader(other_than=leader)

    def kill(self, member: str) -> None:
        """Ends a member's Patroni and PostgreSQL as a power cut would."""
        self.members[member].kill()

    def kill_postmaster(self, member: str) -> None:
        """Ends a member's PostgreSQL alone, which its Patroni then starts again."""
        self.members[member].kill_postmaster()

    def freeze(self, member: str) -> None:
        """Stops a member where it is, as a machine does that pauses."""
        self.members[member].freeze()

    def thaw(self, member: str) -> None:
        """Lets a frozen member go on, which knows nothing of the time between."""
        self.members[member].thaw()

    def start(self, member: str) -> None:
        """Starts a member that was killed; it is not awaited."""
        self.members[member].start()

    def kill_etcd(self, number: int) -> None:
        """Ends one etcd, counted from 0, as a power cut would."""
        self.etcds[number].kill()

    def start_etcd(self, number: int) -> None:
        """Starts one etcd that was killed; it is not awaited."""
        self.etcds[number].start()

    def _takes_writes(self, member: str) -> bool:
        # Who has the lock may still be promoted; and who was frozen takes writes for a moment when the lock is lost.
        try:
            with psycopg.connect(self.dsn_of("postgres", SUPERUSER, member)) as connection:
                return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.OperationalError:
            return False

    def _logs(self) -> str:
        said = []
        for log in (*(one.log for one in self.members.values()), *(one.directory / "log" for one in self.etcds)):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
            said += [f"the end of {log}:", *lines[-_LINES_SHOWN:]]
        return "\n".join(said)


@contextmanager
def running_cluster(directory: Path, first_port: int | None = None) -> Iterator[Cluster]:
    """A healthy cluster with the directory's data, which are made where there are none; all of it is stopped at exit.

    Args:
        directory: Made if it is not there; from then on only the servers' user and root may enter it.
        first_port: PostgreSQL's, of the first member. By default the one that the directory had, or a free one.

    Raises:
        ProgramsMissing: PostgreSQL, Patroni or etcd is not installed.
        Unusable: The servers' user may not enter the directory.
        DirectoryInUse: Another cluster runs in it.
        PortInUse: Somebody else listens on one of the ports.
        ClusterFailed: It did not become healthy.
    """
    account = server_account()
    directory = directory.absolute()
    with ExitStack() as stack:
        etcd, python, programs = find_etcd(), find_python(account), find_programs(account)
        account.own(directory)
        lock = stack.enter_context(locked(directory)).fileno()
        ports = _ports(directory, first_port)
        passwords = _passwords(directory)
        certificate = make_certificate(account, directory / "tls")
        etcds = [
            Etcd(
                account=account,
                program=etcd,
                certificate=certificate,
                directory=directory / name,
                name=name,
                client_port=ports[2][number],
                peer_port=ports[3][number],
                cluster=initial_cluster(_ETCDS, ports[3]),
                lock=lock,
            )
            for number, name in enumerate(_ETCDS)
        ]
        members = {
            name: Member(
                account=account,
                python=python,
                programs=programs,
                certificate=certificate,
                passwords=passwords,
                directory=directory / name,
                name=name,
                port=ports[0][number],
                api_port=ports[1][number],
                etcd_ports=ports[2],
                lock=lock,
            )
            for number, name in enumerate(MEMBERS)
        }
        cluster = Cluster(
            directory=directory,
            password_file=_password_file(directory, passwords),
            members=members,
            etcds=etcds,
            service_ports=ports[4],
        )
        stack.callback(_stop, cluster)
        whole = directory / "whole"
        if not whole.exists():
            _forget_attempt(directory)
        _start(cluster)
        _provide_database(cluster, passwords)
        whole.touch()
        yield cluster


def _start(cluster: Cluster) -> None:
    for etcd in cluster.etcds:
        etcd.start()
    # Patroni that finds no etcd looks again after 5 s.
    cluster.await_that("without etcd", lambda: all(etcd.is_healthy() for etcd in cluster.etcds), _HEALTHY_S)
    for name in MEMBERS:
        cluster.start(name)
    cluster.await_healthy()


def _forget_attempt(directory: Path) -> None:
    """Removes what an interrupted start left: etcd waits for ever for the member that was to make the data."""
    for name in (*_ETCDS, *MEMBERS):
        shutil.rmtree(directory / name, ignore_errors=True)


def _stop(cluster: Cluster) -> None:
    """Stops everything. Another interruption meanwhile has the rest stopped by force."""
    try:
        for member in cluster.members.values():
            member.begin_stop()
        for member in cluster.members.values():
            member.stop()
        for etcd in cluster.etcds:
            etcd.stop()
    finally:
        for member in cluster.members.values():
            member.kill()
        for etcd in cluster.etcds:
            etcd.kill()


def _ports(directory: Path, first_port: int | None) -> list[list[int]]:
    """Three each for PostgreSQL, Patroni, etcd's clients, etcd's peers and services; all of them are free.

    A directory keeps its ports: etcd has written them into its data.
    """
    noted = directory / "first-port"
    if noted.exists():
        ports = _counted(int(noted.read_text(encoding="utf-8")))
        if first_port not in (None, ports[0][0]):
            raise Unusable(f"{directory} has a cluster from port {ports[0][0]} on; name another directory")
    elif first_port is not None:
        ports = _counted(first_port)
    else:
        ports = _free_ports()
    taken = _taken(ports)
    if taken is not None:
        raise PortInUse(taken)
    noted.write_text(str(ports[0][0]), encoding="utf-8")
    return ports


def _counted(first_port: int) -> list[list[int]]:
    return [[first_port + _STEP * kind + number for number in range(len(MEMBERS))] for kind in range(_KINDS)]


def _free_ports() -> list[list[int]]:
    for first_port in SystemRandom().sample(_FREE_PORTS, len(_FREE_PORTS)):
        ports = _counted(first_port)
        if _taken(ports) is None:
            return ports
    raise PortInUse(_FREE_PORTS[0])


def _taken(ports: list[list[int]]) -> int | None:
    """The first on which somebody listens."""
    for port in (one for kind in ports for one in kind):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was closed lately counts as free
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                return port
    return None


def _passwords(directory: Path) -> Passwords:
    """Passwords of the directory; made at random the first time."""
    file = directory / "passwords.json"
    if not file.exists():
        names = Passwords.__dataclass_fields__
        made = Passwords(**{name: secrets.token_urlsafe(24) for name in names})
        _caller().write(file, json.dumps(asdict(made)))
    return Passwords(**json.loads(file.read_text(encoding="utf-8")))


def _password_file(directory: Path, passwords: Passwords) -> Path:
    """Writes a password file for libpq, so that no password stands in a DSN."""
    file = directory / "pgpass"
    lines = [f"127.0.0.1:*:*:{ROLE}:{passwords.service}", f"127.0.0.1:*:*:{SUPERUSER}:{passwords.superuser}"]
    _caller().write(file, "\n".join(lines) + "\n")
    return file


def _caller() -> Account:
    return Account(name="the caller")


def _provide_database(cluster: Cluster, passwords: Passwords) -> None:
    """Creates ROLE and its database, unless they are there."""
    with psycopg.connect(cluster.dsn_of("postgres", SUPERUSER), autocommit=True) as connection:
        role = sql.Identifier(ROLE)
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE]).rowcount:
            create = sql.SQL("CREATE ROLE {} LOGIN CREATEROLE PASSWORD {}")
            connection.execute(create.format(role, sql.Literal(passwords.service)))
        if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [ROLE]).rowcount:
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))


@contextmanager
def _services_over(cluster: Cluster) -> Iterator[Sequence[Service]]:
    """Two, with the default model where it is: below HUMMOCK_MODELS. Their files lie alongside the cluster's data."""
    directory = cluster.directory / "services"
    directory.mkdir(mode=0o700, exist_ok=True)
    named = os.environ.get("HUMMOCK_MODELS")
    models_dir = Path(named).absolute() if named else None
    # A database keeps the model that it was first opened with.
    has_toy = (directory / "models").exists()
    if has_toy or models_dir is None or models.that_will_do(models.AUTO_ORDER, models_dir) is None:
        print("the services have the toy model: HUMMOCK_MODELS names no other that can be used here", flush=True)
        models_dir = None
    with two_services(cluster.dsn, directory, models_dir, cluster.service_ports[:2]) as services:
        yield services


def _introduce(cluster: Cluster, services: Sequence[Service]) -> None:
    for one in sorted(cluster.see(), key=lambda seen: seen.name):
        print(f"    {one.name}  {one.role:12}  {cluster.dsn_of(ROLE, ROLE, one.name)}", flush=True)
    print(f"\n    hummock serve --store '{cluster.dsn}'    # one more\n", flush=True)
    for service in services:
        print(f"    service {service.name}  {service.target}", flush=True)
    first, second = services
    print(f"\n    hummock learn --target {first.target} -p demo 'the tide is high at noon'", flush=True)
    print(f"    hummock recall --target {second.target} -p demo tide\n", flush=True)


def main() -> int:
    """Runs a cluster until it is interrupted; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--first-port", type=int)
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a shell has its background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    began = time.monotonic()
    try:
        with running_cluster(arguments.directory, arguments.first_port) as cluster, _services_over(cluster) as services:
            print(f"Healthy after {time.monotonic() - began:.0f} s; Ctrl-C stops all of it.\n", flush=True)
            _introduce(cluster, services)
            signal.pause()
    except (ProgramsMissing, Unusable, DirectoryInUse, PortInUse, ClusterFailed, ServiceFailed) as failure:
        raise SystemExit(f"error: {failure}") from failure
    except KeyboardInterrupt:
        print("stopped", flush=True)
    return 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # who read along may have gone
        raise SystemExit(main())
