"""Counts of terms against plain arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock.store.growing import TermCounts

TERMS = st.lists(st.integers(0, 400) | st.sampled_from([0, 63, 64, 127]), max_size=12)


def words(terms: list[int]) -> NDArray[np.uint32]:
    return np.array(terms, np.uint32)


EVERY = words([*range(1000), 0xFFFF_FFFF])


def added(counts: NDArray[np.int32], terms: list[int], by: int) -> NDArray[np.int32]:
    newer = counts.copy()
    np.add.at(newer, terms, np.int32(by))
    return newer


@given(first=st.lists(st.integers(0, 9), max_size=200), changes=st.lists(TERMS, max_size=12))
def test_all_counts_of_a_line_stay_what_they_were(first: list[int], changes: list[list[int]]) -> None:
    """DESIGN 4: how many memories hold a term is exact at every seq, for whoever still reads an older view."""
    plain = [np.zeros(1001, np.int32)]
    plain[0][: len(first)] = first
    line = [TermCounts.of(np.array(first, np.int32))]
    for number, terms in enumerate(changes):
        by = 1 - 2 * (number % 2)
        plain.append(added(plain[-1], terms, by))
        line.append(line[-1].changed(words(terms), by))
    assert [each.at(EVERY).tolist() for each in line] == [each.tolist() for each in plain]


@given(first=TERMS, one=TERMS, other=TERMS)
def test_a_change_that_came_to_nothing_leaves_no_trace(first: list[int], one: list[int], other: list[int]) -> None:
    """A group of writes may be aborted after its counts were made."""
    shared = TermCounts.of(np.zeros(0, np.int32)).changed(words(first), 1)
    shared.changed(words(one), 1)
    zeros = np.zeros(1001, np.int32)
    assert shared.changed(words(other), 1).at(EVERY).tolist() == added(added(zeros, first, 1), other, 1).tolist()


def test_many_changes_take_no_more_memory_than_the_counts_are_worth() -> None:
    counts = TermCounts.of(np.ones(64 * 100, np.int32))
    at_first = counts.nbytes
    for number in range(2000):
        counts = counts.changed(words([number % 6400, 6399]), 1)
        assert counts.nbytes <= 3 * at_first
    assert counts.at(words([6399])).tolist() == [2001]


def test_a_change_copies_what_it_changes_and_not_the_rest() -> None:
    counts = TermCounts.of(np.zeros(100_000, np.int32))
    newer = counts.changed(words([5, 70_000, 70_001]), 1)
    assert newer.pages.size - counts.pages.size == 2
