"""Turns of a session and pieces of a file: what stands beside a memory, and what a window leaves out."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummock.core.candidates import Candidates, GroupQuery, SessionWindow
from hummock.core.memory import CodeFragment, Filter, Memory, Origin
from hummock.ports.store import Store
from tests.ports.asking import ask, gather, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, fragment, unit_vector

_PROJECTS = count()
MOST_BYTES = 1 << 20


def doc_of(store: Store, project: str, memory_id: str) -> int:
    found = ask(store, project, seed=1, pool=100)
    return int(found.rows["doc"][found.memory_id.index(memory_id)])


def names(memories: tuple[Memory, ...]) -> list[str]:
    return [memory.id for memory in memories]


def beside(store: Store, memory_id: str, most: int, project: str = "p") -> tuple[list[str], list[str]]:
    (found,) = at(store, project).neighbours(
        [doc_of(store, project, memory_id)], most, full=True, most_bytes=MOST_BYTES
    )
    return names(found.before), names(found.after)


def turn(memory_id: str, session_id: str = "s", seed: int = 1) -> Entry:
    return Entry(id=memory_id, session_id=session_id, seeds=(seed,))


def piece(memory_id: str, path: str, line: int) -> Entry:
    detail = CodeFragment(path=path, start_line=line, end_line=line + 3, language="java", symbol="f")
    return replace(fragment(memory_id, path), detail=detail)


def test_turns_stand_in_their_order_around_a_turn(store: Store) -> None:
    put(store, "p", *(turn(f"t{number}") for number in range(6)))
    assert beside(store, "t3", 2) == (["t1", "t2"], ["t4", "t5"])
    assert beside(store, "t0", 2) == ([], ["t1", "t2"])
    assert beside(store, "t5", 9) == (["t0", "t1", "t2", "t3", "t4"], [])
    assert beside(store, "t3", 0) == ([], [])


def test_other_sessions_between_do_not_part_neighbours(store: Store) -> None:
    for number in range(4):
        put(store, "p", turn(f"a{number}", "a"), turn(f"b{number}", "b"), Entry(id=f"n{number}"))
    assert beside(store, "a2", 1) == (["a1"], ["a3"])
    assert beside(store, "b2", 9) == (["b0", "b1"], ["b3"])
    assert beside(store, "n2", 9) == ([], [])


def test_an_edited_turn_keeps_its_place_and_a_removed_one_ends_the_window(store: Store) -> None:
    put(store, "p", *(turn(f"t{number}") for number in range(5)))
    put(store, "p", turn("t1", seed=7))
    assert beside(store, "t2", 2) == (["t0", "t1"], ["t3", "t4"])
    store.write("p", delete_request(["t3"])).result(30)
    assert beside(store, "t2", 2) == (["t0", "t1"], [])


def test_fragments_stand_by_line_in_their_own_file(store: Store) -> None:
    lines = {"c": 30, "a": 1, "b": 10, "d": 200}
    put(store, "p", *(piece(memory_id, "src/A.java", line) for memory_id, line in lines.items()))
    put(store, "p", piece("x", "lib/src/A.java", 15), Entry(id="n"))
    assert beside(store, "b", 1) == (["a"], ["c"])
    assert beside(store, "c", 5) == (["a", "b"], ["d"])
    assert beside(store, "x", 5) == ([], [])


def test_neighbours_come_in_the_view_that_is_asked_for_and_none_beside_what_is_gone(store: Store) -> None:
    put(store, "p", turn("t0"), turn("t1"))
    (found,) = at(store, "p").neighbours([doc_of(store, "p", "t1")], 1, full=False, most_bytes=MOST_BYTES)
    assert [memory.payload for memory in found.before] == [None]
    doc = doc_of(store, "p", "t0")
    store.write("p", delete_request(["t0"])).result(30)
    for project, number in (("p", doc), ("p", 99), ("unknown", 1)):
        (found,) = at(store, project).neighbours([number], 3, full=True, most_bytes=MOST_BYTES)
        assert (found.before, found.after) == ((), ())


@pytest.mark.long
def test_what_stands_beside_several_is_the_same_memory_and_takes_its_room_in_each(store: Store) -> None:
    put(store, "p", *(turn(f"t{number}") for number in range(3)))
    docs = [doc_of(store, "p", name) for name in ("t0", "t2")]
    first, second = at(store, "p").neighbours(docs, 1, full=True, most_bytes=MOST_BYTES)
    assert first.after[0] is second.before[0]
    rooms = range(0, 2000, 10)
    shown = [at(store, "p").neighbours(docs, 1, full=True, most_bytes=most_bytes) for most_bytes in rooms]
    assert {tuple(len(found.before + found.after) for found in each) for each in shown} == {(0, 0), (1, 0), (1, 1)}


def test_the_room_is_for_the_best_first_and_for_the_nearest_of_them(store: Store) -> None:
    put(store, "p", *(turn(f"t{number}") for number in range(7)))
    docs = [doc_of(store, "p", name) for name in ("t3", "t1")]
    whole = at(store, "p").neighbours(docs, 3, full=True, most_bytes=MOST_BYTES)
    assert not any(found.is_cut for found in whole)
    orders = [["t2", "t4", "t1", "t5", "t0", "t6"], ["t0", "t2", "t3", "t4"]]
    counts: list[list[int]] = []
    for most_bytes in range(0, 4000, 10):
        beside_each = at(store, "p").neighbours(docs, 3, full=True, most_bytes=most_bytes)
        counts.append([len(found.before + found.after) for found in beside_each])
        for found, order, count_here in zip(beside_each, orders, counts[-1], strict=True):
            assert sorted(names(found.before + found.after)) == sorted(order[:count_here])
            assert found.is_cut == (count_here < len(order))
        assert counts[-1][1] == 0 or counts[-1][0] == 6
    assert (counts, counts[0], counts[-1]) == (sorted(counts), [0, 0], [6, 4])


@pytest.mark.long
@given(most_bytes=st.integers(0, 3000), count_each_side=st.integers(0, 5))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_that_is_given_has_room(store: Store, most_bytes: int, count_each_side: int) -> None:
    project = f"project-{next(_PROJECTS)}"
    entries = [replace(turn(f"t{number}"), words=("潮汐",) * (number * 3)) for number in range(8)]
    put(store, project, *entries)
    docs = [doc_of(store, project, entry.id) for entry in entries]
    found = at(store, project).neighbours(docs, count_each_side, full=True, most_bytes=most_bytes)
    given_memories = [memory for each in found for memory in (*each.before, *each.after)]
    own = sum(len(entry.text.encode()) for entry in entries)
    texts = sum(len(memory.payload.content.encode()) for memory in given_memories if memory.payload)
    assert not given_memories or own + texts <= most_bytes


@pytest.mark.long
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_neighbours_are_those_of_the_session_as_it_was_written(store: Store, data: st.DataObject) -> None:
    project = f"project-{next(_PROJECTS)}"
    sessions: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for number in range(data.draw(st.integers(1, 25))):
        session_id = data.draw(st.sampled_from("abc"))
        put(store, project, turn(f"{session_id}{number}", session_id))
        sessions[session_id].append(f"{session_id}{number}")
    for turns in sessions.values():
        for place, memory_id in enumerate(turns):
            expected = turns[max(0, place - 2) : place], turns[place + 1 : place + 3]
            assert beside(store, memory_id, 2, project) == expected


SAID = frozenset({Origin.USER_INPUT, Origin.AI_OUTPUT})


def outside(store: Store, session_id: str, turns: int, where: Filter | None = None) -> Candidates:
    """Candidates outside a window."""
    window = SessionWindow(session_id=session_id, turns=turns)
    query = GroupQuery(name="main", filter=where or Filter(), window=window, vector=unit_vector(1))
    return gather(store, "p", query).groups[0]


def said(name: str, origin: Origin = Origin.USER_INPUT, session_id: str = "s") -> Entry:
    return Entry(id=name, words=(name,), origin=origin, session_id=session_id)


def exchange(number: int, session_id: str = "s") -> tuple[Entry, Entry]:
    question = said(f"{session_id}-q{number}", Origin.USER_INPUT, session_id)
    return question, said(f"{session_id}-a{number}", Origin.AI_OUTPUT, session_id)


def test_a_turn_is_a_question_and_what_was_answered(store: Store) -> None:
    """S4-55."""
    put(store, "p", *exchange(1), *exchange(2), *exchange(3))
    assert ids(outside(store, "s", 1)) == {"s-q1", "s-a1", "s-q2", "s-a2"}
    assert (ids(outside(store, "s", 2)), ids(outside(store, "s", 9))) == ({"s-q1", "s-a1"}, set())
    assert ids(outside(store, "unknown", 9)) == {entry.id for number in (1, 2, 3) for entry in exchange(number)}


def test_turns_are_counted_once_explained_and_kept_through_edits(store: Store) -> None:
    """S4-55. The count of a receipt."""
    put(store, "p", *exchange(1), *exchange(2))
    found = outside(store, "s", 1, Filter(origins=frozenset({Origin.USER_INPUT})))
    assert (ids(found), found.in_window, found.searched) == ({"s-q1"}, 1, 1)
    for window, turns_ago in ((1, 0), (2, 2)):
        query = GroupQuery(
            name="main", filter=Filter(), window=SessionWindow(session_id="s", turns=window), vector=unit_vector(1)
        )
        standing = at(store, "p").standing(query, "s-a1")
        assert standing is not None
        assert standing.turns_ago == turns_ago
    put(store, "p", replace(said("s-q1"), words=("edited",)))
    assert ids(outside(store, "s", 1)) == {"s-q1", "s-a1"}
    store.write("p", delete_request(["s-q2"])).result(timeout=30)
    # What is left of the second turn belongs to the last question that there is.
    assert ids(outside(store, "s", 1)) == set()


@pytest.mark.long
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
    assert (ids(found), found.in_window) == ({entry.id for entry in there} - window, len(window))
