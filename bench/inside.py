"""Recalls in this process: the use case that the service calls, without a wire format."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.latency import Latency
from bench.service import Bench
from hummock.core.recall import Recalled
from hummock.rpc.recall_messages import recall_query
from hummock.v1 import recall_pb2
from hummock.wiring.service import open_use_cases


def in_process_latency(
    bench: Bench, warm_up: Sequence[recall_pb2.RecallRequest], asked: Sequence[recall_pb2.RecallRequest]
) -> Latency:
    """A query goes in, the hits are read; one after the other, behind a warm-up that does not count."""
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
    """As in the service after its start: the collector need not look through what is there already."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def read_all(recalled: Recalled) -> int:
    """Characters of what a caller reads of an answer: what is decoded late is decoded here."""
    return sum(
        len(hit.memory.id) + len(hit.memory.payload.content if hit.memory.payload else "") for hit in recalled.hits
    )
