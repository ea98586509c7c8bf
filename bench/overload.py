"""Parts `overload` and `flood`: more recalls than the service can answer, and a quiet project alongside them.

`flood` is a part of its own: 400 calls in flight of one client, with and without a token, beside a quiet caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import cast

import grpc

from bench.asking import RECALL, TAG, Latency, recall_requests
from bench.command import Options
from bench.corpus import Corpus
from bench.flood import flooding
from bench.generator import Generator, Load, NoCompiler, arrivals_s
from bench.goals import Headline, Judge
from bench.report import Findings, Row
from bench.service import BenchFailed, Serving
from bench.stores import SEED, A, Setting
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope
from hummock_client.errors import FailedCall, call_error

PART, FLOOD = "overload", "flood"
_CLIENTS, _MANY = 16, 500
_WARM_UP_CALLS, _PEAK_CALLS = 1000, 3000
_TIMES = (2, 5, 10)
_LONG_S = 6.0
_QUIET_EVERY_S = 0.05
_CALL_S = 60.0
_ONCE = [("grpc.enable_retries", 0)]
_P99_TIMES, _QUIET_TIMES, _REFUSAL_MS = 2.0, 1.3, 10.0
_FLOODED = Setting(name="flood", memories=12_500, projects=2)
_WHAT = "A: recalls, open loop (Poisson) over 500 connections"


@dataclass(slots=True)
class Beside:
    """Times of single callers during the load: seconds of answered and of refused calls."""

    answered_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)

    def quiet(self) -> Latency:
        """Latency of answered calls. Raises: BenchFailed: there were none."""
        return _latency(self.answered_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parties:
    """Tokens of a quiet caller, of another for its project and of one for a loud project; recalls of the projects."""

    tokens: tuple[str, str, str]
    quiet: Sequence[bytes]
    loud: Sequence[bytes]


def measure_flood(options: Options) -> Findings:
    """A quiet caller beside one client's 400 recalls in flight: answered, refused in words, never ended unread."""
    filled = options.stores.filled(_FLOODED)
    with filled.copied() as copied:
        parties = _parties(filled.corpus, copied.bench.data_dir)
        quiet_token, other_token, loud_token = parties.tokens
        floods = (
            ("in a project of its own", loud_token, parties.loud),
            ("in the quiet caller's project", other_token, parties.quiet),
            ("without the right to the project that it names", loud_token, parties.quiet),
            ("without a token", "", parties.loud),
        )
        worst_ms, figures = 0.0, []
        with copied.bench.serving() as service:
            for is_warm in (False, True):
                with _asking(service, parties.quiet, quiet_token) as alone:
                    time.sleep(_LONG_S if is_warm else 1.0)
            figures.append(("a quiet caller alone", alone.quiet().line()))
            for name, token, messages in floods:
                with (
                    flooding(service.target, RECALL, messages, token) as ended,
                    _asking(service, parties.quiet, quiet_token) as beside,
                ):
                    time.sleep(_LONG_S)
                what = f"400 recalls in flight over 8 connections, {name}"
                worst_ms = max(worst_ms, beside.quiet().p95_ms)
                said = ", ".join(f"{status} {count}" for status, count in sorted(ended.items()))
                refused = f"{len(beside.refused_s)} of it refused"
                figures.append((what, f"{said}; quiet {beside.quiet().line()}; {refused}"))
                if unread := sum(count for status, count in ended.items() if status.startswith("CANCELLED")):
                    raise BenchFailed(f"{what}: {unread} calls ended CANCELLED, unread")
    judge = Judge(name="alone", value=alone.quiet().p95_ms)
    worst = Headline.of("quiet", worst_ms, judge, f", the worst of {len(floods)} floods")
    return Findings(part=FLOOD, headlines=(worst,), figures=tuple(figures))


def _parties(corpus: Corpus, data_dir: Path) -> _Parties:
    requests = recall_requests(corpus, range(1000), TAG)
    quiet, loud = sorted({each.project for each in requests})
    tokens = [
        TokenFile(data_dir).create(name, [Scope.parse(f"{project}:read")], time.time())[1]
        for name, project in (("quiet", quiet), ("other", quiet), ("loud", loud))
    ]
    return _Parties(
        tokens=(tokens[0], tokens[1], tokens[2]),
        quiet=[each.SerializeToString() for each in requests if each.project == quiet],
        loud=[each.SerializeToString() for each in requests if each.project == loud],
    )


def measure(options: Options) -> Findings:
    """The peak first, then twice, five and ten times as many calls as that."""
    try:
        generator = Generator.compiled(options.stores.directory)
    except NoCompiler as none:
        return Findings(part=PART, skipped=(f"overload: {none}",))
    filled = options.stores.filled(A)
    asked = _Questions(filled.corpus)
    headlines: list[Headline] = []
    rows: list[Row] = []
    figures: list[tuple[str, str]] = []
    with filled.bench.serving() as service:
        generator.run(service.target, RECALL, asked.loud(_WARM_UP_CALLS), _CLIENTS)
        peak = generator.run(service.target, RECALL, asked.loud(_PEAK_CALLS), _CLIENTS)
        with _asking(service, asked.quiet()) as alone:
            time.sleep(_LONG_S)
        figures += [
            (f"peak, closed loop of {_CLIENTS} clients", peak.line()),
            ("a quiet project's recalls alone", alone.quiet().line()),
        ]
        for times in _TIMES:
            headline, rows_of, line = _at(service, generator, times, peak, asked, alone)
            headlines.append(headline)
            rows += rows_of
            figures.append((f"{times} x the peak", line))
    return Findings(part=PART, headlines=tuple(headlines), rows=tuple(rows), figures=tuple(figures))


class _Questions:
    """Recalls, none of which comes twice: those of one project, and those of all others."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._next = 0
        self._name = corpus.question(0).project
        self._quiet: list[bytes] = []

    def loud(self, count: int) -> list[bytes]:
        """Recalls of the other projects, serialised; the one project's are kept for `quiet`."""
        taken: list[bytes] = []
        while len(taken) < count:
            requests = recall_requests(self._corpus, range(self._next, self._next + count), TAG)
            self._next += count
            self._quiet += [one.SerializeToString() for one in requests if one.project == self._name]
            taken += [one.SerializeToString() for one in requests if one.project != self._name]
        return taken[:count]

    def quiet(self) -> list[bytes]:
        """Recalls of the one project, enough for a run."""
        most = int(_LONG_S / _QUIET_EVERY_S) + 1
        taken, self._quiet = self._quiet[:most], self._quiet[most:]
        return taken


def _at(
    service: Serving, generator: Generator, times: int, peak: Load, asked: _Questions, alone: Beside
) -> tuple[Headline, list[Row], str]:
    """Measures the service at a multiple of the rate that it can answer."""
    rate_per_s = times * peak.calls_per_s
    messages = asked.loud(int(rate_per_s * _LONG_S))
    with _asking(service, asked.quiet()) as beside, _asking(service, asked.loud(1000)) as among:
        load = generator.run(service.target, RECALL, messages, _MANY, arrivals_s(rate_per_s, len(messages), SEED))
    best = Judge(name=f"the peak, {_CLIENTS} clients", value=peak.calls_per_s, unit="calls/s")
    p99 = Judge(name="at the peak", value=peak.latency.p99_ms, unit="ms")
    p95 = Judge(name="alone", value=alone.quiet().p95_ms, unit="ms")
    what = f"{_WHAT}, {times} x the peak"
    rows = [
        Row.beside(f"{what}: p99 of what was answered, from due time", _P99_TIMES, load.latency.p99_ms, p99),
        Row.beside(f"{what}: p95 of a quiet project", _QUIET_TIMES, beside.quiet().p95_ms, p95),
    ]
    refused = "none refused"
    if among.refused_s:
        latency = _latency(among.refused_s)
        rows.append(Row.guide(f"{what}: p95 of a refusal", _REFUSAL_MS, latency.p95_ms, "ms"))
        refused = f"refused {latency.line()}"
    line = f"{load.line()}; quiet {beside.quiet().line()}; {len(beside.refused_s)} of it refused; {refused}"
    return Headline.of(f"goodput {times}", load.calls_per_s, best), rows, line


@contextmanager
def _asking(service: Serving, messages: Sequence[bytes], token: str = "") -> Iterator[Beside]:
    """One client that asks once, twenty calls a second, for as long as the block runs. Raises: BenchFailed."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    seen, over = Beside(), Event()

    def run() -> None:
        for message in messages:
            if over.wait(_QUIET_EVERY_S):
                return
            start_s = time.perf_counter()
            try:
                ask(message, timeout=_CALL_S, metadata=metadata)
            except grpc.RpcError as failed:
                error = call_error(cast(FailedCall, failed), "the service")
                if error.retry_after_s is None:
                    raise BenchFailed(
                        f"a call failed by {error.code.name} and does not say when to try again"
                    ) from None
                seen.refused_s.append(time.perf_counter() - start_s)
            else:
                seen.answered_s.append(time.perf_counter() - start_s)

    with grpc.insecure_channel(service.target, _ONCE) as channel, ThreadPoolExecutor(1) as pool:
        ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(RECALL)
        asking = pool.submit(run)
        try:
            yield seen
        finally:
            over.set()
        asking.result()


def _latency(times_s: Sequence[float]) -> Latency:
    if not times_s:
        raise BenchFailed("none of the calls of a quiet project was answered")
    return Latency.of(times_s)
