"""Neighbours in a session against the twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import reference, turns

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
