"""Futures that are derived from another future's result."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

import pytest

from hummock.core.deadline import then


def test_it_is_made_when_the_other_is_done() -> None:
    said: Future[int] = Future()
    made = then(said, str)
    assert not made.done()
    said.set_result(7)
    assert made.result(0) == "7"


def test_what_went_wrong_goes_on() -> None:
    said: Future[int] = Future()
    made = then(then(said, str), len)
    said.set_exception(KeyError("gone"))
    with pytest.raises(KeyError):
        made.result(0)


def test_what_cannot_be_made_is_told() -> None:
    said: Future[int] = Future()
    made = then(said, lambda one: 1 // one)
    said.set_result(0)
    with pytest.raises(ZeroDivisionError):
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
