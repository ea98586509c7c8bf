"""`python -m bench.peers`: the same work by other stores in the same run; one that is missing is skipped aloud.

A recall of Hummock's goes over gRPC; those that run in process have no socket between. `make bench-peers` installs them
at the versions of requirements.txt into an environment of their own.
"""

from __future__ import annotations

import sys
import time

from bench import recall
from bench.asking import TAG, WARM_UP_CALLS, in_process_latency, recall_requests
from bench.command import FAILURES, RESULTS, Options, one_line, options_of, options_parser
from bench.goals import Judge
from bench.machine import Machine
from bench.peers.chart import OURS, chart
from bench.peers.running import CHROMA, LANCE_DB, MEM0, QDRANT_EDGE, SQLITE_VEC, ZVEC, Result, run_peer
from bench.report import Findings, Row, Run
from bench.stores import A

PART = "peers"
_OVER_GRPC, _IN_PROCESS = f"{OURS}, over gRPC", f"{OURS}, in process"
_MEM0_MEMORIES = 10_000
_TIMES = (
    (SQLITE_VEC, A.memories, 7.0),
    (LANCE_DB, A.memories, 15.0),
    (ZVEC, A.memories, 1.0),
    (CHROMA, A.memories, 150.0),
    (MEM0, _MEM0_MEMORIES, 60.0),
)
NOT_MEASURED = (
    "how good the peers' answers are: their results were only counted, and held against the filter",
    "the cutting of words by the peers: all are given the words that Hummock's analyzer cuts, outside their time",
    "word search in mem0: its encoder is downloaded, so it searches by vector alone",
    "ranking of words in Chroma, which has none: what holds a word is fetched and ranked outside",
)


def measure(options: Options) -> Findings:
    """Our time as a share of each peer's, and the peers' own figures."""
    return _measured(options)[0]


def _measured(options: Options) -> tuple[Findings, dict[str, float]]:
    """The findings, and the bars of the chart: whose recall it is, and its p50 in ms."""
    filled = options.stores.filled(A)
    asked = recall_requests(filled.corpus, range(options.queries), TAG)
    warm_up = recall_requests(filled.corpus, range(options.queries, options.queries + WARM_UP_CALLS), TAG)
    ours = recall.measure_over_grpc(filled, warm_up, asked).recall
    inside = in_process_latency(filled.bench, warm_up, asked)
    rows: list[Row] = []
    figures = [(_OVER_GRPC, ours.line()), (_IN_PROCESS, inside.line())]
    bars = {_OVER_GRPC: ours.p50_ms, _IN_PROCESS: inside.p50_ms}
    skipped: list[str] = []
    for peer, memories, times in ((QDRANT_EDGE, A.memories, None), *_TIMES):
        result = run_peer(peer, filled, memories, options.stores.directory)
        if isinstance(result, str):
            skipped.append(f"{peer.name}: {result}")
            continue
        figures.append((f"{result.package} {result.version}", result.line()))
        size = "" if memories == A.memories else f", {memories:,} memories"
        bars[f"{result.package} {result.version}, {peer.where}{size}"] = result.p50_ms
        if times is not None:
            rows.append(_row(result, times, ours.p50_ms))
    findings = Findings(
        part=PART, rows=tuple(rows), figures=tuple(figures), skipped=tuple(skipped), not_measured=NOT_MEASURED
    )
    return findings, bars


def _row(result: Result, times: float, ours_ms: float) -> Row:
    what = f"A: recall over gRPC, p50 among 100,000, against {result.memories} memories"
    judge = Judge(name=f"{result.package} {result.version}", value=result.p50_ms)
    return Row.beside(what, 1 / times, ours_ms, judge, result.line())


def main() -> None:
    """The command line."""
    options = options_of(options_parser(__doc__).parse_args())
    machine = Machine.here(options.stores.directory)
    started_s = time.perf_counter()
    try:
        findings, bars = _measured(options)
    except FAILURES as failed:
        sys.exit(f"error: {one_line(failed)}")
    run = Run(machine=machine, elapsed_s=time.perf_counter() - started_s, parts=(findings,))
    page = run.details("Beside other stores")
    for ending, text in (("json", run.json()), ("md", page), ("svg", chart(bars, machine.caption()))):
        (RESULTS / f"{PART}.{ending}").write_text(text, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
