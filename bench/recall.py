"""`python -m bench.recall`: one client's recalls in setting A, over gRPC and in process (rows 1, 2 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bench.asking import (
    RECALL,
    TAG,
    WARM_UP_CALLS,
    Latency,
    caller,
    check_replies,
    in_process_latency,
    recall_requests,
    timed,
)
from bench.command import Options, run_parts
from bench.peers.running import QDRANT_EDGE, Result, run_peer
from bench.report import Findings, Judge, Row
from bench.stores import A, Filled
from bench.trivial import CALL, trivial_server
from hummock_client.v1 import recall_pb2

PART = "recall"
NOT_MEASURED = (
    "the embedding model, unless a row says so: memories and questions bring their vectors",
    "how good the answers are: the corpus is synthetic",
    "a cold page cache, and compiling the kernels: both were warm",
    "recalls while others write",
)
_GRPC_P50_MS, _GRPC_P99_MS, _IN_PROCESS_P50_MS, _OWN_P50_MS = 1.2, 4.0, 0.6, 0.2
"""Guides."""
_OVER_GRPC_TIMES, _IN_PROCESS_TIMES, _TAIL = 0.75, 0.3, 2.0
OVER_GRPC, IN_PROCESS = "Hummock, over gRPC", "Hummock, in process"
"""Names of bars in the chart."""
_WORK = "A: recall, vector + words, filter project + tag (1/64 of all), MMR 50 to 10, payloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverGrpc:
    """One client over a socket: latencies of Recall and of a server that does nothing, and the sizes of messages."""

    recall: Latency
    trivial: Latency
    request_bytes: float
    reply_bytes: float
    stages_p50_ms: dict[str, float]


def measure(options: Options) -> Findings:
    """Rows 1, 2 and 5, and what the receipts say."""
    filled = options.stores.filled(A)
    # The questions of the warm-up are none of those that are measured.
    asked = recall_requests(filled.corpus, range(options.queries), TAG)
    others = range(options.queries, options.queries + WARM_UP_CALLS)
    warm_up = recall_requests(filled.corpus, others, TAG)
    over_grpc = measure_over_grpc(filled, warm_up, asked)
    in_process = in_process_latency(filled.bench, warm_up, asked)
    peer = run_peer(QDRANT_EDGE, filled, A.memories, options.stores.directory)
    own_ms = over_grpc.recall.p50_ms - in_process.p50_ms - over_grpc.trivial.p50_ms
    return Findings(
        part=PART,
        rows=(
            *_peer_rows(peer, over_grpc.recall, in_process),
            Row.beside(
                1,
                f"{_WORK}; over gRPC, one client, p99",
                _TAIL,
                over_grpc.recall.p99_ms,
                Judge(name="its p50", value=over_grpc.recall.p50_ms, guide=_GRPC_P99_MS),
            ),
            Row.beside(
                5,
                "A: what the service adds to row 2 and a bare reply, p50",
                1.0,
                own_ms,
                Judge(name="a bare reply of equal size", value=over_grpc.trivial.p50_ms, guide=_OWN_P50_MS),
                brief="What requests, queue and replies add to it",
            ),
        ),
        figures=(
            ("recall over gRPC, grpcio's client with bytes for messages", over_grpc.recall.line()),
            ("recall in process, all hits read", in_process.line()),
            ("trivial RPC of equal sizes, bare grpc.aio server in a process of its own", over_grpc.trivial.line()),
            ("bytes of a request and of a reply, mean", f"{over_grpc.request_bytes:.0f}, {over_grpc.reply_bytes:.0f}"),
            ("stages of the receipt over gRPC, p50 ms", _stages_line(over_grpc.stages_p50_ms)),
            ("calls before those that count", str(WARM_UP_CALLS)),
            ("store A", "of an earlier run" if filled.reused else "learnt in this run"),
        ),
        recall_p50_ms=(
            (OVER_GRPC, over_grpc.recall.p50_ms),
            (IN_PROCESS, in_process.p50_ms),
            *(((f"{peer.package} {peer.version}, in process", peer.p50_ms),) if not isinstance(peer, str) else ()),
        ),
        skipped=(f"rows 1 and 2 beside their peer: {peer}",) if isinstance(peer, str) else (),
        not_measured=NOT_MEASURED,
    )


def _peer_rows(peer: Result | str, over_grpc: Latency, in_process: Latency) -> Iterator[Row]:
    """The peer has no socket to cross in either row."""
    if isinstance(peer, str):
        return
    name = f"{peer.package} {peer.version} in process"
    judges = [Judge(name=name, value=peer.p50_ms, guide=guide) for guide in (_GRPC_P50_MS, _IN_PROCESS_P50_MS)]
    yield Row.beside(
        1,
        f"{_WORK}; over gRPC, one client, p50",
        _OVER_GRPC_TIMES,
        over_grpc.p50_ms,
        judges[0],
        peer.line(),
        brief="Recall among 100,000 memories over gRPC",
    )
    yield Row.beside(
        2,
        f"{_WORK}; in process, p50",
        _IN_PROCESS_TIMES,
        in_process.p50_ms,
        judges[1],
        peer.line(),
        brief="The same in one process",
    )


def measure_over_grpc(
    filled: Filled, warm_up: Sequence[recall_pb2.RecallRequest], asked: Sequence[recall_pb2.RecallRequest]
) -> OverGrpc:
    """Recall through `hummock serve` and a socket, then the trivial server in its place."""
    first, messages = ([request.SerializeToString() for request in each] for each in (warm_up, asked))
    with filled.bench.serving() as service:
        recalls = timed(caller(service.channel, RECALL), first, messages)
    check_replies(recalls.replies)
    reply_bytes = fmean(map(len, recalls.replies))
    with trivial_server(round(reply_bytes)) as server:
        trivial = timed(caller(server.channel, CALL), first, messages)
    return OverGrpc(
        recall=Latency.of(recalls.times_s),
        trivial=Latency.of(trivial.times_s),
        request_bytes=fmean(map(len, messages)),
        reply_bytes=reply_bytes,
        stages_p50_ms=_stages(recalls.replies),
    )


def _stages(replies: Sequence[bytes]) -> dict[str, float]:
    stages: dict[str, list[float]] = {}
    for data in replies:
        for time_of in recall_pb2.RecallResponse.FromString(data).receipt.stages:
            stages.setdefault(
                recall_pb2.RecallStage.Name(time_of.stage).removeprefix("RECALL_STAGE_").lower(), []
            ).append(time_of.elapsed.ToNanoseconds() / 1e6)
    return {stage: median(times_ms) for stage, times_ms in stages.items()}


def _stages_line(stages_p50_ms: dict[str, float]) -> str:
    return ", ".join(f"{stage} {p50_ms:.3f}" for stage, p50_ms in stages_p50_ms.items())


if __name__ == "__main__":
    run_parts((measure,), __doc__)
