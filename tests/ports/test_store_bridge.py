"""A query in the words of another language, asked of any store."""

from __future__ import annotations

import numpy as np

from hummock.core.candidates import Bridge, Candidates, FoundBy, GroupQuery
from hummock.core.memory import Filter, MemoryKind
from hummock.ports.store import Store
from tests.ports.asking import gather, put
from tests.snapshots import at
from tests.strategies import Entry, unit_vector

CODE = MemoryKind.CODE_FRAGMENT


def bridge(*terms: str, seed: int | None = None, stands_for: int = 0, foreign_mark: int = 0) -> Bridge:
    return Bridge(
        vector=None if seed is None else unit_vector(seed),
        terms=terms,
        weights=np.ones(len(terms), np.float32),
        stands_for=np.full(len(terms), stands_for, np.uint32),
        foreign_mark=foreign_mark,
    )


def crossed(store: Store, asked: Bridge, pool: int = 50) -> Candidates:
    query = GroupQuery(name="main", filter=Filter(), terms=("缓存", "失效"), pool=pool, bridge=asked)
    return gather(store, "p", query).groups[0]


def test_words_of_another_language_find_what_the_querys_own_do_not(store: Store) -> None:
    put(store, "p", Entry(id="own", words=("缓存",)), Entry(id="code", words=("cach",), kind=CODE), Entry(id="other"))
    found = crossed(store, bridge("cach", stands_for=1))
    assert set(found.memory_id) == {"own", "code"}
    assert found.bridged is not None
    row = found.memory_id.index("code")
    assert FoundBy(int(found.found_by[row])) is FoundBy.KEYWORD
    assert (found.keyword[row], found.matched[row]) == (0, 0)
    assert found.bridged.keyword[row] > 0
    assert found.bridged.matched[row] == 1
    assert found.bridged.is_foreign.tolist() == [memory_id == "code" for memory_id in found.memory_id]


def test_without_a_bridge_nothing_is_said_of_it(store: Store) -> None:
    put(store, "p", Entry(id="own", words=("缓存",)))
    query = GroupQuery(name="main", filter=Filter(), terms=("缓存",))
    assert gather(store, "p", query).groups[0].bridged is None


def test_a_weight_scales_what_a_word_is_worth(store: Store) -> None:
    put(store, "p", Entry(id="code", words=("cach", "expir"), kind=CODE), Entry(id="other"))
    whole = bridge("cach")
    half = Bridge(
        vector=None,
        terms=whole.terms,
        weights=np.full(1, 0.5, np.float32),
        stands_for=whole.stands_for,
        foreign_mark=0,
    )
    scores = [found.bridged.keyword[0] for asked in (whole, half) if (found := crossed(store, asked)).bridged]
    assert scores[1] == np.float32(scores[0] / 2)


def test_a_project_knows_which_words_it_holds(store: Store) -> None:
    put(store, "p", Entry(id="m", words=("cach",)))
    put(store, "q", Entry(id="m", words=("缓存",)))
    assert at(store, "p").holds_any(("缓存", "cach"))
    assert not at(store, "q").holds_any(("cach",))
    assert not at(store, "p").holds_any(())
    assert not at(store, "unknown").holds_any(("cach",))
