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


def test_vectors_of_a_removed_text_are_kept_for_thirty_days(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        write(store, put=(Entry(id="a", seeds=(1,)), Entry(id="b", seeds=(2,))), delete=("a",))
        clock.move(29 * DAY_S)
        write(store)
        assert known(store, 1, 2) == [True, True]
        clock.move(2 * DAY_S)
        write(store)
        assert known(store, 1, 2) == [False, True]


def test_a_text_that_comes_again_is_kept_from_its_last_removal_on(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        write(store, put=(Entry(id="a", seeds=(1,)),), delete=("a",))
        clock.move(20 * DAY_S)
        write(store, put=(Entry(id="a", seeds=(1,)),), delete=("a",))
        clock.move(20 * DAY_S)
        write(store)
        assert known(store, 1) == [True]


def test_one_of_two_memories_with_a_text_leaves_its_vectors_to_the_other(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        write(store, put=(Entry(id="a", seeds=(1,)), Entry(id="b", seeds=(1, 1))), delete=("a",))
        clock.move(31 * DAY_S)
        write(store)
        assert known(store, 1) == [True]


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
