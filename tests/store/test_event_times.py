"""The order of told times against a plain look through all of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummock.core.memory import Filter
from hummock.store.tables.row_codec import ROW
from hummock.store.views import columns as view_columns
from hummock.store.views.columns import Columns, EventTimes, event_times
from tests.ports.asking import ask, put
from tests.store.answering import rebuild
from tests.store.opening import opened
from tests.strategies import Entry, delete_request

TIMES = st.none() | st.integers(0, 20).map(float)


def rows(told: list[tuple[float | None, bool]], first: int) -> np.ndarray:
    """Rows of memories with these event times, some of them in a session; each was made at its number."""
    made = np.zeros(len(told), ROW)
    for place, (event_time, is_said) in enumerate(told):
        made[place]["doc"] = first + place + 1
        made[place]["create_time"] = (first + place) % 20
        made[place]["event_time"] = np.nan if event_time is None else event_time
        made[place]["session"] = is_said
        made[place]["session_position"] = first + place if is_said else -1
    return made


@given(
    batches=st.lists(st.lists(st.tuples(TIMES, st.booleans()), min_size=1, max_size=9), min_size=1, max_size=6),
    asked=st.lists(st.tuples(st.integers(0, 5), st.floats(-1, 21), st.floats(-1, 21)), min_size=1, max_size=8),
)
@pytest.mark.parametrize("behind", [0, 3, 4096])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_interval_has_the_memories_whose_times_lie_in_it(
    monkeypatch: pytest.MonkeyPatch,
    behind: int,
    batches: list[list[tuple[float | None, bool]]],
    asked: list[tuple[int, float, float]],
) -> None:
    monkeypatch.setattr(view_columns, "_FEWEST_BEHIND", behind)
    shared, views, size = EventTimes(), [Columns.empty()], 0
    for batch in batches:
        made = rows(batch, size)
        views.append(views[-1].extended(made, ["m"] * len(batch), 0))
        size += len(batch)
    for number, start, end in asked:
        columns = views[number % len(views)]
        told = event_times(columns)
        expected = np.flatnonzero((told >= start) & (told < end))
        assert sorted(shared.between(columns, start, end).tolist()) == expected.tolist()


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(times=st.lists(TIMES, min_size=4, max_size=10), removed=st.integers(0, 3))
def test_it_holds_after_removals_and_rebuilds(times: list[float | None], removed: int) -> None:
    with tempfile.TemporaryDirectory() as name, opened(Path(name)) as store:
        put(store, "p", *(Entry(id=f"m{place}", event_time=time) for place, time in enumerate(times)))
        where = Filter(event_after=3.0, event_before=12.0)
        ask(store, seed=1, where=where)
        store.write("p", delete_request([f"m{removed}"])).result(30)
        kept = {f"m{place}" for place, time in enumerate(times) if time is not None and 3 <= time < 12}
        for _ in range(2):
            assert set(ask(store, seed=1, where=where).memory_id) == kept - {f"m{removed}"}
            rebuild(store)
