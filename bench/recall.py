"""Part `recall`: one client's recalls in setting A, over gRPC and in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import grpc

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
from bench.command import Options
from bench.goals import Headline, Judge
from bench.peers.running import QDRANT_EDGE, run_peer
from bench.report import Findings
from bench.service import BenchFailed
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
_AGAIN = 200
"""Questions that are asked once more, which the recall cache answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverGrpc:
    """One client over a socket: latencies, and the sizes of messages.

    `cached` are recalls that the cache answers, `trivial` calls of a server that does nothing.
    """

    recall: Latency
    cached: Latency
    trivial: Latency
    request_bytes: float
    reply_bytes: float
    stages_p50_ms: dict[str, float]


def measure(options: Options) -> Findings:
    """Asks the questions over gRPC, once more, in process, and of a peer."""
    filled = options.stores.filled(A)
    # The questions of the warm-up are none of those that are measured.
    asked = recall_requests(filled.corpus, range(options.queries), TAG)
    others = range(options.queries, options.queries + WARM_UP_CALLS)
    warm_up = recall_requests(filled.corpus, others, TAG)
    over_grpc = measure_over_grpc(filled, warm_up, asked)
    in_process = in_process_latency(filled.bench, warm_up, asked)
    peer = run_peer(QDRANT_EDGE, filled, A.memories, options.stores.directory)
    bare = Judge(name=f"a bare reply by grpc.aio {grpc.__version__}", value=over_grpc.trivial.p50_ms)
    least = Judge(name=f"in process plus {bare.name}", value=in_process.p50_ms + bare.value)
    headlines = [
        Headline.of("wire", over_grpc.recall.p50_ms, least),
        Headline.of("cached", over_grpc.cached.p50_ms, bare),
    ]
    figures = [
        ("recall over gRPC, grpcio's client with bytes for messages", over_grpc.recall.line()),
        ("recall in process, all hits read", in_process.line()),
        ("the last questions again, from the recall cache", over_grpc.cached.line()),
        ("trivial RPC of equal sizes, bare grpc.aio server in a process of its own", over_grpc.trivial.line()),
        ("bytes of a request and of a reply, mean", f"{over_grpc.request_bytes:.0f}, {over_grpc.reply_bytes:.0f}"),
        ("stages of the receipt over gRPC, p50 ms", _stages_line(over_grpc.stages_p50_ms)),
        ("calls before those that count", str(WARM_UP_CALLS)),
        ("store A", "of an earlier run" if filled.reused else "learnt in this run"),
    ]
    if not isinstance(peer, str):
        judge = Judge(name=f"{peer.package} {peer.version} in process", value=peer.p50_ms)
        headlines.append(Headline.of("recall in process", in_process.p50_ms, judge))
        headlines.append(Headline.of("recall", over_grpc.recall.p50_ms, judge))
        figures.append((f"{peer.package} {peer.version}", peer.line()))
    return Findings(
        part=PART,
        headlines=tuple(headlines),
        figures=tuple(figures),
        skipped=(peer,) if isinstance(peer, str) else (),
        not_measured=NOT_MEASURED,
    )


def measure_over_grpc(
    filled: Filled, warm_up: Sequence[recall_pb2.RecallRequest], asked: Sequence[recall_pb2.RecallRequest]
) -> OverGrpc:
    """Recall through `hummock serve` and a socket, then the trivial server in its place."""
    first, messages = ([request.SerializeToString() for request in each] for each in (warm_up, asked))
    with filled.bench.serving() as service:
        recalls = timed(caller(service.channel, RECALL), first, messages)
        cached = timed(caller(service.channel, RECALL), (), messages[-_AGAIN:])
    check_replies(recalls.replies)
    if not all(recall_pb2.RecallResponse.FromString(reply).receipt.cached for reply in cached.replies):
        raise BenchFailed("a question that was asked again was not answered from the cache")
    reply_bytes = fmean(map(len, recalls.replies))
    with trivial_server(round(reply_bytes)) as server:
        trivial = timed(caller(server.channel, CALL), first, messages)
    return OverGrpc(
        recall=Latency.of(recalls.times_s),
        cached=Latency.of(cached.times_s),
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
