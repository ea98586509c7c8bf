"""Two halves of a search at once."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, Thread, current_thread

import pytest

from hummock.store.search.halves import Halves


@pytest.fixture
def halves() -> Iterator[Halves]:
    made = Halves(cores=2)
    yield made
    made.close()


def test_halves_run_at_once_where_a_core_is_free(halves: Halves) -> None:
    met = Barrier(2, timeout=30)
    assert sorted(halves.both(met.wait, met.wait)) == [0, 1]


def test_without_a_free_core_one_thread_does_both(halves: Halves) -> None:
    """Nor is one lent within a search that has both."""
    inner: list[Thread] = []
    halves.both(lambda: None, lambda: inner.extend(halves.both(current_thread, current_thread)))
    assert inner == [current_thread()] * 2
    one = Halves(cores=1)
    assert one.both(current_thread, current_thread) == (current_thread(), current_thread())
    one.close()


@pytest.mark.parametrize("failing", [0, 1])
def test_a_half_that_fails_is_raised_and_its_cores_are_free_again(halves: Halves, failing: int) -> None:
    def fail() -> None:
        raise ValueError("broken")

    works = [lambda: None, lambda: None]
    works[failing] = fail
    with pytest.raises(ValueError, match="broken"):
        halves.both(*works)
    assert halves.both(current_thread, current_thread)[0] is not current_thread()
