"""Metrics page for Prometheus, on a separate port of the loopback interface.

It has counts and times of calls, and the state of the service; no content, no names of projects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hummock.core.activity import Activity, ProcessLoad
from hummock.core.errors import StartError
from hummock.core.project import EmbeddingStatus, LearnerStatus, ServiceStatus, StoreStatus
from hummock.observe.ledger import CALL_S, METHODS, REASONS, STAGE_S, STATUSES
from hummock.rpc.admission import Load
from hummock.rpc.interceptor import stage_name
from hummock_client.v1 import recall_pb2

HOST: Final = "127.0.0.1"

Loads: TypeAlias = Callable[[], Mapping[str, Load]]
"""Returns the load of each lane by name."""
Numbers: TypeAlias = NDArray[np.void]
"""The numbers of all ledgers, one `ledger.LAYOUT` per process."""
Read: TypeAlias = tuple[str, str, float]
"""A metric without labels: its name, what it counts, and its value."""

_METHOD: Final = ("grpc_service", "grpc_method")
"""Labels, named as in gRPC's metrics interceptors for other languages."""
_METHODS: Final = [method.removeprefix("/").rsplit("/", 1) for method in METHODS]


@contextmanager
def metrics_page(port: int, state: StateCollector) -> Iterator[str]:
    """Serve the page for a block of code; yields its address.

    Args:
        port: Loopback port; 0 takes a free one.
        state: Collected for each request.

    Raises: StartError.
    """
    page = CollectorRegistry()
    ProcessCollector(registry=page)
    page.register(state)
    try:
        server, thread = start_http_server(port, HOST, page)
    except OSError as error:
        raise StartError(f"metrics_port {port} of {HOST} cannot be used: {error.strerror}") from error
    try:
        yield f"http://{HOST}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class StateCollector(Collector):
    """Collector of a service's counts, status and load. Called on a thread of the Prometheus client."""

    def __init__(
        self,
        status: Callable[[], ServiceStatus],
        loads: Loads,
        activity: Callable[[], Activity],
        numbers: Callable[[], Numbers],
    ) -> None:
        """Sources: status, load of this process's lanes, activity of all processes, and their ledgers' numbers."""
        self._status = status
        self._loads = loads
        self._activity = activity
        self._numbers = numbers

    def describe(self) -> Iterator[Metric]:
        """No metrics: registering must not query a service that has not started."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All metrics, each source read once."""
        status, activity = self._status(), self._activity()
        yield from _calls(self._numbers())
        yield InfoMetricFamily("hummock", "What runs.", value={"version": status.version, "model": status.space.model})
        yield from _gauges(
            ("uptime_seconds", "Since the service began.", status.uptime_s),
            ("readers", "Reader processes that answer.", activity.process_count - 1),
        )
        yield from self._queues(activity.load)
        yield from _parts(activity.load)
        yield from _counters(("cache_hits", "Recalls that were answered from the cache.", activity.cache_hit_count))
        yield from _store(status.store)
        yield from _embedding(status.embedding)
        yield from _learner(status.learner)

    def _queues(self, together: ProcessLoad) -> Iterator[Metric]:
        running = GaugeMetricFamily("hummock_queue_running", "Calls that are worked on, by lane.", labels=["lane"])
        waiting = GaugeMetricFamily("hummock_queue_waiting", "Calls that wait for a worker, by lane.", labels=["lane"])
        loads = self._loads()
        others_run = together.running_calls - sum(load.running for load in loads.values())
        others_wait = together.waiting_calls - sum(load.waiting for load in loads.values())
        # Calls of this process may have ended since `together` was read.
        loads = {**loads, "readers": Load(running=max(0, others_run), waiting=max(0, others_wait))}
        for lane, load in loads.items():
            running.add_metric([lane], load.running)
            waiting.add_metric([lane], load.waiting)
        yield running
        yield waiting


def _calls(numbers: Numbers) -> Iterator[Metric]:
    """Metrics of the ended calls of all processes."""
    handled = CounterMetricFamily(
        "grpc_server_handled", "Calls that have ended, by their status.", labels=(*_METHOD, "grpc_code")
    )
    statuses = numbers["statuses"].sum(axis=0)
    for method, status in np.argwhere(statuses).tolist():
        handled.add_metric((*_METHODS[method], STATUSES[status]), int(statuses[method, status]))
    handling = "What calls took from their arrival to their answer; streams are left out."
    waiting = "What calls waited before their work began; streams are left out."
    stages = "What the stages of recalls took, cached answers as one stage."
    failed = CounterMetricFamily(
        "hummock_calls_failed", "Calls that failed, by the reason that their callers are told.", labels=("reason",)
    )
    degraded = CounterMetricFamily(
        "hummock_recall_degraded", "What recalls had to leave out, by the reason.", labels=("reason",)
    )
    for name, count in zip(REASONS, numbers["reasons"].sum(axis=0).tolist(), strict=True):
        if count:
            failed.add_metric((name,), count)
    for reason, count in enumerate(numbers["degradations"].sum(axis=0).tolist()):
        if count:
            name = recall_pb2.DegradationReason.Name(recall_pb2.DegradationReason.ValueType(reason))
            degraded.add_metric((name.removeprefix("DEGRADATION_REASON_").lower(),), count)
    yield handled
    yield _filled(HistogramMetricFamily("grpc_server_handling_seconds", handling, labels=_METHOD), numbers, "took")
    yield _filled(HistogramMetricFamily("hummock_queue_wait_seconds", waiting, labels=_METHOD), numbers, "waited")
    yield _filled(HistogramMetricFamily("hummock_recall_stage_seconds", stages, labels=("stage",)), numbers, "stages")
    yield failed
    yield degraded


def _filled(family: HistogramMetricFamily, numbers: Numbers, name: str) -> Metric:
    """The family with all non-empty rows of a ledger's histogram."""
    bounds = STAGE_S if name == "stages" else CALL_S
    counts, sums = numbers[name].sum(axis=0), numbers[f"{name}_s"].sum(axis=0)
    for row in np.flatnonzero(counts.any(axis=1)).tolist():
        labels = (stage_name(recall_pb2.RecallStage.ValueType(row)),) if name == "stages" else _METHODS[row]
        edges = (*(str(float(bound)) for bound in bounds), "+Inf")
        cumulative = accumulate(counts[row].tolist())
        family.add_metric(labels, list(zip(edges, cumulative, strict=True)), sum_value=float(sums[row]))
    return family


def _parts(load: ProcessLoad) -> Iterator[Metric]:
    """Load metrics, summed over all processes."""
    yield from _gauges(
        ("cache_answers", "Answers of recalls that are kept.", load.cached_answers),
        ("cache_bytes", "Of these answers.", load.cached_bytes),
        ("views", "Indexes in memory, of all processes.", load.loaded_projects),
        ("views_bytes", "Of these indexes.", load.index_bytes),
        ("op_log_lag_operations", "Operations that the index furthest behind has not taken in.", load.lag_operations),
        ("model_slots", "Texts that may be embedded at a time, of queries and of documents each.", load.model_slots),
        ("model_busy_slots", "Texts that are being embedded.", load.busy_slots),
        ("model_waiting_texts", "Texts of documents that wait for the model.", load.waiting_texts),
    )
    yield from _counters(("views_evicted", "Indexes that were given up for want of room.", load.evicted_projects))


def _store(store: StoreStatus) -> Iterator[Metric]:
    yield from _gauges(
        ("store_used_bytes", "Of the data file, in use.", store.used_bytes),
        ("store_quota_bytes", "Of the data file, allowed.", store.quota_bytes),
        ("projects", "Projects.", store.project_count),
        ("projects_loaded", "Projects whose index is in memory.", store.loaded_project_count),
        ("index_bytes", "Of these indexes.", store.loaded_bytes),
        ("writes_refused", "1 while writes are refused.", 1 if store.write_fault else 0),
        ("clock_ahead_seconds", "Of the time by which memories are removed.", store.clock_ahead_s),
    )
    yield from _counters(("damaged_records", "Records that were not what was written.", store.damaged_count))


def _embedding(embedding: EmbeddingStatus) -> Iterator[Metric]:
    yield from _gauges(
        ("embedding_pending_memories", "Memories that wait for their vectors.", embedding.pending),
        ("embedding_failed_memories", "Of these, on how many the model failed.", embedding.failed),
    )
    reused = "Memories that waited and whose text had its vectors already."
    yield from _counters(
        ("embedding_embedded_memories", "Memories that waited and were embedded.", embedding.embedded),
        ("embedding_reused_memories", reused, embedding.reused),
    )


def _learner(learner: LearnerStatus) -> Iterator[Metric]:
    yield from _gauges(("learner_waiting_turns", "Turns that are to be learnt from.", learner.waiting_turns))
    yield from _counters(
        ("learner_dropped_turns", "Turns that never were.", learner.dropped_turns),
        ("learner_requests", "Sent to the language model, repeated ones included.", learner.requests),
        ("learner_replies", "Of these, answered usably.", learner.replies),
    )
    tokens = CounterMetricFamily("hummock_learner_tokens", "That the language model counted.", labels=["kind"])
    tokens.add_metric(["prompt"], learner.prompt_tokens)
    tokens.add_metric(["completion"], learner.completion_tokens)
    yield tokens


def _gauges(*read: Read) -> Iterator[Metric]:
    return (GaugeMetricFamily(f"hummock_{name}", what, value) for name, what, value in read)


def _counters(*read: Read) -> Iterator[Metric]:
    return (CounterMetricFamily(f"hummock_{name}", what, value) for name, what, value in read)
