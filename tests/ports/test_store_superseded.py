"""Memories that others replace: no candidates, still there, and back once what replaced them is gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummock.core.candidates import GroupQuery
from hummock.core.memory import Filter
from hummock.ports.store import Store
from tests.ports.asking import ask, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request

OLD = Entry(id="old", words=("tide",), seeds=(1,), supersedes=())
NEW = Entry(id="new", words=("tide", "loan"), seeds=(2,), supersedes=("old", "absent"))
OTHER = Entry(id="other", words=("tide", "lamp"), seeds=(3,), supersedes=())


def found(store: Store, project: str = "p") -> set[str]:
    by_words, by_vector = ids(ask(store, project, terms=("tide",))), ids(ask(store, project, seed=1))
    assert by_words == by_vector
    return by_words


@pytest.mark.parametrize("order", [(OLD, NEW, OTHER), (NEW, OTHER, OLD)])
def test_what_another_replaces_is_no_candidate_whichever_was_written_first(
    store: Store, order: Sequence[Entry]
) -> None:
    """1.1-17."""
    for entry in order:
        put(store, "p", entry)
    assert found(store) == {"new", "other"}
    assert store.superseded_by("p", ["old", "new", "absent"]) == {"old": ("new",)}


def test_what_one_write_brings_is_replaced_by_what_it_brings(store: Store) -> None:
    """1.1-17."""
    put(store, "p", NEW, OLD)
    assert found(store) == {"new"}


def test_it_is_still_there_and_told_with_what_replaces_it(store: Store) -> None:
    """1.1-17."""
    put(store, "p", OLD, NEW)
    (memory,) = store.get("p", ["old"], 0, full=True)
    assert memory is not None
    assert {one.id for one in store.page("p", Filter(), 0, 10, full=False).memories} == {"old", "new"}


def test_it_comes_back_when_what_replaced_it_is_removed_or_says_so_no_more(store: Store) -> None:
    """1.1-17."""
    put(store, "p", OLD, NEW, Entry(id="newer", supersedes=("old",)))
    store.write("p", delete_request(["new"])).result(timeout=30)
    assert found(store) == {"newer"}
    assert store.superseded_by("p", ["old"]) == {"old": ("newer",)}
    put(store, "p", Entry(id="newer", words=("tide", "x"), supersedes=()))
    assert found(store) == {"newer", "old"}
    assert store.superseded_by("p", ["old"]) == {}


def test_an_edit_of_the_old_one_leaves_it_replaced(store: Store) -> None:
    """1.1-17: the one that replaces it says so of the memory, not of its words."""
    put(store, "p", OLD, NEW)
    put(store, "p", Entry(id="old", words=("tide", "again"), supersedes=()))
    assert found(store) == {"new"}


def test_of_two_that_replace_each_other_the_one_written_last_stays(store: Store) -> None:
    put(store, "p", Entry(id="a", supersedes=("b",)))
    put(store, "p", Entry(id="b", supersedes=("a",)))
    assert found(store) == {"b"}
    put(store, "p", Entry(id="a", words=("tide", "x"), supersedes=("b",)))
    assert found(store) == {"a"}


def test_a_memory_does_not_replace_itself(store: Store) -> None:
    put(store, "p", Entry(id="a", supersedes=("a",)))
    assert found(store) == {"a"}


def test_a_chain_leaves_its_end(store: Store) -> None:
    put(store, "p", OLD, NEW, Entry(id="newest", supersedes=("new",)))
    assert found(store) == {"newest"}


def test_projects_replace_apart(store: Store) -> None:
    """S0-06."""
    put(store, "p", OLD)
    put(store, "q", NEW)
    assert found(store) == {"old"}
    assert store.superseded_by("p", ["old"]) == {}


def test_among_many_memories_the_same_are_left_out_while_they_are_indexed_anew(store: Store) -> None:
    """This holds in the delta and in the base."""
    put(store, "p", OLD, NEW)
    for number in range(12):
        put(store, "p", *(Entry(id=f"m{number}-{one}", seeds=(number,), supersedes=()) for one in range(4)))
        store.write("p", delete_request([f"m{number}-0"])).result(timeout=30)
        assert "old" not in ids(ask(store, terms=("tide",), pool=200))
        assert "new" in ids(ask(store, terms=("tide",), pool=200))


def test_it_is_told_why_it_is_no_candidate(store: Store) -> None:
    """1.1-17."""
    put(store, "p", OLD, NEW, OTHER)
    standing = at(store, "p").standing(GroupQuery(name="main", filter=Filter(), terms=("tide",)), "old")
    assert standing is not None
    assert (standing.superseded_by, standing.failed) == (("new",), ())
    other = at(store, "p").standing(GroupQuery(name="main", filter=Filter(), terms=("tide",)), "other")
    assert other is not None
    assert (other.superseded_by, other.searched) == ((), 2)


def test_it_is_the_same_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", NEW, OLD, OTHER)
    with opened(tmp_path) as store:
        assert store.superseded_by("p", ["old"]) == {"old": ("new",)}
        assert found(store) == {"new", "other"}
