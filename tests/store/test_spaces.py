"""A directory whose memories get the vectors of another space, switches to it, and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hummock.core.candidates import GroupQuery
from hummock.core.embedding import Embedding
from hummock.core.memory import Filter
from hummock.store import WritableStore, recorded_model
from hummock.store.errors import SpaceDiffers
from hummock.store.moving import copy_between
from hummock.store.tables import keys
from hummock.store.upkeep import check
from hummock.store.upkeep.moment import inspected, ready_spaces
from hummock.store.write.spaces import KEPT_S
from tests.fakes import FakeClock
from tests.ports.asking import ask, gather, put
from tests.store.opening import MIB, opened
from tests.store.test_project_removal import cleared, removal
from tests.strategies import SPACE, Entry, delete_request, embedded_request, learned_request, unit_vector

NEXT = replace(SPACE, id="6e" * 16, model="next-model", dim=24)
COUNT = 6


def of_next(seed: int) -> Embedding:
    """A vector of the next space, and two token vectors."""
    return Embedding(vector=unit_vector(seed, NEXT.dim), tokens=np.full((2, NEXT.token_dim), -seed, np.int8))


def nearest(store: WritableStore, seed: int) -> str:
    """The memory in p that is nearest to a vector of the next space."""
    query = GroupQuery(
        name="main",
        filter=Filter(),
        vector=unit_vector(seed, NEXT.dim),
        minimum_cosine=-1.0,
        terms=(),
        domain_names=frozenset(),
        domain_text="",
        pool=50,
    )
    found = gather(store, "p", query).groups[0]
    return found.memory_id[int(np.nanargmax(found.cosine))]


def fill(store: WritableStore) -> None:
    put(store, "p", *[Entry(id=f"m{seed}", words=(f"word{seed}",), seeds=(seed, seed + 50)) for seed in range(COUNT)])
    put(store, "q", Entry(id="other", seeds=(90,)))


def embed(store: WritableStore, but: frozenset[int] = frozenset()) -> None:
    """Gives the memories of both projects vectors of the next space, except those with these numbers."""
    beside = store.space_beside(NEXT)
    for project in ("p", "q"):
        docs = [doc for doc in beside.missing(project, 0).docs if doc not in but]
        beside.put(project, [(doc, (of_next(doc),)) for doc in docs])


def chunks(data: Path, space: int) -> list[tuple[int, int]]:
    """Documents and chunks that have vectors of a space, of all projects."""
    with inspected(data) as moment:
        found = [keys.of_chunk_key(key) for key, _ in moment.entries("vector", b"")]
    return [(doc, chunk) for number, doc, chunk in found if number == space]


def is_whole(data: Path) -> bool:
    return not check(data, lambda done, total: None).problems


def test_vectors_of_another_space_change_nothing_until_the_switch(tmp_path: Path) -> None:
    """A memory that goes takes them with it; those without are missing; the data are sound all the while."""
    with opened(tmp_path) as store:
        fill(store)
        before = ask(store, seed=3).memory_id
        embed(store, but=frozenset({2}))
        assert ask(store, seed=3).memory_id == before
        assert store.space_beside(NEXT).missing("p", 0) == ((2,), COUNT, COUNT)
        assert store.space_beside(NEXT).missing("p", 2) == ((), COUNT - 2, COUNT)
        assert store.space_beside(NEXT).missing("nobody", 0) == ((), 0, 0)
        store.write("p", delete_request(["m0"])).result()
        store.write("p", learned_request("m4", "learned")).result()  # gets another number
        put(store, "p", Entry(id="m5", words=("changed",), seeds=(5,)))
        assert store.space_beside(NEXT).missing("p", 0).docs == (2, 7, 8)
    assert chunks(tmp_path, 2) == [(3, 0), (4, 0), (1, 0)]
    assert recorded_model(tmp_path) == "test-model"
    assert is_whole(tmp_path)


def test_a_start_with_the_space_switches_to_it_and_back(tmp_path: Path) -> None:
    """What lacks vectors waits for them, found by words; going back gives the former answers."""
    with opened(tmp_path) as store:
        fill(store)
        former = [ask(store, seed=seed).memory_id for seed in range(COUNT)]
        embed(store, but=frozenset({2}))
    assert ready_spaces(tmp_path) == {NEXT.id}
    with opened(tmp_path, space=NEXT) as store:
        assert store.pending("p", 10) == [2]
        assert nearest(store, 4) == "m3"  # the fourth document
        assert ask(store, terms=("word1",)).memory_id == ("m1",)
        store.write("p", delete_request(["m0"])).result()
    assert recorded_model(tmp_path) == "next-model"
    assert is_whole(tmp_path)
    assert ready_spaces(tmp_path) == {SPACE.id}
    with opened(tmp_path) as store:
        assert [ask(store, seed=seed).memory_id for seed in range(1, COUNT)] == [
            tuple(one for one in ids if one != "m0") for ids in former[1:]
        ]
        assert store.status().pending_count == 0
    assert is_whole(tmp_path)


def test_a_memory_that_waits_is_embedded_after_the_switch(tmp_path: Path) -> None:
    entry = Entry(id="late", words=("late",), seeds=())
    with opened(tmp_path) as store:
        fill(store)
        put(store, "p", entry)
        embed(store)
    with opened(tmp_path, space=NEXT) as store:
        (doc,) = store.pending("p", 10)
        assert doc == COUNT + 1
        with pytest.raises(ValueError, match="24"):
            store.write("p", embedded_request(replace(entry, seeds=(1,)))).result()
        assert store.status().pending_count == 1


def test_a_space_is_ready_when_few_memories_lack_its_vectors(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *[Entry(id=f"m{seed}", words=(f"w{seed}",), seeds=(seed,)) for seed in range(300)])
        store.space_beside(NEXT)
    assert ready_spaces(tmp_path) == frozenset()
    with opened(tmp_path) as store:
        beside = store.space_beside(NEXT)
        beside.put("p", [(doc, (of_next(1),)) for doc in beside.missing("p", 0).docs[:44]])
    assert ready_spaces(tmp_path) == {NEXT.id}


def test_a_space_that_nobody_began_is_refused(tmp_path: Path) -> None:
    """S4-55."""
    with opened(tmp_path) as store:
        fill(store)
        store.space_beside(NEXT)
    with pytest.raises(SpaceDiffers), opened(tmp_path, space=replace(NEXT, id="00" * 16)):
        pass


def test_left_spaces_are_removed_after_a_week(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened(tmp_path, clock=clock) as store:
        fill(store)
        embed(store)
    with opened(tmp_path, space=NEXT, clock=clock) as store:
        clock.move(KEPT_S - 1)
        store.drop_left_spaces()
    assert ready_spaces(tmp_path) == {SPACE.id}
    with opened(tmp_path, space=NEXT, clock=clock) as store:
        clock.move(2)
        store.drop_left_spaces()
    assert ready_spaces(tmp_path) == frozenset()
    assert chunks(tmp_path, 1) == []
    assert is_whole(tmp_path)


def test_a_project_goes_with_the_vectors_of_all_spaces(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store)
        embed(store)
        store.remove_project("p", removal()).result()
        cleared(store)
    assert chunks(tmp_path, 2) == [(1, 0)]
    assert is_whole(tmp_path)


def test_a_copy_has_the_vectors_in_use_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "from") as store:
        fill(store)
        embed(store)
    copied = copy_between(str(tmp_path / "from"), str(tmp_path / "to"), map_bytes=256 * MIB)
    assert copied.is_whole
    assert chunks(tmp_path / "to", 2) == []
    assert is_whole(tmp_path / "to")
