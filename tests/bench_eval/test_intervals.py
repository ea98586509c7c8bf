from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.eval.intervals import bootstrap, wilson


def test_wilson_of_half_of_a_hundred_is_the_known_interval() -> None:
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_wilson_at_the_ends_stays_inside_and_says_that_it_does_not_know() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 5000), st.data())
def test_wilson_holds_the_share(count: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, count))
    low, high = wilson(successes, count)
    assert 0.0 <= low <= successes / count <= high <= 1.0


def test_bootstrap_holds_the_mean_and_says_the_same_every_time() -> None:
    values = [0.0, 1.0, 0.5, 1.0, 0.0, 0.25, 1.0, 1.0]
    low, high = bootstrap(values)
    assert low < sum(values) / len(values) < high
    assert bootstrap(values) == (low, high)


def test_bootstrap_of_equal_values_is_that_value() -> None:
    assert bootstrap([0.5]) == (0.5, 0.5)
    assert bootstrap([1.0] * 7) == (1.0, 1.0)


def test_bootstrap_of_nothing_is_nothing() -> None:
    assert bootstrap([]) == (0.0, 0.0)
