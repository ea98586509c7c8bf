"""Ledgers and their sums: quantiles near the exact ones, old calls out of them, processes together."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.activity import Activity, MethodActivity, ProcessLoad
from hummock.observe.ledger import (
    BUCKETS,
    LEDGER_BYTES,
    OTHER,
    STEP_S,
    WINDOW_STEPS,
    Ledger,
    bucket_of,
    summed,
    time_of,
)
from hummock.rpc.interceptor import EndedCall
from hummock_client.v1 import recall_pb2

RECALL = "/hummock.v1.ContextService/Recall"
WATCH = "/hummock.v1.MemoryService/WatchMemories"


class Desk:
    """Ledgers over memory that is there, and a clock that is moved by hand."""

    def __init__(self, count: int = 1) -> None:
        self.now_s = 1000 * STEP_S
        self.memories = [bytearray(LEDGER_BYTES) for _ in range(count)]
        self.ledgers = [Ledger(memory, self.monotonic) for memory in self.memories]

    def monotonic(self) -> float:
        return self.now_s

    def call(self, took_s: float = 0.002, *, by: int = 0, method: str = RECALL, **more: object) -> None:
        ended = EndedCall(
            method=method, outcome="OK", reason="", took_s=took_s, waited_s=0.0, is_stream=False, receipt=None,
            degraded=(), ended_at=0.0, trace={},
        )  # fmt: skip
        self.ledgers[by].ended(replace(ended, **more))

    def sums(self, uptime_s: float = math.inf) -> Activity:
        return summed(self.memories, len(self.memories), uptime_s, self.monotonic)

    def of(self, method: str = RECALL) -> MethodActivity:
        return next(each for each in self.sums().methods if each.method == method)


def _receipt(*stages: tuple[int, float], cached: bool = False) -> recall_pb2.Receipt:
    receipt = recall_pb2.Receipt(cached=cached)
    for stage, took_s in stages:
        receipt.stages.add(stage=recall_pb2.RecallStage.ValueType(stage)).elapsed.FromNanoseconds(round(took_s * 1e9))
    return receipt


@given(st.lists(st.floats(min_value=2e-6, max_value=90.0), min_size=1, max_size=60))
def test_quantiles_are_within_a_tenth_of_the_exact_ones(times_s: list[float]) -> None:
    desk = Desk()
    for took_s in times_s:
        desk.call(took_s)
    latency, ordered = desk.of().latency, sorted(times_s)
    assert latency.count == len(times_s)
    for share, told_s in ((0.5, latency.p50_s), (0.95, latency.p95_s), (0.99, latency.p99_s)):
        exact_s = ordered[math.ceil(share * len(ordered)) - 1]
        assert 0.9 * exact_s <= told_s <= 1.1 * exact_s


@given(st.floats(min_value=0.0, allow_infinity=False))
def test_every_time_has_a_bucket(elapsed_us: float) -> None:
    assert 0 <= bucket_of(elapsed_us) < BUCKETS


def test_the_middle_of_a_bucket_is_in_it() -> None:
    assert [bucket for bucket in range(1, BUCKETS) if bucket_of(time_of(bucket) * 1e6) != bucket] == []


def test_what_is_older_than_the_window_is_counted_and_not_timed() -> None:
    desk = Desk()
    desk.call(5.0)
    desk.now_s += STEP_S * WINDOW_STEPS
    desk.call(0.001)
    assert desk.of().latency.count == 2
    desk.now_s += STEP_S
    assert desk.of().latency.count == 1
    # Long after that the slots are used anew, with nothing left in them.
    desk.now_s += STEP_S * 1000 * (WINDOW_STEPS + 1)
    desk.call(0.001)
    assert (desk.of().latency.count, desk.of().ok_count) == (1, 3)
    assert desk.of().latency.p99_s < 0.0012


def test_the_rate_is_that_of_the_last_minute_or_of_the_time_since_the_start() -> None:
    desk = Desk()
    for _ in range(120):
        desk.call()
    assert desk.sums(uptime_s=10.0).methods[0].rate == 12.0
    desk.now_s += 60.0
    assert desk.of().rate == 2.0
    assert desk.sums().recall_rates[-4:] == (120 / STEP_S, 0.0, 0.0, 0.0)
    desk.now_s += 60.0
    assert desk.of().rate == 0.0


def test_processes_are_summed_and_the_lag_is_the_greatest() -> None:
    desk = Desk(3)
    for number, ledger in enumerate(desk.ledgers):
        desk.call(0.001, by=number, receipt=_receipt((4, 0.0005)))
        ledger.note(ProcessLoad(running_calls=number, cached_bytes=100, lag_operations=(0, 7, 3)[number]))
    sums = desk.sums()
    assert sums.process_count == 3
    assert [(each.method, each.ok_count) for each in sums.methods] == [(RECALL, 3)]
    assert (sums.load.running_calls, sums.load.cached_bytes, sums.load.lag_operations) == (3, 300, 7)
    assert [(stage, latency.count) for stage, latency in sums.stages] == [(4, 3)]


def test_a_process_that_takes_anothers_place_counts_on() -> None:
    desk = Desk()
    desk.call()
    desk.ledgers[0].note(ProcessLoad(evicted_projects=5, loaded_projects=4))
    desk.ledgers[0] = Ledger(desk.memories[0], desk.monotonic)
    desk.call()
    desk.ledgers[0].note(ProcessLoad(evicted_projects=1, loaded_projects=2))
    desk.ledgers[0].note(ProcessLoad(evicted_projects=2, loaded_projects=2))
    assert desk.of().ok_count == desk.of().latency.count == 2
    assert (desk.sums().load.evicted_projects, desk.sums().load.loaded_projects) == (7, 2)


def test_failures_are_counted_by_their_reason_the_most_frequent_first() -> None:
    desk = Desk()
    for reason in ("OVERLOADED", "CANCELLED", "OVERLOADED", "OF_A_LATER_VERSION"):
        desk.call(outcome="RESOURCE_EXHAUSTED", reason=reason)
    assert desk.sums().failures == (("OVERLOADED", 2), ("CANCELLED", 1), (OTHER, 1))
    assert (desk.of().ok_count, desk.of().failed_count) == (0, 4)


def test_streams_are_counted_and_not_timed() -> None:
    desk = Desk()
    desk.call(3600.0, method=WATCH, is_stream=True)
    assert desk.of(WATCH).ok_count == 1
    assert desk.of(WATCH).latency.count == 0


def test_stages_of_cached_recalls_are_one_and_tell_the_hits() -> None:
    desk = Desk()
    desk.call(receipt=_receipt((2, 0.001), (4, 0.002)))
    desk.call(receipt=_receipt((11, 0.0001), cached=True))
    sums = desk.sums()
    assert (sums.recall_count, sums.cache_hit_count) == (2, 1)
    assert [stage for stage, _ in sums.stages] == [2, 4, 11]


def test_nothing_is_told_of_a_service_that_nobody_has_called() -> None:
    sums = Desk().sums()
    assert not [*sums.methods, *sums.stages, *sums.failures]
    assert set(sums.recall_rates) == {0.0}
