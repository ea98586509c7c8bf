"""The state of a service as gauges, read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from hummock.core.activity import Activity, ProcessLoad
from hummock.core.project import EmbeddingStatus, LearnerStatus, ServiceStatus, StoreStatus
from hummock.rpc.admission import Load

Loads: TypeAlias = Callable[[], Mapping[str, Load]]
"""The load of each lane, by its name."""


class StateCollector(Collector):
    """What a service says of itself, and how busy its lanes are. Asked on a thread of Prometheus."""

    def __init__(self, status: Callable[[], ServiceStatus], loads: Loads, activity: Callable[[], Activity]) -> None:
        """Asks these: the status, the load of this process's lanes, and what all processes do."""
        self._status = status
        self._loads = loads
        self._activity = activity

    def describe(self) -> Iterator[Metric]:
        """None ahead of time: registering need not ask a service that has not begun."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All of it, as of one moment each."""
        status, activity = self._status(), self._activity()
        yield InfoMetricFamily("hummock", "What runs.", value={"version": status.version, "model": status.space.model})
        yield GaugeMetricFamily("hummock_uptime_seconds", "Since the service began.", value=status.uptime_s)
        yield GaugeMetricFamily("hummock_readers", "Reader processes that answer.", value=activity.process_count - 1)
        yield from self._queues(activity.load)
        yield from _parts(activity.load)
        yield CounterMetricFamily(
            "hummock_cache_hits", "Recalls that were answered from the cache.", value=activity.cache_hit_count
        )
        yield from _store(status.store)
        yield from _embedding(status.embedding)
        yield from _learner(status.learner)

    def _queues(self, together: ProcessLoad) -> Iterator[Metric]:
        running = GaugeMetricFamily("hummock_queue_running", "Calls that are worked on, by lane.", labels=["lane"])
        waiting = GaugeMetricFamily("hummock_queue_waiting", "Calls that wait for a worker, by lane.", labels=["lane"])
        loads = self._loads()
        others_run = together.running_calls - sum(load.running for load in loads.values())
        others_wait = together.waiting_calls - sum(load.waiting for load in loads.values())
        # What runs here may have ended since all were asked.
        loads = {**loads, "readers": Load(running=max(0, others_run), waiting=max(0, others_wait))}
        for lane, load in loads.items():
            running.add_metric([lane], load.running)
            waiting.add_metric([lane], load.waiting)
        yield running
        yield waiting


def _parts(load: ProcessLoad) -> Iterator[Metric]:
    """Metrics that sum up all processes."""
    yield GaugeMetricFamily("hummock_cache_answers", "Answers of recalls that are kept.", value=load.cached_answers)
    yield GaugeMetricFamily("hummock_cache_bytes", "Of these answers.", value=load.cached_bytes)
    yield GaugeMetricFamily("hummock_views", "Indexes in memory, of all processes.", value=load.loaded_projects)
    yield GaugeMetricFamily("hummock_views_bytes", "Of these indexes.", value=load.index_bytes)
    yield CounterMetricFamily(
        "hummock_views_evicted", "Indexes that were given up for want of room.", value=load.evicted_projects
    )
    yield GaugeMetricFamily(
        "hummock_op_log_lag_operations",
        "Operations that the index furthest behind has not taken in.",
        value=load.lag_operations,
    )
    yield GaugeMetricFamily(
        "hummock_model_slots",
        "Texts that may be embedded at a time, of queries and of documents each.",
        value=load.model_slots,
    )
    yield GaugeMetricFamily("hummock_model_busy_slots", "Texts that are being embedded.", value=load.busy_slots)
    yield GaugeMetricFamily(
        "hummock_model_waiting_texts", "Texts of documents that wait for the model.", value=load.waiting_texts
    )


def _store(store: StoreStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily("hummock_store_used_bytes", "Of the data file, in use.", value=store.used_bytes)
    yield GaugeMetricFamily("hummock_store_quota_bytes", "Of the data file, allowed.", value=store.quota_bytes)
    yield GaugeMetricFamily("hummock_projects", "Projects.", value=store.project_count)
    yield GaugeMetricFamily(
        "hummock_projects_loaded", "Projects whose index is in memory.", value=store.loaded_project_count
    )
    yield GaugeMetricFamily("hummock_index_bytes", "Of these indexes.", value=store.loaded_bytes)
    yield GaugeMetricFamily(
        "hummock_writes_refused", "1 while writes are refused.", value=1 if store.write_fault else 0
    )
    yield GaugeMetricFamily(
        "hummock_clock_ahead_seconds", "Of the time by which memories are removed.", value=store.clock_ahead_s
    )
    yield CounterMetricFamily(
        "hummock_damaged_records", "Records that were not what was written.", value=store.damaged_count
    )


def _embedding(embedding: EmbeddingStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "hummock_embedding_pending_memories", "Memories that wait for their vectors.", value=embedding.pending
    )
    yield GaugeMetricFamily(
        "hummock_embedding_failed_memories", "Of these, on how many the model failed.", value=embedding.failed
    )
    yield CounterMetricFamily(
        "hummock_embedding_embedded_memories", "Memories that waited and were embedded.", value=embedding.embedded
    )
    yield CounterMetricFamily(
        "hummock_embedding_reused_memories",
        "Memories that waited and whose text had its vectors already.",
        value=embedding.reused,
    )


def _learner(learner: LearnerStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "hummock_learner_waiting_turns", "Turns that are to be learnt from.", value=learner.waiting_turns
    )
    yield CounterMetricFamily("hummock_learner_dropped_turns", "Turns that never were.", value=learner.dropped_turns)
    yield CounterMetricFamily(
        "hummock_learner_requests", "Sent to the language model, repeated ones included.", value=learner.requests
    )
    yield CounterMetricFamily("hummock_learner_replies", "Of these, answered usably.", value=learner.replies)
    tokens = CounterMetricFamily("hummock_learner_tokens", "That the language model counted.", labels=["kind"])
    tokens.add_metric(["prompt"], learner.prompt_tokens)
    tokens.add_metric(["completion"], learner.completion_tokens)
    yield tokens
