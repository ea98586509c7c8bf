"""Part `clients`: what a client's facade adds to a call, above the raw stub of its language."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import toy_models
from bench.asking import Latency
from bench.command import Options
from bench.report import Findings, Row
from bench.service import Bench, BenchFailed
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub

PART = "clients"
ROUNDS = 5
_ROOT = Path(__file__).parent.parent
_LIMIT_MS = 0.1
_LIMIT_S = 600
_PROJECT, _ID = "clients", "m"
_WHAT = "GetMemory of one short memory over loopback, warm, stub and facade in turns: p50 that the facade adds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that times calls through the stub and through the facade of one language.

    Attributes:
        name: Name of the language.
        tool: Without which it cannot be run.
        command: Run in the repository's root; target, project, id and number of calls are added.
    """

    name: str
    tool: str
    command: Sequence[str]


CLIENTS = (
    Client(name="Python", tool=sys.executable, command=(sys.executable, "-m", "bench.facade")),
    Client(name="Go", tool="go", command=("go", "run", "-C", "clients/go", "./overhead")),
    Client(name="Kotlin", tool="mvn", command=("sh", "clients/kotlin/overhead.sh")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Times of calls in turns; seconds."""

    raw_s: Sequence[float]
    facade_s: Sequence[float]

    @property
    def added_ms(self) -> float:
        """Difference of the facade's p50 to the stub's; below 0 by chance."""
        return Latency.of(self.facade_s).p50_ms - Latency.of(self.raw_s).p50_ms

    @classmethod
    def of(cls, rounds: Sequence[Beside]) -> Beside:
        """All rounds as one."""
        return cls(
            raw_s=[each for one in rounds for each in one.raw_s],
            facade_s=[each for one in rounds for each in one.facade_s],
        )


def measure(options: Options) -> Findings:
    """A row for each language whose tools are there."""
    able = [client for client in CLIENTS if shutil.which(client.tool)]
    rows, figures = [], []
    with TemporaryDirectory(dir=options.stores.directory) as directory:
        bench = Bench.prepare(Path(directory), toy_models.TINY, None)
        with bench.serving() as service:
            _learn_one(ContextServiceStub(service.channel))
            for client, rounds in _rounds(able, service.target, options.queries // ROUNDS or 1):
                together = Beside.of(rounds)
                each = ", ".join(f"{one.added_ms:.3f}" for one in rounds)
                rows.append(
                    Row.at_most(f"{client.name}: {_WHAT}", _LIMIT_MS, together.added_ms, "ms", f"by round {each}")
                )
                figures += [
                    (f"{client.name}, raw stub", Latency.of(together.raw_s).line()),
                    (f"{client.name}, facade", Latency.of(together.facade_s).line()),
                ]
    return Findings(
        part=PART,
        rows=tuple(rows),
        figures=tuple(figures),
        skipped=tuple(f"{each.name}: {each.tool} is missing" for each in CLIENTS if each not in able),
        not_measured=("writes, streams and calls over TLS",),
    )


def _rounds(clients: Sequence[Client], target: str, calls: int) -> Iterator[tuple[Client, list[Beside]]]:
    """Results of each client; clients take turns, so that other load on the machine meets all of them."""
    found: dict[str, list[Beside]] = {client.name: [] for client in clients}
    for _ in range(ROUNDS):
        for client in clients:
            found[client.name].append(_timed(client, target, calls))
    for client in clients:
        yield client, found[client.name]


def _timed(client: Client, target: str, calls: int) -> Beside:
    command = [*client.command, target, _PROJECT, _ID, str(calls)]
    run = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, timeout=_LIMIT_S)
    if run.returncode != 0:
        raise BenchFailed(f"{client.name} ended with status {run.returncode}; what it said stands above")
    return Beside(**json.loads(run.stdout))


def _learn_one(context: ContextServiceStub) -> None:
    memory = memory_pb2.Memory(id=_ID, content="结算页的 parseDate 只接受 ISO 8601")
    context.Learn(pb.LearnRequest(project=_PROJECT, memories=[memory]))
