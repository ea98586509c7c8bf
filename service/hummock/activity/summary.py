"""What the ledgers of all processes say together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.activity.ledger import (
    BUCKETS,
    CANCELLED,
    COUNTS,
    FAILED_AT,
    HITS_AT,
    LOAD_AT,
    METHODS,
    OK_AT,
    OTHER,
    REASONS,
    REASONS_AT,
    RECALLS_AT,
    ROWS,
    SLOTS,
    STAGES,
    STEP_S,
    STEPS_AT,
    TOTALS,
    WINDOW_STEPS,
    Memory,
    time_of,
)
from hummock.core.activity import Activity, Latency, MethodActivity, ProcessLoad

_RECALL: Final = METHODS.index("/hummock.v1.ContextService/Recall")
_MINUTE_STEPS: Final = 3
_LOAD: Final = tuple(field.name for field in fields(ProcessLoad))
_LAG: Final = _LOAD.index("lag_operations")
_NONE: Final = Latency(count=0, p50_s=0.0, p95_s=0.0, p99_s=0.0)


def summed(
    memories: Sequence[Memory], process_count: int, uptime_s: float, monotonic: Callable[[], float] = time.monotonic
) -> Activity:
    """The sums of all ledgers.

    Args:
        memories: One a process, LEDGER_BYTES each.
        process_count: How many of the processes live.
        uptime_s: Since the first of them began: rates are of no more than that.
        monotonic: As the ledgers have it.
    """
    now_s = monotonic()
    totals = np.stack([np.frombuffer(memory, np.uint64, TOTALS) for memory in memories])
    steps = _steps(memories, totals, int(now_s / STEP_S))
    window, sums = steps.sum(axis=0), totals.sum(axis=0)
    calls = steps[:, : len(METHODS)].sum(axis=2)
    since_s = now_s % STEP_S
    lately = calls[-1 - _MINUTE_STEPS :].sum(axis=0)
    minute_s = max(1.0, min(_MINUTE_STEPS * STEP_S + since_s, uptime_s))
    return Activity(
        process_count=process_count,
        window_s=min(WINDOW_STEPS * STEP_S + since_s, uptime_s),
        methods=tuple(
            MethodActivity(
                method=name,
                ok_count=int(sums[OK_AT + row]),
                failed_count=int(sums[FAILED_AT + row]),
                rate=float(lately[row]) / minute_s,
                latency=_latency(window[row]),
            )
            for row, name in enumerate(METHODS)
            if sums[OK_AT + row] or sums[FAILED_AT + row]
        ),
        stages=tuple(
            (stage, latency)
            for stage in range(STAGES)
            if (latency := _latency(window[len(METHODS) + stage])) is not _NONE
        ),
        failures=_failures(sums[REASONS_AT : REASONS_AT + len(REASONS)]),
        recall_count=int(sums[RECALLS_AT]),
        cache_hit_count=int(sums[HITS_AT]),
        recall_rates=(
            *(float(count) / STEP_S for count in calls[:-1, _RECALL]),
            float(calls[-1, _RECALL]) / max(1.0, since_s),
        ),
        step_s=STEP_S,
        load=_load(totals[:, LOAD_AT : LOAD_AT + len(_LOAD)]),
    )


def _steps(memories: Sequence[Memory], totals: NDArray[np.uint64], newest: int) -> NDArray[np.int64]:
    """Counts by step, row and bucket, the newest step last; what a slot counted before is left out."""
    steps = np.zeros((SLOTS, ROWS, BUCKETS), np.int64)
    for memory, numbers in zip(memories, totals, strict=True):
        counts = np.frombuffer(memory, np.uint32, COUNTS, offset=8 * TOTALS).reshape(SLOTS, ROWS, BUCKETS)
        for back in range(SLOTS):
            slot = (newest - back) % SLOTS
            if int(numbers[STEPS_AT + slot]) == newest - back:
                steps[SLOTS - 1 - back] += counts[slot]
    return steps


def _latency(buckets: NDArray[np.int64]) -> Latency:
    count = int(buckets.sum())
    if not count:
        return _NONE
    # The bucket of the smallest time that as many as the quantile says did not exceed.
    ranks = np.ceil(np.array([0.5, 0.95, 0.99]) * count)
    p50_s, p95_s, p99_s = map(time_of, np.searchsorted(np.cumsum(buckets), ranks).tolist())
    return Latency(count=count, p50_s=p50_s, p95_s=p95_s, p99_s=p99_s)


def _failures(counts: NDArray[np.uint64]) -> tuple[tuple[str, int], ...]:
    found = [(reason, int(count)) for reason, count in zip(REASONS, counts, strict=True) if count]
    return tuple(sorted(found, key=lambda one: (-one[1], one[0] in {CANCELLED, OTHER}, one[0])))


def _load(loads: NDArray[np.uint64]) -> ProcessLoad:
    together = loads.sum(axis=0)
    together[_LAG] = loads[:, _LAG].max()
    return ProcessLoad(**dict(zip(_LOAD, map(int, together), strict=True)))
