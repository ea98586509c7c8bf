"""Memories of a session's last turns, checked against a list."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.candidates import Candidates, GroupQuery, SessionWindow
from hummock.core.memory import Filter, Origin
from hummock.ports.store import Store
from tests.ports.asking import gather, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, unit_vector

SAID = frozenset({Origin.USER_INPUT, Origin.AI_OUTPUT})


def outside(store: Store, session_id: str, turns: int, where: Filter | None = None) -> Candidates:
    """Candidates outside a window."""
    window = SessionWindow(session_id=session_id, turns=turns)
    query = GroupQuery(name="main", filter=where or Filter(), window=window, vector=unit_vector(1))
    return gather(store, "p", query).groups[0]


def said(name: str, origin: Origin = Origin.USER_INPUT, session_id: str = "s") -> Entry:
    return Entry(id=name, words=(name,), origin=origin, session_id=session_id)


def turn(number: int, session_id: str = "s") -> tuple[Entry, Entry]:
    question = said(f"{session_id}-q{number}", Origin.USER_INPUT, session_id)
    return question, said(f"{session_id}-a{number}", Origin.AI_OUTPUT, session_id)


def test_a_turn_is_a_question_and_what_was_answered(store: Store) -> None:
    """S4-55."""
    put(store, "p", *turn(1), *turn(2), *turn(3))
    assert ids(outside(store, "s", 1)) == {"s-q1", "s-a1", "s-q2", "s-a2"}
    assert ids(outside(store, "s", 2)) == {"s-q1", "s-a1"}
    assert ids(outside(store, "s", 9)) == set()
    assert ids(outside(store, "unknown", 9)) == {entry.id for number in (1, 2, 3) for entry in turn(number)}


def test_an_edit_keeps_its_turn_and_a_removal_leaves_none(store: Store) -> None:
    put(store, "p", *turn(1), *turn(2))
    put(store, "p", replace(said("s-q1"), words=("edited",)))
    assert ids(outside(store, "s", 1)) == {"s-q1", "s-a1"}
    store.write("p", delete_request(["s-q2"])).result(timeout=30)
    # What is left of the second turn belongs to the last question that there is.
    assert ids(outside(store, "s", 1)) == set()


def test_what_the_filter_leaves_out_is_not_counted_again(store: Store) -> None:
    """S4-55: the count of a receipt."""
    put(store, "p", *turn(1), *turn(2))
    found = outside(store, "s", 1, Filter(origins=frozenset({Origin.USER_INPUT})))
    assert ids(found) == {"s-q1"}
    assert (found.in_window, found.searched) == (1, 1)


def test_explaining_says_which_turn_it_was(store: Store) -> None:
    """S4-55."""
    put(store, "p", *turn(1), *turn(2))
    for window, turns_ago in ((1, 0), (2, 2)):
        query = GroupQuery(
            name="main",
            filter=Filter(),
            window=SessionWindow(session_id="s", turns=window),
            vector=unit_vector(1),
        )
        standing = at(store, "p").standing(query, "s-a1")
        assert standing is not None
        assert standing.turns_ago == turns_ago


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(Origin), st.sampled_from(["s", "会话", ""])), max_size=14),
    st.integers(0, 5),
    st.sets(st.integers(0, 13)),
)
def test_a_window_is_that_of_a_list(talk: list[tuple[Origin, str]], turns: int, removed: set[int]) -> None:
    """S4-55."""
    entries = [said(f"m{number}", origin, session_id) for number, (origin, session_id) in enumerate(talk)]
    gone = [f"m{number}" for number in removed]
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as store:
        for entry in entries:
            put(store, "p", entry)
        store.write("p", delete_request(gone)).result(timeout=30)
        found = outside(store, "s", turns)
    there = [entry for entry in entries if entry.id not in gone]
    window: set[str] = set()
    begun = 0
    for entry in reversed([entry for entry in there if entry.session_id == "s" and entry.origin in SAID]):
        # After the last question stands what belongs to it.
        if begun < turns:
            window.add(entry.id)
        begun += entry.origin is Origin.USER_INPUT
    assert ids(found) == {entry.id for entry in there} - window
    assert found.in_window == len(window)
