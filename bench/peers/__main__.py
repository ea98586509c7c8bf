"""`python -m bench.peers`: the same work by other stores in the same run (row 3); one that is missing is skipped aloud.

A recall of Hummock's goes over gRPC; those that run in process have no socket between. `make bench-peers` installs them
at the versions of requirements.txt into an environment of their own.
"""

from __future__ import annotations

from bench import recall
from bench.asking import WARM_UP_CALLS, recall_requests
from bench.command import RESULTS, Options, options_of, options_parser, report_of
from bench.inside import in_process_latency
from bench.peers.running import CHROMA, LANCE_DB, LANGCHAIN, MEM0, QDRANT_EDGE, SQLITE_VEC, Result, run_module, run_peer
from bench.rows import Findings, Row
from bench.stores import A

PART = "peers"
_MEM0_MEMORIES = 10_000
_TIMES = (
    (SQLITE_VEC, A.memories, 7.0),
    (LANCE_DB, A.memories, 15.0),
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
    """Row 3, and the peers' own figures."""
    filled = options.stores.filled(A)
    asked = recall_requests(filled.corpus, range(options.queries), recall.TAG)
    warm_up = recall_requests(filled.corpus, range(options.queries, options.queries + WARM_UP_CALLS), recall.TAG)
    ours = recall.measure_over_grpc(filled, warm_up, asked).recall
    inside = in_process_latency(filled.bench, warm_up, asked)
    rows: list[Row] = []
    figures = [(recall.OVER_GRPC, ours.line()), (recall.IN_PROCESS, inside.line())]
    bars = [(recall.OVER_GRPC, ours.p50_ms), (recall.IN_PROCESS, inside.p50_ms)]
    skipped: list[str] = []
    for peer, memories, times in ((QDRANT_EDGE, A.memories, None), *_TIMES):
        result = run_peer(peer, filled, memories, options.stores.directory)
        if isinstance(result, str):
            skipped.append(f"{peer.name}: {result}")
            continue
        figures.append((f"{result.package} {result.version}", result.line()))
        size = "" if memories == A.memories else f", {memories:,} memories"
        bars.append((f"{result.package} {result.version}, {peer.where}{size}", result.p50_ms))
        if times is not None:
            rows.append(_row(result, times, ours.p50_ms))
    said = run_module(LANGCHAIN, filled, _MEM0_MEMORIES, options.stores.directory)
    if isinstance(said, str):
        skipped.append(f"{LANGCHAIN.name}: {said}")
    else:
        line = f"p50 {said['p50_us']:.0f} µs, plain NumPy {said['numpy_p50_us']:.0f} µs, {said['questions']} questions"
        figures.append((f"{said['package']} {said['version']}, MMR of 10 of 50 at 384 dims", line))
    return Findings(
        part=PART,
        rows=tuple(rows),
        figures=tuple(figures),
        recall_p50_ms=tuple(bars),
        skipped=tuple(skipped),
        not_measured=NOT_MEASURED,
    )


def _row(result: Result, times: float, ours_ms: float) -> Row:
    what = (
        f"A: recall over gRPC against {result.package} {result.version} ({result.memories} memories): its p50 to ours"
    )
    note = f"{result.line()}; ours p50 {ours_ms:.3f} ms among 100,000"
    return Row.at_least(3, what, times, result.p50_ms / ours_ms, "×", note=note)


def main() -> None:
    """The command line."""
    report = report_of(measure, options_of(options_parser(__doc__).parse_args()))
    report.write(RESULTS, PART)
    print(report.markdown())


if __name__ == "__main__":
    main()
