"""Recent activity and load of a service, as values: all of its processes together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLoad:
    """Load of one process. Every field is a whole number of at least 0.

    Attributes:
        running_calls: Calls in progress.
        waiting_calls: Calls that wait for a worker.
        cached_answers: Answers cached for repeated requests.
        cached_bytes: Their size in bytes.
        loaded_projects: Projects whose index is in memory.
        index_bytes: Their size in bytes.
        evicted_projects: Indexes evicted for lack of room, since the process began.
        lag_operations: Operations that the most outdated index has yet to apply; its next read applies them first.
        model_slots: Texts that may be embedded at a time, of queries and of documents each.
        busy_slots: Texts that are being embedded.
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
    """The calls of one method that have ended.

    Attributes:
        method: Its name on the wire, as "/hummock.v1.ContextService/Recall".
        ok_count: Calls since the service began that succeeded.
        failed_count: Calls since the service began that failed.
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
    """Counters of all processes of a service.

    Attributes:
        process_count: Processes that answer calls.
        window_s: Latencies cover the calls that ended in the last `window_s` seconds.
        methods: Methods that were called, in the contract's order.
        stages: Stages of recalls by the numbers of `RecallStage`, those that ran in the window.
        failures: Number of failed calls since the service began, by reason.
        recall_count: Recalls since the service began, those of Render and Search included.
        cache_hit_count: Those of them that were answered from the cache.
        recall_rates: Calls of Recall per second in each step, oldest first; the last step is still running.
        step_s: Seconds of a step.
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
