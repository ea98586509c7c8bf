"""The recalls that the benches ask for, over gRPC and in this process, and how long they take."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from bench.corpus import NOW_S, Corpus
from bench.service import Bench, BenchFailed
from hummock.core.recall import Recalled
from hummock.rpc.recall_messages import recall_query
from hummock.wiring.parts import tune_interpreter
from hummock.wiring.service import open_use_cases
from hummock_client.v1 import memory_pb2, recall_pb2

RECALL = "/hummock.v1.ContextService/Recall"
LEARN = "/hummock.v1.ContextService/Learn"
WARM_UP_CALLS = 200
TAG = "quarter"
"""Tag that recalls filter by, unless a part says otherwise."""
_CALL_S = 60.0
_CALLS_FOR_P99_9 = 1000

Call = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds of `calls` calls that came one after the other.

    A percentile is a time that was measured (the smallest that so many calls did not exceed); with few calls the
    high ones are the slowest call.
    """

    calls: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p99_9_ms: float
    max_ms: float

    def line(self) -> str:
        """A line for people. With fewer than 1,000 calls p99.9 would be the slowest of them, so it is left out."""
        tail = f", p99.9 {self.p99_9_ms:.2f}" if self.calls >= _CALLS_FOR_P99_9 else ""
        shown = f"p50 {self.p50_ms:.3f}, p95 {self.p95_ms:.2f}, p99 {self.p99_ms:.2f}{tail}, max {self.max_ms:.2f}"
        return f"{shown} ms ({self.calls} calls)"

    @classmethod
    def of(cls, times_s: Sequence[float]) -> Latency:
        """Percentiles of at least one time."""
        ordered = sorted(times_s)
        return cls(
            calls=len(ordered),
            p50_ms=_percentile_ms(ordered, 0.5),
            p95_ms=_percentile_ms(ordered, 0.95),
            p99_ms=_percentile_ms(ordered, 0.99),
            p99_9_ms=_percentile_ms(ordered, 0.999),
            max_ms=round(ordered[-1] * 1000, 4),
        )


def _percentile_ms(ordered_s: Sequence[float], share: float) -> float:
    return round(ordered_s[math.ceil(share * len(ordered_s)) - 1] * 1000, 4)


def recall_requests(corpus: Corpus, numbers: Iterable[int], *tags: str) -> list[recall_pb2.RecallRequest]:
    """A recall for each of these questions of the corpus: both paths, a filter by tags, the best 10 of 50, in full.

    It is the agent's plan: vector, words and domain names, 50 candidates each, made to differ from each other (maximal
    marginal relevance), payloads included. No two of them are alike, so that no answer comes from the recall cache.
    """
    asked = (corpus.question(number) for number in numbers)
    return [
        recall_pb2.RecallRequest(
            project=question.project,
            query_text=question.text,
            query_vector=question.vector,
            preset=recall_pb2.PRESET_AGENT,
            filter=memory_pb2.MemoryFilter(tags=tags),
            as_of=Timestamp(seconds=NOW_S),
            view=memory_pb2.MEMORY_VIEW_FULL,
        )
        for question in asked
    ]


def recall_messages(corpus: Corpus, numbers: Iterable[int], *tags: str) -> list[bytes]:
    """Serialised requests like those of `recall_requests`."""
    return [request.SerializeToString() for request in recall_requests(corpus, numbers, *tags)]


def nearest_alone(request: recall_pb2.RecallRequest) -> recall_pb2.RecallRequest:
    """A copy of the request for the vector path alone: nearest first by similarity, near-twins not demoted."""
    alone = recall_pb2.RecallRequest()
    alone.CopyFrom(request)
    alone.paths.append(recall_pb2.RECALL_PATH_VECTOR)
    alone.tuning.relevance_weight = 1.0
    alone.tuning.near_twin_bar = 2.0
    alone.view = memory_pb2.MEMORY_VIEW_INDEX
    return alone


def caller(channel: grpc.Channel, method: str) -> Call:
    """Calls of a method with bytes for messages: the client's protobuf is no part of what is measured."""
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    return lambda request: bytes(call(request, timeout=_CALL_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Calls that came one after the other: seconds of each, and their replies."""

    times_s: list[float]
    replies: list[bytes]


def timed(call: Call, warm_up: Sequence[bytes], asked: Sequence[bytes]) -> Timed:
    """The warm-up's calls, which do not count, then each of the others."""
    for request in warm_up:
        call(request)
    times_s, replies = [], []
    for request in asked:
        started_s = time.perf_counter()
        reply = call(request)
        times_s.append(time.perf_counter() - started_s)
        replies.append(reply)
    return Timed(times_s=times_s, replies=replies)


def check_replies(replies: Iterable[bytes]) -> None:
    """Raises: BenchFailed: a recall found nothing, had to leave something out, or came from the cache."""
    for data in replies:
        reply = recall_pb2.RecallResponse.FromString(data)
        if not reply.hits or reply.degraded or reply.receipt.cached:
            raise BenchFailed(f"{len(reply.hits)} hits, degraded {list(reply.degraded)}, cached {reply.receipt.cached}")


def in_process_latency(
    bench: Bench, warm_up: Sequence[recall_pb2.RecallRequest], asked: Sequence[recall_pb2.RecallRequest]
) -> Latency:
    """A query goes in, the hits are read; one after the other, after a warm-up that does not count."""
    with open_use_cases(bench.settings(), say=lambda line: None) as use_cases:
        for request in warm_up:
            read_all(use_cases.recall(recall_query(request)))
        queries = [recall_query(request) for request in asked]
        times_s = []
        with settled():
            for query in queries:
                started_s = time.perf_counter()
                read_all(use_cases.recall(query))
                times_s.append(time.perf_counter() - started_s)
    return Latency.of(times_s)


@contextmanager
def settled() -> Iterator[None]:
    """Has this process collect garbage and switch threads as the service does after its start."""
    interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.collect()
    tune_interpreter()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)


def read_all(recalled: Recalled) -> int:
    """Characters of what a caller reads of an answer: what is decoded late is decoded here."""
    return sum(
        len(hit.memory.id) + len(hit.memory.payload.content if hit.memory.payload else "") for hit in recalled.hits
    )
