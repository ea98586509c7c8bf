from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest

from tests.postgresql.account import Unusable
from tests.postgresql.cluster import MEMBERS, Cluster, PortInUse, running_cluster
from tests.postgresql.drills import play
from tests.postgresql.fixtures import do_without
from tests.postgresql.lock import DirectoryInUse
from tests.postgresql.node import ROLE
from tests.postgresql.programs import ProgramsMissing
from tests.postgresql.services import two_services
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import connected

pytestmark = [pytest.mark.long, pytest.mark.cluster]

MOST_GAP_S = 30


def left_of(directory: Path) -> list[str]:
    """Command lines of the processes that have to do with the directory, but for this one."""
    commands = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    return [command for command in commands if f"{directory}/" in command]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with TemporaryDirectory(prefix="pg-") as name:
        try:
            with running_cluster(Path(name)) as started:
                yield started
        except ProgramsMissing as missing:
            do_without(missing)
        assert left_of(Path(name)) == []


@pytest.fixture(autouse=True)
def healthy(cluster: Cluster) -> None:
    """Each test finds it so, whatever the one before has done."""
    for number, member in enumerate(MEMBERS):
        cluster.start_etcd(number)
        cluster.start(member)
        cluster.thaw(member)
    cluster.await_healthy(timeout_s=120)


def write(cluster: Cluster, content: str) -> None:
    with psycopg.connect(cluster.dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (content text)")
        connection.execute("INSERT INTO notes VALUES (%s)", [content])


def read(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        return {content for (content,) in connection.execute("SELECT content FROM notes")}


def await_content(cluster: Cluster, member: str, content: str) -> None:
    """Returns when a member that has yet to follow, and to start for that, has it."""

    def is_there() -> bool:
        with suppress(psycopg.OperationalError):
            return content in read(cluster.dsn_of(ROLE, ROLE, member))
        return False

    cluster.await_that("apart", is_there, 60)


def port_of_writes(cluster: Cluster) -> int:
    with psycopg.connect(cluster.dsn) as connection:
        return connection.info.port


def test_one_dsn_reaches_whoever_takes_writes(cluster: Cluster) -> None:
    leader = cluster.leader()
    assert leader is not None
    assert port_of_writes(cluster) == cluster.members[leader].port
    for member in {*MEMBERS} - {leader}:
        with psycopg.connect(cluster.dsn_of(ROLE, ROLE, member)) as connection:
            assert connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)


def test_nobody_comes_in_without_the_password(cluster: Cluster) -> None:
    port = cluster.members["pg1"].port
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(f"postgresql://{ROLE}@127.0.0.1:{port}/{ROLE}?passfile=/dev/null")


def test_what_was_acknowledged_outlives_the_leader_that_is_killed(cluster: Cluster) -> None:
    leader = cluster.await_leader()
    write(cluster, "before the kill")
    killed = time.monotonic()
    cluster.kill(leader)
    assert cluster.await_leader(other_than=leader) != leader
    write(cluster, "behind the kill")
    assert time.monotonic() - killed < MOST_GAP_S
    cluster.start(leader)
    cluster.await_healthy(timeout_s=120)
    await_content(cluster, leader, "behind the kill")
    assert {"before the kill", "behind the kill"} <= read(cluster.dsn)


def test_a_switchover_has_another_lead(cluster: Cluster) -> None:
    leader = cluster.await_leader()
    follower = next(one.name for one in cluster.see() if one.role == "sync_standby")
    assert cluster.switchover(follower) == follower
    assert port_of_writes(cluster) == cluster.members[follower].port != cluster.members[leader].port


def test_a_leader_whose_postgresql_dies_starts_it_again(cluster: Cluster) -> None:
    leader = cluster.await_leader()
    write(cluster, "before it died")
    cluster.kill_postmaster(leader)
    cluster.await_healthy(timeout_s=120)
    assert "before it died" in read(cluster.dsn)


def test_a_frozen_leader_is_succeeded_and_follows_when_it_goes_on(cluster: Cluster) -> None:
    leader = cluster.await_leader()
    cluster.freeze(leader)
    cluster.await_leader(other_than=leader)
    write(cluster, "while it was frozen")
    cluster.thaw(leader)
    await_content(cluster, leader, "while it was frozen")


def test_two_of_three_etcd_are_enough(cluster: Cluster) -> None:
    leader = cluster.await_leader()
    cluster.kill_etcd(0)
    write(cluster, "with two")
    assert cluster.await_leader() == leader


def test_two_services_lose_nothing_when_the_leader_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    with two_services(cluster.dsn, tmp_path) as services:
        report, _ = play(cluster, services, "kill-leader", 1)
    assert (report.lost, report.doubled, report.stale, report.hangs, report.in_flight) == (0, 0, 0, 0, 0)
    assert report.errors.keys() <= {"UNAVAILABLE", "DEADLINE_EXCEEDED"}


def test_a_directory_in_use_is_refused_by_name(cluster: Cluster) -> None:
    with (
        pytest.raises(DirectoryInUse, match=f"{cluster.directory} is in use by process"),
        running_cluster(cluster.directory),
    ):
        pass


def test_a_port_in_use_is_refused_by_name(cluster: Cluster, directory: Path) -> None:
    port = cluster.members["pg1"].port
    with pytest.raises(PortInUse, match=f"port {port} of"), running_cluster(directory, first_port=port):
        pass


def test_the_command_stops_all_of_it_and_starts_it_again_where_it_was(directory: Path) -> None:
    command = [sys.executable, "-m", "tests.postgresql.cluster", str(directory)]
    with subprocess.Popen(command) as popen:  # interrupted while the first data are made
        while not list(directory.glob("pg*/data")):
            time.sleep(0.1)
        popen.send_signal(signal.SIGINT)
    assert left_of(directory) == []
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
            assert popen.stdout is not None
            said = [popen.stdout.readline().strip() for _ in range(11)]
            dsn = said[7].removeprefix("hummock serve --store '").split("'")[0]
            one, two = (line.split()[2] for line in said[9:11])
            with connected(one) as first, connected(two) as second:
                learn(first, "p", note(f"the tide of {number.name}"))
                told = contents(ask(second, "p", "tide"))
            with psycopg.connect(dsn) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS notes (content text)")
                connection.execute("INSERT INTO notes VALUES (%s)", [number.name])
                found = {content for (content,) in connection.execute("SELECT content FROM notes")}
            popen.send_signal(number)
            assert popen.wait() == 0
        assert len(told) == (1 if number is signal.SIGINT else 2)
        assert left_of(directory) == []
    assert found == {"SIGINT", "SIGTERM"}
    with pytest.raises(Unusable, match="has a cluster from port"), running_cluster(directory, first_port=1000):
        pass
