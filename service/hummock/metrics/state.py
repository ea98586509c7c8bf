"""The state of a service as gauges, read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from hummock.core.project import EmbeddingStatus, LearnerStatus, ServiceStatus, StoreStatus
from hummock.rpc.admission import Load

Loads: TypeAlias = Callable[[], Mapping[str, Load]]
"""The load of each lane, by its name."""


class StateCollector(Collector):
    """What a service says of itself, and how busy its lanes are. Asked on a thread of Prometheus."""

    def __init__(self, status: Callable[[], ServiceStatus], loads: Loads, readers: Callable[[], int]) -> None:
        """Asks these: the status, the lanes' load, and how many readers answer."""
        self._status = status
        self._loads = loads
        self._readers = readers

    def describe(self) -> Iterator[Metric]:
        """None ahead of time: registering need not ask a service that has not begun."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All of it, as of one moment each."""
        status = self._status()
        yield InfoMetricFamily("hummock", "What runs.", value={"version": status.version, "model": status.space.model})
        yield GaugeMetricFamily("hummock_uptime_seconds", "Since the service began.", value=status.uptime_s)
        yield GaugeMetricFamily("hummock_readers", "Reader processes that answer.", value=self._readers())
        yield from self._queues()
        yield from _store(status.store)
        yield from _embedding(status.embedding)
        yield from _learner(status.learner)

    def _queues(self) -> Iterator[Metric]:
        running = GaugeMetricFamily("hummock_queue_running", "Calls that are worked on, by lane.", labels=["lane"])
        waiting = GaugeMetricFamily("hummock_queue_waiting", "Calls that wait for a worker, by lane.", labels=["lane"])
        for lane, load in self._loads().items():
            running.add_metric([lane], load.running)
            waiting.add_metric([lane], load.waiting)
        yield running
        yield waiting


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
