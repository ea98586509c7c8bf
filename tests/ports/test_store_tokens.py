from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, GroupQuery, TokenVectors
from hummock.core.memory import Filter
from hummock.ports.store import Store
from tests.ports.asking import gather, put
from tests.strategies import SPACE, Entry, delete_request, embedding, unit_vector


def query(*, seed: int | None = None, terms: tuple[str, ...] = (), with_tokens: bool = True) -> GroupQuery:
    vector = None if seed is None else unit_vector(seed)
    return GroupQuery(name="main", filter=Filter(), vector=vector, terms=terms, with_tokens=with_tokens)


def ask(store: Store, *, seed: int | None = None, terms: tuple[str, ...] = (), project: str = "p") -> Candidates:
    return gather(store, project, query(seed=seed, terms=terms)).groups[0]


def tokens_of(found: Candidates, memory_id: str) -> NDArray[np.int8]:
    tokens = brought(found)
    row = found.memory_id.index(memory_id)
    return tokens.values[tokens.start[row] : tokens.start[row + 1]]


def brought(found: Candidates) -> TokenVectors:
    assert found.tokens is not None
    return found.tokens


def test_candidates_bring_the_token_vectors_of_their_best_chunk(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1, 2, 3)), Entry(id="b", seeds=(4,)))
    found = ask(store, seed=2)
    np.testing.assert_array_equal(tokens_of(found, "a"), embedding(2).tokens)
    np.testing.assert_array_equal(tokens_of(found, "b"), embedding(4).tokens)
    assert found.best_chunk[found.memory_id.index("a")] == 1


def test_without_a_query_vector_they_are_those_of_the_first_chunk(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide",), seeds=(1, 2)))
    np.testing.assert_array_equal(tokens_of(ask(store, terms=("tide",)), "a"), embedding(1).tokens)


def test_a_memory_without_vectors_has_none(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("tide",), seeds=()), Entry(id="b", words=("tide",), seeds=(1,)))
    found = ask(store, seed=1, terms=("tide",))
    assert len(tokens_of(found, "a")) == 0
    assert len(tokens_of(found, "b")) == 3


def test_no_candidates_bring_nothing(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)))
    store.write("p", delete_request(["a"])).result(timeout=30)
    assert brought(ask(store, seed=1)).values.shape == (0, SPACE.token_dim)


def test_they_come_only_where_they_are_asked_for(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)))
    groups = gather(store, "p", query(seed=1, with_tokens=False), query(seed=1)).groups
    assert [group.tokens is None for group in groups] == [True, False]
    assert ask(store, seed=1, project="unknown").tokens is None


def test_an_edited_memory_has_the_new_ones(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=(1,)))
    put(store, "p", Entry(id="a", seeds=(2,)))
    np.testing.assert_array_equal(tokens_of(ask(store, seed=1), "a"), embedding(2).tokens)
