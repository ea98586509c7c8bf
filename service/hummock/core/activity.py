"""Recent activity and load of a service, as values: all of its processes together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLoad:
    """Load of one process: calls in progress or waiting for a worker, answers cached, projects with indexes in memory.

    Attributes:
        evicted_projects: Indexes evicted for lack of room, since the process began.
        lag_operations: Operations that the most outdated index has yet to apply; its next read applies them first.
        model_slots: Texts that may be embedded at a time, of queries and of documents each.
        waiting_texts: Texts of documents that wait for the model.
    """

    running_calls: int = 0
    waiting_calls: int = 0
    cached_answers: int = 0
    cached_bytes: int = 0
    loaded_projects: int = 0
    index_bytes: int = 0
    evicted_projects: int = 0
    lag_operations: int = 0
    model_slots: int = 0
    busy_slots: int = 0
    waiting_texts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency of the calls that ended in the window. Quantiles are off by a tenth at most; 0 for none."""

    count: int
    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodActivity:
    """The calls of one method that have ended; counts are since the service began.

    Attributes:
        method: Its name on the wire, as "/hummock.v1.ContextService/Recall".
        rate: Calls a second of the last minute, streams left out.
        latency: From arrival to answer, streams left out.
    """

    method: str
    ok_count: int
    failed_count: int
    rate: float
    latency: Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Counters of all processes of a service that answer calls; counts are since the service began.

    Attributes:
        window_s: Latencies cover the calls that ended in the last `window_s` seconds.
        methods: Methods that were called, in the contract's order.
        stages: Stages of recalls by the numbers of `RecallStage`, those that ran in the window.
        failures: Number of failed calls, by reason.
        recall_count: Recalls, those of Render and Search included; `cache_hit_count` were answered from the cache.
        recall_rates: Calls of Recall per second in each step of `step_s`, oldest first; the last one is still running.
        load: Sum over all processes; the lag is the greatest.
    """

    process_count: int
    window_s: float
    methods: tuple[MethodActivity, ...]
    stages: tuple[tuple[int, Latency], ...]
    failures: tuple[tuple[str, int], ...]
    recall_count: int
    cache_hit_count: int
    recall_rates: tuple[float, ...]
    step_s: float
    load: ProcessLoad
