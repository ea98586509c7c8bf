"""The star map of a store: every memory has a place, and keeps it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hummock.core.project import Stars
from hummock.ports.store import Store
from hummock.store import WritableStore
from hummock.store.views import places
from hummock.store.views.view import ProjectView
from tests.ports.asking import put
from tests.snapshots import at
from tests.store.answering import rebuild
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, embedded_request

Where = dict[str, tuple[float, float]]


def entries(start: int, end: int, **more: object) -> list[Entry]:
    return [Entry(id=f"m{number}", seeds=(number,), **more) for number in range(start, end)]  # type: ignore[arg-type]


def stars(store: Store, limit: int = 7) -> list[Stars]:
    """All parts of the map."""
    parts, after = [], 0
    while True:
        part = at(store, "p").stars(after, limit)
        parts.append(part)
        if part.next_after is None:
            return parts
        after = part.next_after


def where(store: Store, limit: int = 7) -> Where:
    return {
        memory_id: (x, y)
        for part in stars(store, limit)
        for memory_id, x, y in zip(part.ids, part.x, part.y, strict=True)
    }


def view_of(store: WritableStore) -> ProjectView:
    view = store.views.view("p")
    assert view is not None
    return view


def same(before: Where, after: Where) -> None:
    """Asserts that memories in both keep their places; rounding depends on how many are placed at once."""
    both = sorted(before.keys() & after.keys())
    np.testing.assert_allclose([before[one] for one in both], [after[one] for one in both], atol=1e-5)


def test_every_memory_is_in_it_once_in_the_order_of_their_writes(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 20))
        parts = stars(store)
        assert [len(part.ids) for part in parts] == [7, 7, 6]
        assert [memory_id for part in parts for memory_id in part.ids] == [f"m{number}" for number in range(20)]
        assert len({part.layout_id for part in parts}) == 1
        for part in parts:
            assert all(part.is_placed)
            assert (np.hypot(part.x, part.y) <= 1 + 1e-5).all()


def test_a_memory_that_comes_moves_none_until_there_are_twice_as_many(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 16))
        before, layout_id = where(store), stars(store)[0].layout_id
        for number in range(16, 31):
            put(store, "p", *entries(number, number + 1))
        same(before, where(store))
        assert len(where(store)) == 31
        assert stars(store)[0].layout_id == layout_id
        put(store, "p", *entries(31, 32))
        assert stars(store)[0].layout_id != layout_id


def test_in_a_large_project_nothing_moves_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "LAST_LEVEL", 4)
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 16))
        before = where(store)
        put(store, "p", *entries(16, 70))
        same(before, where(store))
        assert len(where(store)) == 70


def test_landmarks_are_spread_over_the_oldest_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_LANDMARKS", 8)
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 64))
        view = view_of(store)
        landmarks = places.make_layout(view.columns, view.chunks, 6).vectors
        every, _ = places.unit_vectors(view.chunks, np.arange(64))
        chosen = np.flatnonzero((every[:, None] == landmarks).all(axis=2).any(axis=1))
        assert len(chosen) == 8
        assert chosen.min() < 32 <= chosen.max()


def test_what_is_removed_is_gone_and_moves_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 20))
        before = where(store)
        store.write("p", delete_request([f"m{number}" for number in range(0, 20, 2)])).result(30)
        assert where(store).keys() == {f"m{number}" for number in range(1, 20, 2)}
        same(before, where(store))
        rebuild(store)
        same(before, where(store))
        put(store, "p", *entries(20, 22))
        same(before, where(store))
        assert {"m20", "m21"} <= where(store).keys()


def test_it_is_the_same_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 10))
        put(store, "p", *entries(10, 40))
        before = where(store)
    with opened(tmp_path) as store:
        same(before, where(store, 11))


def test_what_waits_for_its_vectors_stands_on_a_ring_and_then_among_the_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="late", words=("late",), seeds=()))
        waiting = at(store, "p").stars(0, 9)
        assert (waiting.layout_id, waiting.is_placed) == ("", [False])
        put(store, "p", *entries(0, 9))
        before = where(store)
        assert 1.1 - 1e-6 <= np.hypot(*before["late"]) <= 1.2 + 1e-6
        assert at(store, "p").stars_of(["late"]).is_placed == [False]
        store.write("p", embedded_request(Entry(id="late", words=("late",), seeds=(3,)))).result(30)
        late = at(store, "p").stars_of(["late", "m3"])
        assert all(late.is_placed)
        same({name: place for name, place in before.items() if name != "late"}, where(store))
        # Of one vector, so side by side, and yet two.
        apart = float(np.hypot(np.diff(late.x), np.diff(late.y))[0])
        assert 0 < apart <= 2 * places.SPREAD / 9**0.5


def test_what_says_nothing_has_no_place_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *entries(0, 9))
        view = view_of(store)
        # As a disk may leave it behind.
        view.vectors.buffer[4] = np.float16(np.nan).view(np.uint16)
        view.vectors.buffer[5] = 0
        assert np.flatnonzero(~np.array(at(store, "p").stars(0, 9).is_placed)).tolist() == [4, 5]


def test_sessions_are_named_and_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", session_id="s"), Entry(id="b"), Entry(id="c", session_id="t"))
        found = at(store, "p").stars(0, 9)
        assert dict(zip(found.ids, found.sessions, strict=True)) == {"a": "s", "b": "", "c": "t"}
        assert at(store, "p").stars_of(["b", "nothing"]).ids == ["b"]
        assert at(store, "elsewhere").stars_of(["b"]).ids == []
        assert at(store, "elsewhere").stars(0, 9).ids == []


def test_it_is_asked_for_by_several_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as store, ThreadPoolExecutor(4) as threads:
        put(store, "p", *entries(0, 40))
        found: list[Where] = list(threads.map(lambda _: where(store), range(4)))
        assert found.count(found[0]) == 4
