"""Rank of one memory among all that pass a query's filter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hummock.core.candidates import GroupQuery, Standing
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.ports.store import Store
from tests.ports.asking import put
from tests.snapshots import at
from tests.strategies import Entry, delete_request, unit_vector

ALL = Filter()


def standing(store: Store, memory_id: str, project: str = "p", /, **fields: object) -> Standing | None:
    query = GroupQuery(name="main", filter=fields.pop("where", ALL), **fields)  # type: ignore[arg-type] # its own fields
    return at(store, project).standing(query, memory_id)


def known(store: Store, memory_id: str, **fields: object) -> Standing:
    found = standing(store, memory_id, "p", **fields)
    assert found is not None
    return found


def many(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{n:02}", words=("tide", *["loan"] * n), seeds=(n,)) for n in range(12)))


def stored_cosine(seed: int, query: int) -> float:
    return float(unit_vector(seed).astype(np.float16).astype(np.float32) @ unit_vector(query))


def test_ranks_are_those_of_all_that_pass_whatever_the_pool(store: Store) -> None:
    many(store)
    cosines = {
        f"m{n:02}": float(unit_vector(n).astype(np.float16).astype(np.float32) @ unit_vector(3)) for n in range(12)
    }
    by_cosine = sorted(cosines, key=lambda memory_id: -cosines[memory_id])
    for memory_id, cosine in cosines.items():
        found = known(store, memory_id, vector=unit_vector(3), pool=1)
        assert found.vector_rank == by_cosine.index(memory_id) + 1
        assert found.cosine == pytest.approx(cosine, abs=1e-3)
        assert (found.searched, found.failed) == (12, ())


def test_ranks_by_words_agree_with_the_candidates(store: Store) -> None:
    many(store)
    query = GroupQuery(name="main", filter=ALL, terms=("loan",), pool=12)
    (found,) = at(store, "p").search([query]).groups
    best_first = [found.memory_id[row] for row in np.argsort(-found.keyword, kind="stable")]
    for rank, memory_id in enumerate(best_first, start=1):
        stands = known(store, memory_id, terms=("loan",), pool=1)
        assert (stands.keyword_rank, stands.matched) == (rank, 1)
        assert stands.keyword == pytest.approx(float(found.keyword[found.memory_id.index(memory_id)]))


def test_what_no_path_finds_has_no_rank(store: Store) -> None:
    put(store, "p", Entry(id="bare", seeds=()), Entry(id="other", words=("loan",)))
    found = known(store, "bare", vector=unit_vector(1), terms=("loan",))
    assert (found.vector_rank, found.keyword_rank, found.keyword, found.matched) == (0, 0, 0.0, 0)
    assert math.isnan(found.cosine)
    unasked = known(store, "other")
    assert (unasked.vector_rank, unasked.keyword_rank) == (0, 0)


def test_every_condition_that_it_does_not_meet_is_named(store: Store) -> None:
    put(store, "p", Entry(id="a", tags=("java",), session_id="s1", speaker="Yu", create_time=100.0), Entry(id="b"))
    where = Filter(
        kinds=frozenset({MemoryKind.NOTE}),
        origins=frozenset({Origin.SUMMARY}),
        tags=("java", "todo"),
        session_ids=("s1", "s2"),
        paths=("a.py",),
        speakers=("Lin",),
        created_after=101.0,
        created_before=100.0,
        excluded_ids=("a",),
        event_after=101.0,
        event_before=100.0,
        metadata=(("env", "prod"),),
        writers=("ci",),
    )
    found = known(store, "a", where=where, vector=unit_vector(1))
    assert found.failed == (
        "origins",
        "tags",
        "paths",
        "speakers",
        "created_after",
        "created_before",
        "excluded_ids",
        "event_after",
        "event_before",
        "metadata",
        "writers",
    )
    assert (found.searched, found.vector_rank) == (0, 1)


def test_the_newest_that_hold_a_string_come_first(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{n}", words=("潮汐" if n % 2 else "月亮",), create_time=100.0 + n) for n in range(6)))
    ranks = {n: known(store, f"m{n}", substrings=("汐",), pool=1).keyword_rank for n in range(6)}
    assert ranks == {0: 0, 1: 3, 2: 0, 3: 2, 4: 0, 5: 1}


def test_what_is_not_there_stands_nowhere(store: Store) -> None:
    assert standing(store, "a") is None
    put(store, "p", Entry(id="a"))
    put(store, "q", Entry(id="theirs"))
    assert standing(store, "theirs") is None
    store.write("p", delete_request(["a"])).result(30)
    assert standing(store, "a") is None


def test_an_edit_stands_where_the_new_text_does(store: Store) -> None:
    many(store)
    put(store, "p", Entry(id="m05", words=("bread",), seeds=(3,)))
    found = known(store, "m05", vector=unit_vector(3), terms=("loan",))
    assert (found.vector_rank, found.keyword_rank) == (2, 0)
