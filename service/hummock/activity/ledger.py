"""The ledger of one process: calls that have ended, as numbers in a block of memory that another process may read.

A call that ends adds to some ten numbers in place; nothing is allocated, locked or sent. Times are counted in buckets,
a row of them for each method and each stage, in slots of STEP_S seconds. A slot says which step it counts, so that one
which nobody has written to for a while is known to be old; it is emptied when it is needed anew.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, fields, replace
from math import log2
from typing import Final, TypeAlias

from hummock.core.activity import ProcessLoad
from hummock.rpc.interceptor import EndedCall
from hummock.rpc.policy import SERVICES, name_of
from hummock_client.v1 import errors_pb2, recall_pb2

METHODS: Final = tuple(name_of(method) for service in SERVICES for method in service.methods)
STAGES: Final = max(recall_pb2.RecallStage.values()) + 1
"""Rows for stages: a stage's row is its number."""

CANCELLED: Final = "CANCELLED"
OTHER: Final = "OTHER"
_PREFIX: Final = "ERROR_REASON_"
REASONS: Final = (*(name.removeprefix(_PREFIX) for name in errors_pb2.ErrorReason.keys()[1:]), CANCELLED, OTHER)

STEP_S: Final = 20.0
WINDOW_STEPS: Final = 15
"""Whole steps that latencies tell of: five minutes."""
SLOTS: Final = WINDOW_STEPS + 1

BUCKETS: Final = 108
A_DOUBLING: Final = 4
"""Buckets from one time to twice that. The first one takes all below a microsecond, the last one all from 95 s on."""

ROWS: Final = len(METHODS) + STAGES

# Numbers of 64 bits: ok and failed by method, failures by reason, recalls, hits of the cache, load, steps of the slots.
OK_AT: Final = 0
FAILED_AT: Final = OK_AT + len(METHODS)
REASONS_AT: Final = FAILED_AT + len(METHODS)
RECALLS_AT: Final = REASONS_AT + len(REASONS)
HITS_AT: Final = RECALLS_AT + 1
LOAD_AT: Final = HITS_AT + 1
STEPS_AT: Final = LOAD_AT + len(fields(ProcessLoad))
TOTALS: Final = STEPS_AT + SLOTS

# Numbers of 32 bits: slots of rows of buckets.
SLOT_COUNTS: Final = ROWS * BUCKETS
COUNTS: Final = SLOTS * SLOT_COUNTS

LEDGER_BYTES: Final = 8 * TOTALS + 4 * COUNTS

_METHOD_OF: Final[Mapping[str, int]] = {method: number for number, method in enumerate(METHODS)}
_REASON_OF: Final[Mapping[str, int]] = {reason: number for number, reason in enumerate(REASONS)}
_EVICTED: Final = [field.name for field in fields(ProcessLoad)].index("evicted_projects")
_EMPTY_SLOT: Final = bytes(4 * SLOT_COUNTS)
_OK: Final = "OK"

Memory: TypeAlias = "mmap.mmap | bytearray"


class Ledger:
    """Counts the calls of one process. `ended` belongs to one thread; whoever reads may see a call in part."""

    def __init__(self, memory: Memory, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Counts on from what stands there.

        Args:
            memory: LEDGER_BYTES of it, zeros at first; a process that takes another's place takes its memory too.
            monotonic: Seconds, the same in all processes that share memory.
        """
        whole = memoryview(memory)[:LEDGER_BYTES]
        self._totals = whole[: 8 * TOTALS].cast("Q")
        self._counts = whole[8 * TOTALS :]
        self._cells = self._counts.cast("I")
        self._monotonic = monotonic
        self._step = -1
        self._begin = 0
        self._evicted_before = self._totals[LOAD_AT + _EVICTED]

    def ended(self, call: EndedCall) -> None:
        """Counts a call."""
        totals, method = self._totals, _METHOD_OF.get(call.method)
        if call.outcome != _OK:
            totals[REASONS_AT + _REASON_OF.get(call.reason, len(REASONS) - 1)] += 1
        if method is None:
            return
        totals[(OK_AT if call.outcome == _OK else FAILED_AT) + method] += 1
        if call.is_stream:
            return
        self._turn()
        cells, begin = self._cells, self._begin
        cells[begin + method * BUCKETS + bucket_of(call.took_s * 1e6)] += 1
        receipt = call.receipt
        if receipt is not None:
            totals[RECALLS_AT] += 1
            totals[HITS_AT] += receipt.cached
            begin += len(METHODS) * BUCKETS
            for one in receipt.stages:
                elapsed = one.elapsed
                cells[begin + one.stage * BUCKETS + bucket_of(elapsed.seconds * 1e6 + elapsed.nanos * 1e-3)] += 1

    def note(self, load: ProcessLoad) -> None:
        """Tells how busy the process is now. What was evicted before it took this place counts on."""
        together = replace(load, evicted_projects=load.evicted_projects + self._evicted_before)
        for place, value in enumerate(astuple(together), LOAD_AT):
            self._totals[place] = value

    def _turn(self) -> None:
        """Goes on to the slot of this moment, which is emptied where it counted another step."""
        step = int(self._monotonic() / STEP_S)
        if step != self._step:
            slot = step % SLOTS
            self._step, self._begin = step, slot * SLOT_COUNTS
            if self._totals[STEPS_AT + slot] != step:
                self._counts[4 * self._begin : 4 * (self._begin + SLOT_COUNTS)] = _EMPTY_SLOT
                self._totals[STEPS_AT + slot] = step


def bucket_of(elapsed_us: float) -> int:
    """The bucket that counts a time in microseconds."""
    if elapsed_us < 1.0:
        return 0
    bucket = int(A_DOUBLING * log2(elapsed_us)) + 1
    return bucket if bucket < BUCKETS else BUCKETS - 1


def time_of(bucket: int) -> float:
    """The middle, in ratios, of a bucket's times, in seconds: 2^(1/8) from its ends, which is nine hundredths."""
    return float(1e-6 * 2.0 ** ((bucket - 0.5) / A_DOUBLING))
