"""Part `load`: 16 clients at once in setting A, closed and open loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from bench.asking import RECALL, TAG, check_replies, recall_messages
from bench.command import Options
from bench.generator import Generator, Load, NoCompiler, arrivals_s
from bench.goals import Headline, Judge
from bench.recall import NOT_MEASURED
from bench.report import Findings
from bench.service import BenchFailed, Serving
from bench.stores import SEED, A
from bench.trivial import CALL, trivial_server

PART = "load"
_CLIENTS = 16
_WARM_UP_CALLS = 1000
_CALLS = 6000
_RECALLS_PER_S, _OPEN_SHARE = 1500.0, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A load, and the CPU that the service took for each of its calls."""

    load: Load
    server_cpu_ms: float

    def line(self) -> str:
        """A line for people."""
        return f"{self.load.line()}; service {self.server_cpu_ms:.2f} ms CPU a call"


def measure(options: Options) -> Findings:
    """16 clients, as fast as they are answered, then at a rate of their own."""
    try:
        generator = Generator.compiled(options.stores.directory)
    except NoCompiler as none:
        return Findings(part=PART, skipped=(f"16 clients over gRPC: {none}",))
    filled = options.stores.filled(A)
    readers = _readers()
    # Each process has kernels to load and projects to read.
    warm_up_calls = (1 + readers) * _WARM_UP_CALLS
    messages = recall_messages(filled.corpus, range(warm_up_calls + 2 * _CALLS), TAG)
    with filled.bench.serving() as service:
        generator.run(service.target, RECALL, messages[:_WARM_UP_CALLS], _CLIENTS)
        alone = served(service, generator, messages[warm_up_calls:-_CALLS], _CLIENTS, None)
    bare = _bare_load(generator, messages, alone.load.reply_bytes // alone.load.calls)
    with filled.bench.serving(readers) as service:
        generator.run(service.target, RECALL, messages[:warm_up_calls], _CLIENTS)
        closed = served(service, generator, messages[warm_up_calls:-_CALLS], _CLIENTS, None)
        anonymous_mb = service.anonymous_bytes() / 1e6
        # Above what the service can do, an open loop would measure how long the bench went on.
        rate_per_s = min(_RECALLS_PER_S, _OPEN_SHARE * closed.load.calls_per_s)
        opened = served(service, generator, messages[-_CALLS:], _CLIENTS, rate_per_s)
    if failed := sum(run.load.failed for run in (alone, closed, opened)):
        raise BenchFailed(f"{failed} of {3 * _CALLS} recalls failed")
    judge = Judge(
        name=f"bare replies by grpc.aio {grpc.__version__}, one process", value=bare.calls_per_s, unit="calls/s"
    )
    headlines = [Headline.of("clients", alone.load.calls_per_s, judge)]
    if readers:
        headlines.append(Headline.of("readers", closed.load.calls_per_s, judge))
    return Findings(
        part=PART,
        headlines=tuple(headlines),
        figures=(
            ("16 clients, closed loop, one process", alone.line()),
            (f"16 clients, closed loop, {_beside(readers)}", closed.line()),
            (f"16 clients, open loop, {rate_per_s:.0f}/s, {_beside(readers)}", opened.line()),
            ("bare replies of as many bytes", bare.line()),
            (f"anonymous memory of the service {_beside(readers)}, all projects loaded", f"{anonymous_mb:.0f} MB"),
            ("calls before those that count, for each process", str(_WARM_UP_CALLS)),
        ),
        skipped=() if readers else ("readers need Linux and a second core",),
        not_measured=NOT_MEASURED,
    )


def _bare_load(generator: Generator, messages: Sequence[bytes], reply_bytes: int) -> Load:
    """Sends as many calls to a server that does nothing."""
    with trivial_server(reply_bytes) as server:
        generator.run(server.target, CALL, messages[:_WARM_UP_CALLS], _CLIENTS)
        return generator.run(server.target, CALL, messages[-_CALLS:], _CLIENTS)


def _readers() -> int:
    """A process for each core, as far as this system divides the connections to a port among them."""
    return (os.cpu_count() or 1) - 1 if sys.platform == "linux" else 0


def _beside(readers: int) -> str:
    return f"with {readers} reader{'s' * (readers != 1)}"


def served(
    service: Serving, generator: Generator, messages: list[bytes], clients: int, rate_per_s: float | None
) -> Served:
    """Sends these recalls, closed loop or at a rate; returns the load and the service's CPU time meanwhile.

    Raises: BenchFailed: among the replies that were kept one found nothing, left something out or came from the cache.
    """
    due_s = None if rate_per_s is None else arrivals_s(rate_per_s, len(messages), SEED)
    before_s = service.cpu_s()
    load = generator.run(service.target, RECALL, messages, clients, due_s)
    server_cpu_ms = 1000 * (service.cpu_s() - before_s) / load.calls
    check_replies(load.replies)
    return Served(load=load, server_cpu_ms=server_cpu_ms)
