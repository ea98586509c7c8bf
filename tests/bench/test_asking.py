from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.asking import Latency

pytestmark = pytest.mark.long

TIMES_S = st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=300)


@given(TIMES_S)
def test_a_percentile_is_the_smallest_time_that_so_many_calls_did_not_exceed(times_s: list[float]) -> None:
    latency = Latency.of(times_s)

    for percent, value_ms in ((500, latency.p50_ms), (950, latency.p95_ms), (990, latency.p99_ms)):
        enough = [each for each in times_s if sum(one <= each for one in times_s) * 1000 >= percent * len(times_s)]
        assert value_ms == round(min(enough) * 1000, 4)


@given(TIMES_S)
def test_percentiles_do_not_depend_on_the_order_of_calls(times_s: list[float]) -> None:
    assert Latency.of(times_s) == Latency.of(sorted(times_s, reverse=True))


def test_a_single_call_is_every_percentile() -> None:
    latency = Latency.of([0.0125])

    assert {latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.p99_9_ms, latency.max_ms} == {12.5}


def test_few_calls_show_no_thousandth() -> None:
    assert "p99.9" not in Latency.of([0.001] * 999).line()
    assert "p99.9" in Latency.of([0.001] * 1000).line()
