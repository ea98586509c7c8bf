"""Breaks a cluster under two services that many write to: `python -m tests.postgresql.drills`, `make drills`.

Each drill breaks one thing while clients write and recall, mends it, waits until all is healthy and each service takes
writes, and compares what the services tell with what the clients were told. It says so in a line of JSON.

With GRPC_ENABLE_FORK_SUPPORT=0 in the environment, as `make drills` has it: what gRPC does at a fork amid so many calls
ends the programs that are started then.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.postgresql.cluster import Cluster, ClusterFailed, running_cluster
from tests.postgresql.load import Faults, Ledger, NothingFlows, check, under_load
from tests.postgresql.programs import ProgramsMissing
from tests.postgresql.services import LOG, Service, two_services

_FLOW: Final = 25
"""Writes that each service acknowledges before a drill and after it."""
_HEALTHY_S: Final = 120
_FAULTS_SHOWN: Final = 20
_STEADY_GAP_S: Final = 5.0
"""A call waits 2 s for a server that says nothing, after another that does at worst; the rest is a busy machine's."""
_EXPECTED: Final = ("UNAVAILABLE", "DEADLINE_EXCEEDED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Results of a drill.

    Attributes:
        in_flight: Requests that were given up; they may have taken effect or not.
        lost: Memories that were acknowledged and are missing.
        doubled: Signs that a request had two effects, or one that nobody sent.
        stale: Recalls in full that lacked what had been acknowledged before them.
        degraded: Recalls that said they were not answered in full.
        hangs: Calls that took longer than their deadline of 10 s and 2 s more.
        write_gap_s: The longest between two acknowledgements of all clients.
        recall_gap_s: The longest between two recalls that were answered in full.
        from_memory: Recalls that allowed it and were answered from memory.
        steady_gap_s: The longest that a reader which allows that had no answer, in full or from memory.
        healthy_s: From the break until all members led or followed again; it holds the time until what was broken was
            mended, which is done as soon as the others have made do without it.
        errors: What clients saw, by status code.
    """

    drill: str
    round: int
    acknowledged: int
    in_flight: int
    lost: int
    doubled: int
    stale: int
    degraded: int
    hangs: int
    write_gap_s: float
    recall_gap_s: float
    from_memory: int
    steady_gap_s: float
    slowest_call_s: float
    healthy_s: float
    errors: Mapping[str, int]

    @property
    def is_good(self) -> bool:
        """True if no memory is lost or doubled, no call hung, and steady reads had no gap above `_STEADY_GAP_S`."""
        return not (self.lost or self.doubled or self.hangs) and self.steady_gap_s <= _STEADY_GAP_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Cluster, services and clients at the start of a drill."""

    cluster: Cluster
    services: Sequence[Service]
    ledger: Ledger


def kill_leader(stage: Stage) -> None:
    """The leader's machine has no power, and gets it again when another leads."""
    leader = stage.cluster.await_leader()
    stage.cluster.kill(leader)
    stage.cluster.await_leader(other_than=leader)
    stage.cluster.start(leader)


def kill_postmaster(stage: Stage) -> None:
    """The leader's PostgreSQL dies alone; its Patroni starts it again, or another leads."""
    stage.cluster.kill_postmaster(stage.cluster.await_leader())


def switch_over(stage: Stage) -> None:
    """Another member leads, as before an update of the leader's machine."""
    stage.cluster.switchover()


def freeze_leader(stage: Stage) -> None:
    """The leader's machine pauses, and goes on when another leads."""
    leader = stage.cluster.await_leader()
    stage.cluster.freeze(leader)
    try:
        stage.cluster.await_leader(other_than=leader)
    finally:
        stage.cluster.thaw(leader)


def lose_etcd(stage: Stage) -> None:
    """Two of three etcd are gone until the leader has given up, for nobody can say that it still leads."""
    for number in range(2):
        stage.cluster.kill_etcd(number)
    stage.cluster.await_that("still led", lambda: stage.cluster.leader() is None, _HEALTHY_S)
    for number in range(2):
        stage.cluster.start_etcd(number)


def kill_service(stage: Stage) -> None:
    """One of the services dies, and is started again when the other has gone on for a while."""
    first, second = stage.services
    first.kill()
    stage.ledger.await_flow([second], _FLOW)
    first.start()


DRILLS: Final[Mapping[str, Callable[[Stage], None]]] = {
    "kill-leader": kill_leader,
    "kill-postmaster": kill_postmaster,
    "switchover": switch_over,
    "freeze-leader": freeze_leader,
    "lose-etcd": lose_etcd,
    "kill-service": kill_service,
}


def play(cluster: Cluster, services: Sequence[Service], drill: str, number: int) -> tuple[Report, Ledger]:
    """One drill under load, and what came of it. Raises: ClusterFailed, NothingFlows."""
    with under_load(services, f"{drill}-{number}") as ledger:
        ledger.await_flow(services, _FLOW)
        began = time.monotonic()
        DRILLS[drill](Stage(cluster=cluster, services=services, ledger=ledger))
        cluster.await_healthy(_HEALTHY_S)
        healthy_s = time.monotonic() - began
        ledger.await_flow(services, _FLOW)
    faults = check(services, ledger)
    _complain(f"{drill}, round {number}", faults, ledger)
    return _report(drill, number, healthy_s, faults, ledger), ledger


def _report(drill: str, number: int, healthy_s: float, faults: Faults, ledger: Ledger) -> Report:
    return Report(
        drill=drill,
        round=number,
        acknowledged=len(ledger.acknowledged),
        in_flight=len(ledger.sent) - len(ledger.acknowledged),
        lost=len(faults.lost),
        doubled=len(faults.doubled),
        stale=len(ledger.stale),
        degraded=ledger.degraded,
        hangs=ledger.hangs,
        write_gap_s=round(ledger.write_gap_s(), 1),
        recall_gap_s=round(ledger.recall_gap_s(), 1),
        from_memory=ledger.from_memory,
        steady_gap_s=round(ledger.steady_gap_s(), 1),
        slowest_call_s=round(ledger.slowest_s, 1),
        healthy_s=round(healthy_s, 1),
        errors=dict(ledger.errors),
    )


def _complain(where: str, faults: Faults, ledger: Ledger) -> None:
    """Says what is wrong, and what was said with codes that nobody expects."""
    odd = [f"{code}: {said}" for code, said in ledger.sayings.items() if code not in _EXPECTED]
    stale = [f"stale: {one}" for one in ledger.stale]
    for line in [*odd, *faults.lost, *faults.doubled, *stale][:_FAULTS_SHOWN]:
        print(f"{where}: {line}", file=sys.stderr, flush=True)


def _afterwards(services: Sequence[Service], ledgers: Sequence[Ledger]) -> bool:
    """Says whether all that earlier drills left is still there, after all that came since."""
    lost = doubled = 0
    for ledger in ledgers:
        faults = check(services, ledger)
        lost, doubled = lost + len(faults.lost), doubled + len(faults.doubled)
    acknowledged = sum(len(one.acknowledged) for one in ledgers)
    _say({"drill": "afterwards", "acknowledged": acknowledged, "lost": lost, "doubled": doubled})
    return not (lost or doubled)


def _say(figures: Mapping[str, object]) -> None:
    print(json.dumps(figures), flush=True)


def run(cluster: Cluster, directory: Path, drills: Sequence[str], rounds: int) -> bool:
    """Plays the drills in turn, so many times; whether all went well."""
    with two_services(cluster.dsn, directory) as services:
        is_good, ledgers = True, []
        for number in range(1, rounds + 1):
            for drill in drills:
                report, ledger = play(cluster, services, drill, number)
                _say(asdict(report))
                is_good = is_good and report.is_good
                ledgers.append(ledger)
        return _afterwards(services, ledgers) and is_good


def main() -> int:
    """Runs, and says as JSON what came of each drill.

    Status 1 where anything was lost or doubled, did not end, or left readers that take any answer without one.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--drill", action="append", choices=tuple(DRILLS), help="may be repeated; by default all")
    parser.add_argument("--log", type=Path, help="where the services' log is put when all is over")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="pg-") as name, TemporaryDirectory() as data:
        try:
            with running_cluster(Path(name)) as cluster:
                is_good = run(cluster, Path(data), arguments.drill or tuple(DRILLS), arguments.rounds)
        except (ProgramsMissing, ClusterFailed, NothingFlows) as failure:
            print(f"error: {failure}", file=sys.stderr)
            return 1
        finally:
            if arguments.log is not None:
                shutil.copy(Path(data) / LOG, arguments.log)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
