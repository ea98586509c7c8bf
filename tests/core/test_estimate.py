"""Expected duration of work, from how long it took before."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.deadline import Estimate, then

TIMES = st.lists(st.floats(1e-5, 1.0), min_size=1, max_size=40)


def after(*times_s: float) -> Estimate:
    estimate = Estimate()
    for elapsed_s in times_s:
        estimate.add(elapsed_s)
    return estimate


def test_nothing_is_expected_of_what_never_ran() -> None:
    assert after().expected_s == 0


def test_the_first_run_finds_everything_cold_and_does_not_count() -> None:
    assert after(2.0).expected_s == 0
    assert after(2.0, 0.003).expected_s == 0.003


@given(st.floats(1e-5, 10.0))
def test_what_always_takes_the_same_is_expected_to(elapsed_s: float) -> None:
    assert after(*[elapsed_s] * 5).expected_s == elapsed_s


@given(TIMES)
def test_what_is_expected_is_no_less_than_the_least_and_bounded_by_the_most(times_s: list[float]) -> None:
    expected_s = after(1.0, *times_s).expected_s
    assert min(times_s) * (1 - 1e-9) <= expected_s <= 4 * max(times_s)


def test_one_slow_run_among_many_is_forgotten_after_some() -> None:
    steady = [0.001] * 10
    slowed, recovered = after(*steady, 2.0), after(*steady, 2.0, *[0.001] * 40)
    assert 0.001 < slowed.expected_s < 0.01
    assert recovered.expected_s < 0.0015


def test_what_fades_is_expected_to_take_less_each_time() -> None:
    estimate = after(1.0, 1.0)
    seen = []
    for _ in range(3):
        estimate.fade(0.5)
        seen.append(estimate.expected_s)
    assert seen == [0.5, 0.25, 0.125]


@given(TIMES, TIMES)
def test_two_take_no_longer_than_both_and_no_less_than_one(first: list[float], second: list[float]) -> None:
    both = after(1.0, *first), after(1.0, *second)
    together_s = Estimate.together_s(both)
    bounds = [estimate.expected_s for estimate in both]
    assert max(bounds) * (1 - 1e-9) <= together_s <= sum(bounds) * (1 + 1e-9)


def test_nothing_takes_no_time() -> None:
    assert Estimate.together_s([]) == 0


# Futures that are derived from another future's result.


def test_it_is_made_when_the_other_is_done() -> None:
    said: Future[int] = Future()
    made = then(said, str)
    assert not made.done()
    said.set_result(7)
    assert made.result(0) == "7"


@pytest.mark.parametrize("wrong", [KeyError, ZeroDivisionError])
def test_what_went_wrong_before_or_cannot_be_made_is_told(wrong: type[Exception]) -> None:
    said: Future[int] = Future()
    made = then(then(said, lambda one: 1 // one), str)
    if wrong is KeyError:
        said.set_exception(KeyError("gone"))
    else:
        said.set_result(0)
    with pytest.raises(wrong):
        made.result(0)


def test_to_cancel_it_cancels_what_has_not_begun() -> None:
    said: Future[int] = Future()
    made = then(then(said, str), len)
    assert made.cancel()
    assert said.cancelled()
    with pytest.raises(CancelledError):
        made.result(0)


def test_what_has_begun_is_not_cancelled() -> None:
    said: Future[int] = Future()
    made = then(said, str)
    assert said.set_running_or_notify_cancel()
    assert not made.cancel()
    said.set_result(7)
    assert made.result(0) == "7"
    assert not made.cancel()
