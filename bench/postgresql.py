"""Part `postgresql`: the store over PostgreSQL against LMDB, in the same run.

A PostgreSQL that waits for the disk, on a socket of this machine, and services over it. What they have is copied from
the LMDB of the other parts, so that both have the same. Calls are made in turns: to one service, then the same to the
other.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from bench.asking import LEARN, RECALL, TAG, Call, Latency, caller, check_replies, recall_messages
from bench.command import Options
from bench.generator import Generator, Load, NoCompiler
from bench.goals import Judge
from bench.learn import check_created, fresh_requests
from bench.report import Findings, Row
from bench.service import Bench, BenchFailed, Serving, say
from bench.stores import A, B, Filled, Setting
from tests.postgresql.account import Unusable
from tests.postgresql.node import Node, NodeFailed, running_node
from tests.postgresql.programs import ProgramsMissing

PART = "postgresql"
_RECALL_TIMES, _RECALL_TRIPS, _LEARN_TRIPS = 1.5, 1, 2
_TAKE_OVER_S = 3.0
_CLIENTS = 16
_TEMPLATE_READY = "copied"
NOT_MEASURED = (
    "a network between a service and its database: it is a socket of this machine, and they share its cores",
    "a synchronous standby, for which each write would wait",
    "recalls while others write",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of memories and calls to measure.

    Attributes:
        several: The memories of all rows but the last, in several projects.
        one: The memories of the last row, in one project.
        warm_up: Recalls that do not count, at each service.
        recalls: Recalls that count, at each service.
        learns: Learns of one memory each, at each service.
        calls: Recalls of all clients at once, at each set of services.
        take_overs: Services that have never seen the project.
    """

    several: Setting = A
    one: Setting = B
    warm_up: int = 200
    recalls: int = 1000
    learns: int = 300
    calls: int = 3000
    take_overs: int = 3


def measure(options: Options) -> Findings:
    """Rows for A and B."""
    return measure_at(options, Sizes(recalls=options.queries))


def measure_at(options: Options, sizes: Sizes) -> Findings:
    """Rows for the given sizes."""
    folder = options.stores.directory
    try:
        generator = Generator.compiled(folder)
        with running_node(folder / "postgresql") as node:
            return _measured(options, sizes, generator, node)
    except (ProgramsMissing, Unusable, NoCompiler) as missing:
        return Findings(part=PART, skipped=(f"the store over PostgreSQL: {missing}",))
    except NodeFailed as failed:
        raise BenchFailed(str(failed)) from failed


def _measured(options: Options, sizes: Sizes, generator: Generator, node: Node) -> Findings:
    several, one = options.stores.filled(sizes.several), options.stores.filled(sizes.one)
    folder = options.stores.directory
    with several.copied() as own, _database(node, several) as dsn, ExitStack() as running:
        lmdb = running.enter_context(own.bench.serving())
        first, second = (running.enter_context(_serving(folder, own.bench, dsn)) for _ in range(2))
        say(f"{PART}: recalls in turns")
        recalls = _recalls(several, (lmdb, first), sizes)
        say(f"{PART}: learns in turns")
        learns, trip = _learns(several, (lmdb, first), node, sizes)
        say(f"{PART}: {_CLIENTS} clients")
        loads = _loads(several, generator, ([lmdb], [first], [first, second]), sizes)
    with _database(node, one) as dsn:
        say(f"{PART}: a service takes a project over")
        take_overs = [_take_over(folder, one, dsn, number) for number in range(sizes.take_overs)]
    by_lmdb = _take_over(folder, one, None, sizes.take_overs)
    return Findings(
        part=PART,
        rows=(*_rows(recalls, learns, trip, loads), _take_over_row(sizes, take_overs, by_lmdb)),
        figures=(
            ("SELECT 1 over the socket, between the Learns", trip.line()),
            ("recall over gRPC, LMDB", recalls[0].line()),
            ("recall over gRPC, PostgreSQL", recalls[1].line()),
            ("one durable Learn over gRPC, LMDB", learns[0].line()),
            ("one durable Learn over gRPC, PostgreSQL", learns[1].line()),
            *((f"{_CLIENTS} clients, closed loop, {name}", _line(some)) for name, some in loads.items()),
            ("first recall of a project that a service has never seen, s", ", ".join(f"{s:.2f}" for s in take_overs)),
        ),
        not_measured=NOT_MEASURED,
    )


@contextmanager
def _database(node: Node, filled: Filled) -> Iterator[str]:
    """A database that has what the store has, to be written to; gone afterwards. What was copied once is kept."""
    template, copy = filled.bench.directory.name, f"{filled.bench.directory.name}-measured"
    ready = filled.bench.directory / _TEMPLATE_READY
    with psycopg.connect(node.dsn, autocommit=True) as connection:
        is_there = bool(connection.execute("SELECT FROM pg_database WHERE datname = %s", [template]).rowcount)
    if not (is_there and ready.exists()):
        node.drop_database(template)
        dsn = node.create_database(template)
        say(f"setting {filled.setting.name}: its memories are copied into PostgreSQL")
        _copy(filled.bench.data_dir, dsn)
        with psycopg.connect(node.dsn_of(template), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        ready.touch()
    node.drop_database(copy)
    yield node.create_database(copy, template)
    node.drop_database(copy)


def _copy(data_dir: Path, dsn: str) -> None:
    command = [sys.executable, "-m", "hummock", "save", "copy", str(data_dir), dsn]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchFailed(f"hummock save copy has failed: {done.stderr.strip()}")


@contextmanager
def _serving(folder: Path, model_of: Bench, dsn: str | None, data_dir: Path | None = None) -> Iterator[Serving]:
    """A service over a database, or over a copy of a data directory."""
    with TemporaryDirectory(prefix="over-", dir=folder) as directory:
        models_dir = model_of.settings().models_dir
        bench = Bench.with_model(Path(directory), model_of.model, models_dir, store=dsn)
        if data_dir is not None:
            shutil.copytree(data_dir, bench.data_dir)
        with bench.serving() as service:
            yield service


def _in_turns(calls: Sequence[Call], messages: Sequence[bytes]) -> tuple[list[list[float]], list[list[bytes]]]:
    """Each message to each service, now one first and now another: seconds, and replies."""
    times_s: list[list[float]] = [[] for _ in calls]
    replies: list[list[bytes]] = [[] for _ in calls]
    for number, message in enumerate(messages):
        order = range(len(calls)) if number % 2 else reversed(range(len(calls)))
        for which in order:
            started_s = time.perf_counter()
            reply = calls[which](message)
            times_s[which].append(time.perf_counter() - started_s)
            replies[which].append(reply)
    return times_s, replies


def _recalls(filled: Filled, services: Sequence[Serving], sizes: Sizes) -> list[Latency]:
    calls = [caller(service.channel, RECALL) for service in services]
    _in_turns(calls, recall_messages(filled.corpus, range(sizes.recalls, sizes.recalls + sizes.warm_up), TAG))
    times_s, replies = _in_turns(calls, recall_messages(filled.corpus, range(sizes.recalls), TAG))
    check_replies(chain.from_iterable(replies))
    return [Latency.of(each) for each in times_s]


def _learns(filled: Filled, services: Sequence[Serving], node: Node, sizes: Sizes) -> tuple[list[Latency], Latency]:
    """Latencies of single writes, and of a round trip that comes between them."""
    fresh = [request.SerializeToString() for request in islice(fresh_requests(filled.corpus), 2 * sizes.learns)]
    with psycopg.connect(node.dsn, autocommit=True, prepare_threshold=0) as connection:

        def trip(_: bytes) -> bytes:
            connection.execute(b"SELECT 1").fetchone()
            return b""

        calls = [*(caller(service.channel, LEARN) for service in services), trip]
        _in_turns(calls, fresh[: sizes.learns])
        times_s, replies = _in_turns(calls, fresh[sizes.learns :])
    for reply in chain.from_iterable(replies[:-1]):
        check_created(reply)
    *learns, trips = map(Latency.of, times_s)
    return learns, trips


def _loads(
    filled: Filled, generator: Generator, sets: Sequence[Sequence[Serving]], sizes: Sizes
) -> dict[str, list[Load]]:
    """Loads of each service of a set, with the clients shared out among them, by the set's name."""
    names = ("LMDB", "PostgreSQL", "two services over PostgreSQL")
    start = sizes.recalls + sizes.warm_up
    found: dict[str, list[Load]] = {}
    for name, services in zip(names, sets, strict=True):
        _, end = start, start + sizes.calls + sizes.warm_up * len(services)
        messages = recall_messages(filled.corpus, range(start, end), TAG)
        start = end
        for service in services:
            warm_up = [messages.pop() for _ in range(sizes.warm_up)]
            generator.run(service.target, RECALL, warm_up, _CLIENTS)
        edges = [len(messages) * number // len(services) for number in range(len(services) + 1)]
        shares = [messages[low:high] for low, high in pairwise(edges)]
        clients = _CLIENTS // len(services)
        with ThreadPoolExecutor(len(services)) as together:
            running = [
                together.submit(generator.run, service.target, RECALL, share, clients)
                for service, share in zip(services, shares, strict=True)
            ]
            found[name] = [each.result() for each in running]
        for load in found[name]:
            check_replies(load.replies)
    return found


def _take_over(folder: Path, filled: Filled, dsn: str | None, number: int) -> float:
    """Seconds of the first recall of a service that has just started: it has the project's words and vectors then."""
    data_dir = filled.bench.data_dir if dsn is None else None
    (message,) = recall_messages(filled.corpus, [number], TAG)
    with _serving(folder, filled.bench, dsn, data_dir) as service:
        started_s = time.perf_counter()
        reply = caller(service.channel, RECALL)(message)
        taken_s = time.perf_counter() - started_s
    check_replies([reply])
    return taken_s


def _rows(
    recalls: Sequence[Latency], learns: Sequence[Latency], trip: Latency, loads: dict[str, list[Load]]
) -> Iterator[Row]:
    (lmdb, ours), (lmdb_learn, our_learn) = recalls, learns
    trips = f"a round trip {trip.p50_ms:.3f} ms"
    yield Row.at_most(
        "A: recall over PostgreSQL, over gRPC, one client, p50: to 1.5 × LMDB's and a round trip",
        _RECALL_TIMES * lmdb.p50_ms + _RECALL_TRIPS * trip.p50_ms,
        ours.p50_ms,
        "ms",
        f"LMDB {lmdb.p50_ms:.3f} ms, {trips}",
    )
    yield Row.at_most(
        "one durable Learn (vector given) over PostgreSQL, over gRPC, p50: to LMDB's and two round trips",
        lmdb_learn.p50_ms + _LEARN_TRIPS * trip.p50_ms,
        our_learn.p50_ms,
        "ms",
        f"LMDB {lmdb_learn.p50_ms:.3f} ms, {trips}",
    )
    per_s = {name: sum(load.calls_per_s for load in some) for name, some in loads.items()}
    lmdb_per_s, one_per_s, two_per_s = per_s.values()
    note = f"LMDB {lmdb_per_s:.0f}/s; the clients, both services and PostgreSQL share the cores"
    judge = Judge(name="one service over PostgreSQL", value=one_per_s, unit="recalls/s")
    yield Row.share(f"A: {_CLIENTS} clients over two services", 1.0, two_per_s, judge, note)


def _take_over_row(sizes: Sizes, take_overs: Sequence[float], by_lmdb: float) -> Row:
    what = f"first recall in one project of {sizes.one.memories:,} by a service that has never seen it"
    ordered = sorted(take_overs)
    note = f"median of {len(ordered)}; LMDB {by_lmdb:.2f} s"
    return Row.guide(what, _TAKE_OVER_S, ordered[len(ordered) // 2], "s", note=note)


def _line(loads: Sequence[Load]) -> str:
    return f"{sum(load.calls_per_s for load in loads):.0f}/s: {'; '.join(load.line() for load in loads)}"
