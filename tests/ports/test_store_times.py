"""Search by the times of a query."""

from __future__ import annotations

import pytest

from hummock.core.candidates import Candidates, FoundBy, GroupQuery
from hummock.core.memory import Filter
from hummock.ports.store import Store
from tests.ports.asking import gather, ids, put
from tests.strategies import Entry, unit_vector


@pytest.fixture
def told(store: Store) -> Store:
    """Ten memories of ten moments, one said at another, one of none."""
    put(
        store,
        "p",
        *(Entry(id=f"m{n}", event_time=float(n), seeds=(n + 1,), words=("tide",) * (n + 1)) for n in range(10)),
        Entry(id="said", session_id="s1", create_time=4.0),
        Entry(id="of none", create_time=4.0),
    )
    return store


def asked(store: Store, *times: tuple[float, float], pool: int = 50, **how: object) -> Candidates:
    query = GroupQuery(name="main", filter=how.pop("where", Filter()), times=times, pool=pool, **how)  # type: ignore[arg-type] # fields of GroupQuery
    return gather(store, "p", query).groups[0]


def test_what_is_told_of_a_time_is_found_by_that_alone(told: Store) -> None:
    found = asked(told, (3.0, 5.0))
    assert ids(found) == {"m3", "m4", "said"}
    assert set(found.found_by.tolist()) == {FoundBy.TIME}


def test_several_times_and_open_ones_are_joined(told: Store) -> None:
    assert ids(asked(told, (float("-inf"), 1.0), (8.0, float("inf")), (8.0, 9.0))) == {"m0", "m8", "m9"}


def test_a_filter_counts(told: Store) -> None:
    assert ids(asked(told, (3.0, 5.0), where=Filter(excluded_ids=("m3",)))) == {"m4", "said"}


def test_of_too_many_the_nearest_are_found_else_the_best_by_words_and_the_newest(told: Store) -> None:
    assert ids(asked(told, (0.0, 10.0), pool=2)) == {"said", "m9"}
    assert "m2" in ids(asked(told, (0.0, 10.0), pool=2, vector=unit_vector(3)))
