"""Forgetting in a large project: in parts, and only for as long as somebody waits."""

from __future__ import annotations

from itertools import count

import pytest

from hummock.core.deadline import Deadline
from hummock.core.errors import DeadlinePassed
from hummock.core.memory import Filter, Origin
from hummock.memories.forget import Forget, ForgetCommand
from hummock.memories.garden import DELETED_AT_ONCE
from tests.workplace import Workplace, note

SIZE = DELETED_AT_ONCE + 88
ALL_USER_INPUTS = ForgetCommand(
    project="p", request_id="", fingerprint=b"f", where=Filter(origins=frozenset({Origin.USER_INPUT}))
)


@pytest.fixture
def large(work: Workplace) -> Workplace:
    work.teach(*(note(f"tide {number}", f"m{number}", Origin.USER_INPUT) for number in range(SIZE)))
    return work


def until_asked(times: int) -> Deadline:
    """A deadline that ends after this many looks at the clock, as for a caller who hangs up."""
    looks = count(1)
    return Deadline(until_s=times + 0.5, monotonic=lambda: float(next(looks)))


def test_a_project_is_forgotten_in_parts_that_say_what_is_left(large: Workplace) -> None:
    """X7."""
    forget = Forget(large.store)
    counted, _ = forget.count(ALL_USER_INPUTS)
    first, _ = forget(ALL_USER_INPUTS)
    second, _ = forget(ALL_USER_INPUTS)
    assert (counted.memory_count, counted.remaining_count) == (SIZE, 0)
    assert (first.memory_count, first.remaining_count) == (DELETED_AT_ONCE, 88)
    assert (second.memory_count, second.remaining_count) == (88, 0)
    assert large.store.first_passing("p", Filter(), 1) == ((), 0)


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_who_hangs_up_while_it_looks_has_nothing_forgotten(large: Workplace, looks: int) -> None:
    """X7: after each page that it reads, and before what is held is read."""
    forget, seq = Forget(large.store), large.store.generation("p").seq
    for ask in (forget, forget.count):
        with pytest.raises(DeadlinePassed):
            ask(ALL_USER_INPUTS, until_asked(looks))
    assert large.store.generation("p").seq == seq
    assert len(large.store.first_passing("p", Filter(), SIZE)[0]) == SIZE


@pytest.mark.parametrize("looks", [0, 1])
@pytest.mark.parametrize("only_count", [True, False])
def test_who_hangs_up_while_a_filter_is_looked_through_has_nothing_deleted(
    large: Workplace, looks: int, only_count: bool
) -> None:
    seq = large.store.generation("p").seq
    with pytest.raises(DeadlinePassed):
        large.garden.delete_where(
            "p", "", ALL_USER_INPUTS.where, b"f", only_count=only_count, deadline=until_asked(looks)
        )
    assert large.store.generation("p").seq == seq
