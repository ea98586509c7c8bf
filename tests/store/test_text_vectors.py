"""Vectors outlive the last memory with their text, for a while and within a room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hummock.store import WritableStore
from hummock.store.limits import DEFAULT_LIMITS, StoreLimits
from tests.fakes import FakeClock
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, embedding, learned_request, put_request

DAY_S = 24 * 3600.0


def write(store: WritableStore, *, put: tuple[Entry, ...] = (), delete: tuple[str, ...] = ()) -> None:
    store.write("p", put_request(put)).result()
    store.write("p", delete_request(delete)).result()


def known(store: WritableStore, *seeds: int) -> list[bool]:
    return [found is not None for found in store.vectors([embedding(seed).digest for seed in seeds])]


A, B = Entry(id="a", seeds=(1,)), Entry(id="b", seeds=(2,))


@pytest.mark.parametrize(
    ("writes", "days", "kept"),
    [
        ([(0, (A, B))], 29, [True, True]),
        ([(0, (A, B))], 31, [False, True]),
        # Kept from its last removal on.
        ([(0, (A,)), (20, (A,))], 20, [True, False]),
        # One of two memories with a text leaves its vectors to the other.
        ([(0, (A, Entry(id="b", seeds=(1, 1))))], 31, [True, False]),
    ],
)
def test_vectors_of_a_removed_text_are_kept_for_thirty_days(
    tmp_path: Path, writes: list[tuple[int, tuple[Entry, ...]]], days: int, kept: list[bool]
) -> None:
    """Each write removes a again; the days go by before it."""
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        for before, entries in writes:
            clock.move(before * DAY_S)
            write(store, put=entries, delete=("a",))
        clock.move(days * DAY_S)
        write(store)
        assert known(store, 1, 2) == kept


def test_a_memory_that_learns_a_keyword_keeps_the_vectors_of_its_text(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        write(store, put=(Entry(id="a", seeds=(1,)),))
        store.write("p", learned_request("a", "harbour")).result(30)
        clock.move(31 * DAY_S)
        write(store)
        assert known(store, 1) == [True]


@pytest.mark.long
def test_the_oldest_give_way_where_there_is_no_room(tmp_path: Path) -> None:
    limits: StoreLimits = replace(DEFAULT_LIMITS, retired_bytes=16384, trimmed_entries=2)
    clock = FakeClock()
    with opened(tmp_path, clock=clock, limits=limits) as store:
        for seed in range(400):
            clock.move(1.0)
            write(store, put=(Entry(id="a", seeds=(seed,)),), delete=("a",))
        assert known(store, 0, 399) == [False, True]
