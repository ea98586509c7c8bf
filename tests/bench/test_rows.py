from __future__ import annotations

import pytest

from bench.rows import Row


@pytest.mark.parametrize(("value", "reached"), [(1.1, True), (1.2, True), (1.3, False)])
def test_a_figure_that_must_be_small_is_reached_up_to_its_limit(value: float, reached: bool) -> None:
    row = Row.at_most(1, "p50", 1.2, value, "ms")

    assert (row.target, row.value, row.reached) == ("≤ 1.2", value, reached)


@pytest.mark.parametrize(("value", "reached"), [(1499.0, False), (1500.0, True), (1501.0, True)])
def test_a_figure_that_must_be_large_is_reached_from_its_limit(value: float, reached: bool) -> None:
    row = Row.at_least(4, "recalls", 1500, value, "recalls/s")

    assert (row.target, row.value, row.reached) == ("≥ 1500", value, reached)


def test_what_is_shown_is_rounded_and_what_is_compared_is_not() -> None:
    row = Row.at_most(1, "p50", 1.2, 1.20001, "ms")

    assert row.value == 1.2
    assert not row.reached
