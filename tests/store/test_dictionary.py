"""Terms' numbers in memory are those of the store."""

from __future__ import annotations

from pathlib import Path

from hummock.store.search.filters import Dictionary
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.strategies import Entry


def test_numbers_in_memory_are_those_on_disk_and_of_their_project(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", words=("tide", "还款")))
        put(store, "q", Entry(id="a", words=("loan", "还款", "tide")))
        tables = store._tables
        dictionary = Dictionary(tables)
        for terms in (["tide", "还款", "nothing"], ["还款", "loan"], ["tide"]):
            for project in (1, 2, 1):
                with store._environment.reading() as txn:
                    fresh = Dictionary(tables).of(txn, project)(terms)
                    assert dictionary.of(txn, project)(terms) == fresh
        with store._environment.reading() as txn:
            assert dictionary.of(txn, 1)(["loan"]) == [None]


def test_a_term_that_nothing_held_is_found_once_something_does(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", words=("tide",)))
        assert ids(ask(store, terms=["harbour"])) == set()
        put(store, "p", Entry(id="b", words=("harbour",)))
        assert ids(ask(store, terms=["harbour"])) == {"b"}


def test_as_many_are_kept_as_there_is_room_for(tmp_path: Path) -> None:
    words = tuple(f"word{number}" for number in range(10))
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", words=words))
        dictionary = Dictionary(store._tables, most_terms=4)
        with store._environment.reading() as txn:
            numbers = [dictionary.of(txn, 1)([word])[0] for word in words]
            assert numbers == Dictionary(store._tables).of(txn, 1)(words)
            assert sum(map(len, dictionary._known.values())) <= 4
