"""`python -m bench.peers`: the same work by other stores in the same run (row 3); one that is missing is skipped aloud.

A recall of Hummock's goes over gRPC; those that run in process have no socket between. `make bench-peers` installs them
at the versions of requirements.txt into an environment of their own.
"""

from __future__ import annotations

from bench import recall
from bench.asking import TAG, WARM_UP_CALLS, in_process_latency, recall_requests
from bench.command import RESULTS, Options, run_parts
from bench.peers.running import CHROMA, LANCE_DB, MEM0, QDRANT_EDGE, SQLITE_VEC, ZVEC, Result, run_peer
from bench.report import Findings, Judge, Row
from bench.stores import A

PART = "peers"
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
    """Row 3, and the peers' own figures."""
    filled = options.stores.filled(A)
    asked = recall_requests(filled.corpus, range(options.queries), TAG)
    warm_up = recall_requests(filled.corpus, range(options.queries, options.queries + WARM_UP_CALLS), TAG)
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
    return Findings(
        part=PART,
        rows=tuple(rows),
        figures=tuple(figures),
        recall_p50_ms=tuple(bars),
        skipped=tuple(skipped),
        not_measured=NOT_MEASURED,
    )


def _row(result: Result, times: float, ours_ms: float) -> Row:
    what = f"A: recall over gRPC, p50 among 100,000, against {result.memories} memories"
    judge = Judge(name=f"{result.package} {result.version}", value=result.p50_ms)
    brief = f"Recall over gRPC beside {result.package}" if result.memories == A.memories else ""
    return Row.beside(3, what, 1 / times, ours_ms, judge, result.line(), brief=brief)


def main() -> None:
    """The command line."""
    run_parts((measure,), __doc__).write(RESULTS, PART)


if __name__ == "__main__":
    main()
