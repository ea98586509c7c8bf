"""Records of requests, and how long they are kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.store import StoreLimits, WritableStore
from tests.fakes import FakeClock
from tests.store.opening import opened
from tests.strategies import Entry, put_request

DAY_S = 24 * 3600.0


def remembered(store: WritableStore) -> tuple[int, int]:
    """Entries of the tables of requests and of their ages."""
    tables = store._engine.tables
    with store._engine.reading() as txn:
        return store._engine.count(txn, tables.request), store._engine.count(txn, tables.request_age)


def write(store: WritableStore, request_id: str) -> None:
    store.write("p", put_request([Entry(id="a")], request_id)).result(30)


def test_a_request_that_expires_within_a_millisecond_is_forgotten_wholly(tmp_path: Path) -> None:
    """Ages are kept in whole milliseconds, times are not; what only one of them forgot would stay for ever."""
    clock = FakeClock(1_700_000_000.0005)
    with opened(tmp_path, clock=clock) as store:
        write(store, "first")
        clock.move(DAY_S - 0.0002)
        write(store, "second")
        clock.move(1.0)
        write(store, "")
        assert remembered(store) == (1, 1)


@pytest.mark.long
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "b", "c", "d"]),
            st.sampled_from([0.0, 0.0003, 5.0, -5.0, DAY_S / 2, DAY_S - 0.0002, DAY_S]),
        ),
        max_size=20,
    )
)
def test_nothing_is_remembered_for_ever(steps: list[tuple[str, float]]) -> None:
    clock = FakeClock(1_700_000_000.0004)
    with (
        tempfile.TemporaryDirectory() as name,
        opened(Path(name), clock=clock, limits=StoreLimits(trimmed_entries=64)) as store,
    ):
        for request_id, seconds in steps:
            write(store, request_id)
            clock.move(seconds)
        clock.move(3 * DAY_S)
        write(store, "")
        assert remembered(store) == (0, 0)
