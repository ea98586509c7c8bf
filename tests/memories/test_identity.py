"""Identity of memories (decision 077): learnt over a real store, and over those of earlier versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hummock.core.memory import Changes, Filter, LearnStatus, Payload
from hummock.store import DEFAULT_LIMITS
from hummock.text.likeness import written
from hummock.text.template import as_draft
from tests.fakes import FakeClock
from tests.memories.pairs import lost
from tests.store.opening import opened
from tests.store.test_golden_directories import NAMES, TREE, restored
from tests.workplace import Workplace, note, over

CREATED, DUPLICATE = LearnStatus.CREATED, LearnStatus.DUPLICATE

APART = [
    ("area is 10² m", "area is 102 m"),
    ("start with -v", "start with -V"),
    ("if ready:\n    check()\n    run()", "if ready:\n    check()\nrun()"),
    ("    check()\n    run()", "check()\n    run()"),
    ("the key is AB  CD", "the key is AB CD"),
    ("a\tb", "a b"),
    ("the code is ①", "the code is 1"),
    ("the code is １２", "the code is 12"),
    ("刚吃完饭！", "刚吃完饭!"),
    ("café", "cafe\u0301"),
    ("Polish it", "polish it"),
    ("it takes ½ h", "it takes 1/2 h"),
    ("temperature in K", "temperature in \u212a"),
    ("x < y", "x \uff1c y"),
]


@pytest.mark.parametrize(("first", "second"), APART)
def test_texts_that_are_written_otherwise_are_two_memories(work: Workplace, first: str, second: str) -> None:
    one, other = work.teach(note(first), note(second)).results
    assert (one.status, other.status) == (CREATED, CREATED)
    assert [work.get(each.id).payload for each in (one, other)] == [Payload(content=first), Payload(content=second)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "again", ["one\ntwo", "one\r\ntwo", "one\rtwo", "one\ntwo\n\n", "\u3000\none\ntwo \t", "one\r\ntwo\r\n"]
)
def test_line_ends_and_outer_white_space_make_no_other_memory(work: Workplace, again: str) -> None:
    first, second = work.teach(note("one\ntwo"), note(again)).results
    assert (second.status, second.duplicate_of) == (DUPLICATE, first.id)


def test_a_single_line_is_the_same_with_space_around_it() -> None:
    assert {written(text) for text in (" one", "one ", "\n\n  one\n", "one")} == {"one"}
    assert written("\n\n    check()\n    run()\n") == "    check()\n    run()"
    assert written("") == written(" \n ") == ""


@pytest.mark.long
def test_of_pairs_that_differ_in_one_thing_none_is_lost(work: Workplace) -> None:
    assert lost(work, 120, seed=7) == []


def test_a_new_id_stores_a_text_that_another_id_has(work: Workplace) -> None:
    results = work.teach(note("one", "a"), note("one", "b")).results
    results += work.teach(note("one", "c"), note("one")).results
    assert [each.status for each in results] == [CREATED, CREATED, CREATED, DUPLICATE]
    assert results[-1].duplicate_of == "a"
    assert [work.get(one) is not None for one in "abc"] == [True, True, True]


def test_who_forgets_his_leaves_the_other_his(work: Workplace) -> None:
    alice, bob = (replace(note("I drank two cups"), metadata=(("user_id", one),)) for one in ("alice", "bob"))
    (first, second) = work.teach(alice, bob).results
    where = Filter(metadata=alice.metadata)
    assert work.garden.delete_where("p", "", where, b"f", only_count=False).deleted_count == 1
    assert work.get(first.id) is None
    assert work.get(second.id) is not None


def test_an_updated_memory_is_told_again_in_vain_and_its_old_text_is_free(work: Workplace) -> None:
    (first,) = work.teach(note("start with -V")).results
    work.garden.update("p", "", first.id, Changes(content="start with -v"), b"f")
    again, old = work.teach(note("start with -v"), note("start with -V")).results
    assert (again.status, again.duplicate_of, old.status) == (DUPLICATE, first.id, CREATED)


def test_what_differs_in_its_time_of_learning_alone_is_found_by_that_time(work: Workplace) -> None:
    told = [replace(note("ran 5 km"), create_time=1_699_000_000.0 + day * 86_400) for day in range(3)]
    ids = [each.id for each in work.teach(*told, told[1]).results]
    assert ids == ["m1", "m2", "m3", "m2"]
    assert [each.id for each in work.teach(*reversed(told), note("ran 5 km")).results] == ["m3", "m2", "m1", "m1"]


@pytest.mark.parametrize("name", NAMES)
def test_a_memory_of_an_earlier_version_is_known_as_it_is_written(tmp_path: Path, name: str) -> None:
    """S4-44."""
    restored(tmp_path, name)
    clock = FakeClock()
    with opened(tmp_path, clock=clock, limits=DEFAULT_LIMITS) as store:
        work = over(store, clock)
        kept = work.garden.page("loan", Filter(), 0, 99, full=True).memories
        told = [replace(as_draft(one), id="", create_time=None) for one in kept if one.id in ("record", "domain", TREE)]
        results = work.teach(*told, project="loan").results
        assert [(each.status, each.id) for each in results] == [(DUPLICATE, one) for one in ("record", "domain", TREE)]
        tree = told[-1]
        others = [
            replace(tree, payload=Payload(content=tree.payload.content.replace("。", " 。"))),
            replace(tree, writer="ci"),
            replace(tree, metadata=(("user_id", "bob"),)),
        ]
        assert {each.status for each in work.teach(*others, project="loan").results} == {CREATED}
        assert len(work.garden.page("loan", Filter(), 0, 99, full=False).memories) == len(kept) + 3
