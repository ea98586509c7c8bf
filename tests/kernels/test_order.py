"""Kernels that order rows: the best first, by file, and by their neighbours in a session; against their twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hummock_kernels import files, reference, topk, turns
from hummock_kernels.pool import ROW

SCORES = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 0.5, 1e30, np.nan, np.inf, -np.inf])


@given(st.data(), st.integers(0, 40), st.integers(-1, 45))
def test_top_k_equals_its_twin(data: st.DataObject, n: int, k: int) -> None:
    scores = data.draw(hnp.arrays(np.float32, n, elements=SCORES.map(np.float32)))
    allowed = data.draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 1)))
    scores.flags.writeable = allowed.flags.writeable = False
    np.testing.assert_array_equal(topk.top_k(scores, allowed, k), reference.top_k(scores, allowed, k))


def test_equal_scores_go_to_the_smaller_index() -> None:
    assert topk.top_k(np.ones(9, np.float32), np.ones(9, np.uint8), 3).tolist() == [0, 1, 2]


def test_negative_scores_are_scores_and_nan_is_not() -> None:
    scores = np.array([np.nan, -1, 0, -np.inf], np.float32)
    assert topk.top_k(scores, np.ones(4, np.uint8), 4).tolist() == [2, 1]


# The order by files against the twin.


SHARES = files.FileShares(0.05, 3, 0.85, 0.05)


def of_files(file: list[int], name: list[int]) -> NDArray[np.void]:
    """Candidates with these files and names."""
    rows = np.zeros(len(file), ROW)
    rows["file"], rows["name_hash"] = file, name
    return rows


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 200)), max_size=24), st.data())
def test_order_by_files_equals_its_twin(candidates: list[tuple[int, int, int]], data: st.DataObject) -> None:
    rows = np.array(data.draw(st.permutations(range(len(candidates)))), np.int64)
    rows = rows[: data.draw(st.integers(0, len(rows)))]
    found = of_files([file for file, _, _ in candidates], [name for _, name, _ in candidates])
    # Roots, so that none is by chance a sum of others.
    relevance = np.sort(np.sqrt(np.array([candidates[row][2] / 200 for row in rows], np.float32)))[::-1].copy()
    score = relevance * np.float32(0.5)
    for column in (rows, found, relevance, score):
        column.flags.writeable = False
    ordered = files.order_by_files(rows, relevance, score, found, SHARES)
    twin = reference.order_by_files(rows, relevance, score, found, SHARES)
    assert len(ordered[0]) == len(twin[0])
    # Where two are equal but for rounding either may come first.
    np.testing.assert_allclose(ordered[1], twin[1], rtol=1e-5, atol=1e-6)
    by_place = [np.empty(len(ordered[0]), np.float32) for _ in range(2)]
    for (order, raised, _), out in zip((ordered, twin), by_place, strict=True):
        assert sorted(order.tolist()) == list(range(len(order)))
        out[order] = raised
    np.testing.assert_allclose(by_place[0], by_place[1], rtol=1e-5, atol=1e-6)


def test_nothing_and_one_of_a_file_stay_as_they_are() -> None:
    none, one = np.empty(0, np.int64), np.zeros(1, np.int64)
    empty, value = np.empty(0, np.float32), np.ones(1, np.float32)
    found = of_files([1], [1])
    assert len(files.order_by_files(none, empty, empty, found, SHARES)[0]) == 0
    assert len(files.order_by_files(one, value, value, found, SHARES)[0]) == 0


def test_equal_ones_keep_their_order() -> None:
    rows, value = np.arange(4), np.full(4, 0.5, np.float32)
    order, _, _ = files.order_by_files(rows, value, value, of_files([1, 2, 1, 2], [1] * 4), SHARES)
    assert order.tolist() == [0, 1, 2, 3]


# Neighbours in a session against the twin.


SESSIONS = st.sampled_from([0, 1, 2, 2**63 + 1, 2**64 - 1])


@st.composite
def columns(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turns at different places of their sessions, some of them removed and put again."""
    session = np.array(draw(st.lists(SESSIONS, max_size=40)), np.uint64)
    position = np.array([draw(st.integers(-1, 6)) for _ in session], np.int32)
    seen: set[tuple[int, int]] = set()
    alive = np.zeros(len(session), np.uint8)
    for place in reversed(range(len(session))):
        turn = (int(session[place]), int(position[place]))
        alive[place] = turn not in seen
        seen.add(turn)
    return session, position, alive


def table(size: int = 128) -> np.ndarray:
    return np.full(size, turns.FREE, np.int32)


def test_what_has_a_session_and_no_place_in_it_has_no_neighbours() -> None:
    session, position, alive = np.ones(2, np.uint64), np.array([-1, 0], np.int32), np.ones(2, np.uint8)
    slots = table(8)
    turns.add_turns(slots, session, position, 0)
    for neighbours in (turns.neighbours, reference.neighbours):
        assert neighbours(slots, session, position, alive, np.array([0, 1])).tolist() == [[-1, -1], [-1, -1]]


@given(columns(), st.data())
def test_neighbours_equal_their_twin(turn_columns: tuple[np.ndarray, ...], data: st.DataObject) -> None:
    session, position, alive = turn_columns
    places = np.array(data.draw(st.lists(st.integers(0, max(0, len(session) - 1)), max_size=len(session))), np.int64)
    split = data.draw(st.integers(0, len(session)))
    slots, other = table(), table()
    added = turns.add_turns(slots, session[:split], position[:split], 0)
    added += turns.add_turns(slots, session, position, split)
    assert added == reference.add_turns(other, session, position, 0)
    for column in (session, position, alive, places):
        column.flags.writeable = False
    found = turns.neighbours(slots, session, position, alive, places)
    np.testing.assert_array_equal(found, reference.neighbours(other, session, position, alive, places))


def test_an_older_view_sees_none_of_what_came_later() -> None:
    session, position = np.full(3, 7, np.uint64), np.arange(3, dtype=np.int32)
    slots = table(8)
    turns.add_turns(slots, session, position, 0)
    older = turns.neighbours(slots, session[:2], position[:2], np.ones(2, np.uint8), np.array([0, 1]))
    assert older.tolist() == [[-1, 1], [0, -1]]


def test_turns_left_over_from_a_failed_attempt_are_neither_found_nor_in_the_way() -> None:
    slots = table(8)
    session, position = np.array([7, 9, 9, 9], np.uint64), np.array([0, 0, 1, 2], np.int32)
    turns.add_turns(slots, session, position, 0)
    session[1:], position[1:] = 7, [1, 2, 3]
    turns.add_turns(slots, session, position, 1)
    found = turns.neighbours(slots, session, position, np.ones(4, np.uint8), np.arange(4))
    assert found.tolist() == [[-1, 1], [0, 2], [1, 3], [2, -1]]


def test_nothing_has_no_neighbours() -> None:
    empty = np.empty(0, np.int64)
    found = turns.neighbours(table(8), np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.uint8), empty)
    assert found.shape == (0, 2)
