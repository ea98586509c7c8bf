"""Two pieces of work at once, if a core is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Barrier, Thread, current_thread
from typing import TypeVar

import pytest

from hummock.core.threads import Cores

T = TypeVar("T")


@pytest.fixture
def cores() -> Iterator[Cores]:
    made = Cores(2, "other")
    yield made
    made.close()


def both(cores: Cores, here: Callable[[], T], elsewhere: Callable[[], T]) -> tuple[T, T]:
    with cores.one():
        return cores.at_once(here, elsewhere)


def test_two_pieces_run_at_once_where_a_core_is_free(cores: Cores) -> None:
    met = Barrier(2, timeout=30)
    assert sorted(both(cores, met.wait, met.wait)) == [0, 1]


def test_without_a_free_core_one_thread_does_both(cores: Cores) -> None:
    """Nor is one lent within a search that has both."""
    inner: list[Thread] = []
    both(cores, lambda: inner.extend(both(cores, current_thread, current_thread)), lambda: None)
    assert inner == [current_thread()] * 2
    one = Cores(1, "one")
    assert both(one, current_thread, current_thread) == (current_thread(), current_thread())
    one.close()


@pytest.mark.parametrize("failing", [0, 1])
def test_a_piece_that_fails_is_raised_and_its_cores_are_free_again(cores: Cores, failing: int) -> None:
    def fail() -> None:
        raise ValueError("broken")

    works = [lambda: None, lambda: None]
    works[failing] = fail
    with pytest.raises(ValueError, match="broken"):
        both(cores, *works)
    assert both(cores, current_thread, current_thread)[1] is not current_thread()
