"""The ledger of one process: counts of ended calls in a block of memory that other processes may read.

A call that ends adds to some twenty numbers in place; nothing is allocated, locked or sent. GetStatus and Prometheus
report sums of all ledgers. Times of the last minutes are counted in fine buckets, a row for each method and each stage,
in slots of STEP_S seconds. A slot has the number of its step, so that an old one is recognised; it is cleared before it
is reused.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields, replace
from functools import partial
from typing import Final, TypeAlias

import grpc
import numpy as np
from numpy.typing import NDArray

from hummock.core.activity import Activity, Latency, MethodActivity, ProcessLoad
from hummock.rpc.admission import Load
from hummock.rpc.interceptor import EndedCall
from hummock.rpc.policy import SERVICES, name_of
from hummock_client.v1 import errors_pb2, recall_pb2

METHODS: Final = tuple(name_of(method) for service in SERVICES for method in service.methods)
STAGES: Final = max(recall_pb2.RecallStage.values()) + 1
"""Number of rows for stages; a stage's row is its number."""
_DEGRADATIONS: Final = max(recall_pb2.DegradationReason.values()) + 1
STATUSES: Final = tuple(status.name for status in grpc.StatusCode)

CANCELLED: Final = "CANCELLED"
OTHER: Final = "OTHER"
_PREFIX: Final = "ERROR_REASON_"
REASONS: Final = (*(name.removeprefix(_PREFIX) for name in errors_pb2.ErrorReason.keys()[1:]), CANCELLED, OTHER)

CALL_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
STAGE_S: Final = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2)
"""Upper bounds, in seconds, of the Prometheus buckets; one more bucket counts larger times."""
_CALL_BUCKETS: Final = len(CALL_S) + 1
_STAGE_BUCKETS: Final = len(STAGE_S) + 1

STEP_S: Final = 20.0
WINDOW_STEPS: Final = 15
"""Number of whole steps in the latency window: five minutes."""
_SLOTS: Final = WINDOW_STEPS + 1
_MINUTE_STEPS: Final = 3

BUCKETS: Final = 108
_A_DOUBLING: Final = 4
"""Buckets per doubling of the time. The first counts all below a microsecond, the last all from 95 s on."""

bucket_of: Final = partial(bisect_right, [2.0 ** (step / _A_DOUBLING) for step in range(BUCKETS - 1)])
"""Bucket of a time in microseconds."""

_ROWS: Final = len(METHODS) + STAGES
_LOAD: Final = tuple(field.name for field in fields(ProcessLoad))

LAYOUT: Final = np.dtype(
    [
        ("statuses", np.uint64, (len(METHODS), len(STATUSES))),
        ("reasons", np.uint64, (len(REASONS),)),
        ("degradations", np.uint64, (_DEGRADATIONS,)),
        ("recalls", np.uint64, (2,)),
        ("load", np.uint64, (len(_LOAD),)),
        ("took", np.uint64, (len(METHODS), _CALL_BUCKETS)),
        ("took_s", np.float64, (len(METHODS),)),
        ("waited", np.uint64, (len(METHODS), _CALL_BUCKETS)),
        ("waited_s", np.float64, (len(METHODS),)),
        ("stages", np.uint64, (STAGES, _STAGE_BUCKETS)),
        ("stages_s", np.float64, (STAGES,)),
        ("steps", np.uint64, (_SLOTS,)),
        ("recent", np.uint32, (_SLOTS, _ROWS, BUCKETS)),
    ]
)
"""Numbers of a ledger. `recalls` has all and cached ones; each `…_s` is the sum of a histogram's seconds."""

LEDGER_BYTES: Final = LAYOUT.itemsize

_METHOD_OF: Final[Mapping[str, int]] = {method: number for number, method in enumerate(METHODS)}
_REASON_OF: Final[Mapping[str, int]] = {reason: number for number, reason in enumerate(REASONS)}
_STATUS_OF: Final[Mapping[str, int]] = {status: number for number, status in enumerate(STATUSES)}
_EVICTED: Final = _LOAD.index("evicted_projects")
_LAG: Final = _LOAD.index("lag_operations")
_OK: Final = STATUSES.index("OK")
_UNKNOWN: Final = STATUSES.index("UNKNOWN")
_RECALL: Final = METHODS.index("/hummock.v1.ContextService/Recall")
_NONE: Final = Latency(count=0, p50_s=0.0, p95_s=0.0, p99_s=0.0)

Memory: TypeAlias = "mmap.mmap | bytearray"


class Ledger:
    """Counts the calls of one process. Only one thread may call `ended`; readers may see a call counted in part."""

    def __init__(self, memory: Memory, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Continue the counts in a block of memory.

        Args:
            memory: LEDGER_BYTES bytes, initially zero; a process that replaces another continues its block.
            monotonic: Seconds, the same in all processes that share memory.
        """
        numbers = np.frombuffer(memory, LAYOUT, 1)[0]
        # Incrementing an element of a memory view is three times as fast as one of an array.
        self._statuses, self._reasons = _counts(numbers["statuses"]), _counts(numbers["reasons"])
        self._degradations, self._recalls = _counts(numbers["degradations"]), _counts(numbers["recalls"])
        self._took, self._took_s = _counts(numbers["took"]), _seconds(numbers["took_s"])
        self._waited, self._waited_s = _counts(numbers["waited"]), _seconds(numbers["waited_s"])
        self._stages, self._stages_s = _counts(numbers["stages"]), _seconds(numbers["stages_s"])
        self._load = numbers["load"]
        self._steps, self._recent = numbers["steps"], numbers["recent"]
        self._slot = memoryview(self._recent[0].reshape(-1))
        self._monotonic = monotonic
        self._step = -1
        self._evicted_before = int(self._load[_EVICTED])

    def ended(self, call: EndedCall) -> None:
        """Count a call."""
        status, method = _STATUS_OF.get(call.outcome, _UNKNOWN), _METHOD_OF.get(call.method)
        if status != _OK:
            self._reasons[_REASON_OF.get(call.reason, len(REASONS) - 1)] += 1
        if method is None:
            return
        self._statuses[method * len(STATUSES) + status] += 1
        if call.is_stream:
            return
        step = int(self._monotonic() / STEP_S)
        if step != self._step:
            self._turn(step)
        took_s, waited_s = call.took_s, call.waited_s
        self._slot[method * BUCKETS + bucket_of(took_s * 1e6)] += 1
        self._took[method * _CALL_BUCKETS + bisect_left(CALL_S, took_s)] += 1
        self._took_s[method] += took_s
        if waited_s is not None:
            self._waited[method * _CALL_BUCKETS + bisect_left(CALL_S, waited_s)] += 1
            self._waited_s[method] += waited_s
        for left_out in call.degraded:
            self._degradations[left_out.reason] += 1
        if call.receipt is not None:
            self._recalls[0] += 1
            self._recalls[1] += call.receipt.cached
            for one in call.receipt.stages:
                stage, elapsed = one.stage, one.elapsed
                elapsed_s = elapsed.seconds + elapsed.nanos * 1e-9
                self._slot[(len(METHODS) + stage) * BUCKETS + bucket_of(elapsed_s * 1e6)] += 1
                self._stages[stage * _STAGE_BUCKETS + bisect_left(STAGE_S, elapsed_s)] += 1
                self._stages_s[stage] += elapsed_s

    def note(self, load: ProcessLoad) -> None:
        """Set the process's present load. Evictions of the process that it replaced are added."""
        self._load[:] = astuple(replace(load, evicted_projects=load.evicted_projects + self._evicted_before))

    def _turn(self, step: int) -> None:
        """Switch to the slot of a step, clearing an older step's counts."""
        place = step % _SLOTS
        if self._steps[place] != step:
            self._recent[place] = 0
            self._steps[place] = step
        self._step, self._slot = step, memoryview(self._recent[place].reshape(-1))


def _counts(numbers: NDArray[np.uint64]) -> memoryview:
    return numbers.reshape(-1).data


def _seconds(numbers: NDArray[np.float64]) -> memoryview[float]:
    return numbers.data.cast("B").cast("d")


class Ledgers:
    """The ledgers of a service and its reader processes."""

    def __init__(self, readers: Sequence[int]) -> None:
        """Start counting; `readers` are descriptors of memory blocks, one for each reader."""
        self.readers = tuple(readers)
        self._memories = (mmap.mmap(-1, LEDGER_BYTES), *(mmap.mmap(each, LEDGER_BYTES) for each in readers))
        self._began_s = time.monotonic()
        self.own = Ledger(self._memories[0])

    def activity(self, load: ProcessLoad, calls: Load, living_readers: int) -> Activity:
        """Activity of all processes, given this process's load and numbers of calls."""
        self.own.note(replace(load, running_calls=calls.running, waiting_calls=calls.waiting))
        return summed(self._memories, 1 + living_readers, time.monotonic() - self._began_s)

    def numbers(self) -> NDArray[np.void]:
        """All present numbers, one LAYOUT per process."""
        return numbers_of(self._memories)


@contextmanager
def ledgers_with(reader_count: int) -> Iterator[Ledgers]:
    """The ledgers of a service and `reader_count` readers, for a block of code.

    Those of readers are in anonymous shared memory, so that nothing remains however a process dies. Readers exist on
    Linux only.
    """
    descriptors: list[int] = []
    try:
        if sys.platform == "linux":
            for _ in range(reader_count):
                descriptors.append(os.memfd_create("hummock-activity"))
                os.ftruncate(descriptors[-1], LEDGER_BYTES)
        yield Ledgers(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def ledger_of_reader(descriptor: int | None) -> Ledger:
    """The ledger of a reader: the service's block, or a private one without a descriptor."""
    return Ledger(mmap.mmap(-1 if descriptor is None else descriptor, LEDGER_BYTES))


def time_of(bucket: int) -> float:
    """Geometric mean of a bucket's bounds, in seconds: a factor of 2^(1/8) from either, about 9 %."""
    return float(1e-6 * 2.0 ** ((bucket - 0.5) / _A_DOUBLING))


def numbers_of(memories: Sequence[Memory]) -> NDArray[np.void]:
    """Copy of all ledgers' numbers, one LAYOUT each."""
    return np.concatenate([np.frombuffer(memory, LAYOUT, 1) for memory in memories])


def summed(
    memories: Sequence[Memory], process_count: int, uptime_s: float, monotonic: Callable[[], float] = time.monotonic
) -> Activity:
    """Sum of all ledgers.

    Args:
        memories: One block of LEDGER_BYTES per process.
        process_count: Number of living processes.
        uptime_s: Seconds since the first process began; rates cover at most this time.
        monotonic: The ledgers' clock.
    """
    now_s = monotonic()
    numbers = numbers_of(memories)
    steps = _steps(numbers, int(now_s / STEP_S))
    window, statuses = steps.sum(axis=0), numbers["statuses"].sum(axis=0)
    calls = steps[:, : len(METHODS)].sum(axis=2)
    since_s = now_s % STEP_S
    lately = calls[-1 - _MINUTE_STEPS :].sum(axis=0)
    minute_s = max(1.0, min(_MINUTE_STEPS * STEP_S + since_s, uptime_s))
    recall_count, cache_hit_count = numbers["recalls"].sum(axis=0).tolist()
    return Activity(
        process_count=process_count,
        window_s=min(WINDOW_STEPS * STEP_S + since_s, uptime_s),
        methods=tuple(
            MethodActivity(
                method=name,
                ok_count=int(statuses[row, _OK]),
                failed_count=int(statuses[row].sum() - statuses[row, _OK]),
                rate=float(lately[row]) / minute_s,
                latency=_latency(window[row]),
            )
            for row, name in enumerate(METHODS)
            if statuses[row].any()
        ),
        stages=tuple(
            (stage, latency)
            for stage in range(STAGES)
            if (latency := _latency(window[len(METHODS) + stage])) is not _NONE
        ),
        failures=_failures(numbers["reasons"].sum(axis=0)),
        recall_count=recall_count,
        cache_hit_count=cache_hit_count,
        recall_rates=(
            *(float(count) / STEP_S for count in calls[:-1, _RECALL]),
            float(calls[-1, _RECALL]) / max(1.0, since_s),
        ),
        step_s=STEP_S,
        load=_load(numbers["load"]),
    )


def _steps(numbers: NDArray[np.void], newest: int) -> NDArray[np.int64]:
    """Counts by step, row and bucket, the newest step last; slots of older steps are left out."""
    steps = np.zeros((_SLOTS, _ROWS, BUCKETS), np.int64)
    for of_steps, recent in zip(numbers["steps"], numbers["recent"], strict=True):
        for back in range(_SLOTS):
            slot = (newest - back) % _SLOTS
            if int(of_steps[slot]) == newest - back:
                steps[_SLOTS - 1 - back] += recent[slot]
    return steps


def _latency(buckets: NDArray[np.int64]) -> Latency:
    count = int(buckets.sum())
    if not count:
        return _NONE
    # Nearest rank: the first bucket at which the cumulative count reaches the quantile.
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
