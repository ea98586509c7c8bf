"""The recalls that the benches ask for, and calls over gRPC and in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from bench.corpus import NOW_S, Corpus
from bench.service import BenchFailed
from hummock.v1 import memory_pb2, recall_pb2

RECALL = "/hummock.v1.ContextService/Recall"
LEARN = "/hummock.v1.ContextService/Learn"
WARM_UP_CALLS = 200
_CALL_S = 60.0

Call = Callable[[bytes], bytes]


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
            filter=memory_pb2.Filter(tags=tags),
            as_of=Timestamp(seconds=NOW_S),
            view=memory_pb2.MEMORY_VIEW_FULL,
        )
        for question in asked
    ]


def nearest_alone(request: recall_pb2.RecallRequest) -> recall_pb2.RecallRequest:
    """The same, of the vector path alone: the nearest in the order of similarity, none put back for its likeness."""
    alone = recall_pb2.RecallRequest()
    alone.CopyFrom(request)
    alone.paths.append(recall_pb2.RECALL_PATH_VECTOR)
    alone.relevance_weight = 1.0
    alone.near_twin_bar = 2.0
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
