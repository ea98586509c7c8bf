"""Terms' numbers in memory, the writer's and the readers': they are those of the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hummock.store.tables.forward_lists import TermDictionary
from hummock.store.tables.term_dictionary import TermDictionaries, TermNumbers
from hummock_kernels.vocabulary import UNKNOWN
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.strategies import Entry


def filled(dictionary: TermDictionary, terms: int) -> None:
    dictionary.remember(np.arange(1, terms + 1, dtype=np.uint64), np.arange(terms, dtype=np.uint32))


def test_a_dictionary_of_another_project_or_one_that_may_be_wrong_is_forgotten() -> None:
    dictionaries = TermDictionaries(budget_bytes=40_000)
    filled(dictionaries.of("a", 1), 5)
    assert (dictionaries.size_of("a"), dictionaries.size_of("b")) == (5, 0)
    assert len(dictionaries.of("a", 2)) == 0
    filled(dictionaries.of("a", 1), 500)
    dictionaries.forget("a")
    dictionaries.keep_within_budget()
    assert len(dictionaries.of("a", 1)) == 0
    filled(dictionaries.of("a", 1), 1)
    dictionaries.clear()
    assert len(dictionaries.of("a", 1)) == 0


def test_numbers_outlive_the_growth_of_the_table() -> None:
    dictionary = TermDictionary()
    filled(dictionary, 5000)
    filled(dictionary, 3)
    assert len(dictionary) == 5000
    wanted = np.array([1, 5000, 5001], np.uint64)
    assert dictionary.numbers_of(wanted).tolist() == [0, 4999, UNKNOWN]


def test_the_dictionary_used_longest_ago_is_dropped_when_memory_is_short() -> None:
    dictionaries = TermDictionaries(budget_bytes=40_000)
    for project in ("a", "b", "a", "c"):
        filled(dictionaries.of(project, 1), 500)
        dictionaries.keep_within_budget()
    assert [len(dictionaries.of(project, 1)) for project in ("a", "c", "b")] == [500, 500, 0]


def test_numbers_in_memory_are_those_on_disk_and_of_their_project(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", words=("tide", "还款")))
        put(store, "q", Entry(id="a", words=("loan", "还款", "tide")))
        tables = store._tables
        numbers = TermNumbers(tables)
        for terms in (["tide", "还款", "nothing"], ["还款", "loan"], ["tide"]):
            for project in (1, 2, 1):
                with store._engine.reading() as txn:
                    fresh = TermNumbers(tables).numbers_of(txn, project, terms)
                    assert numbers.numbers_of(txn, project, terms) == fresh
        with store._engine.reading() as txn:
            assert numbers.numbers_of(txn, 1, ["loan"]) == [None]


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
        few = TermNumbers(store._tables, most_terms=4)
        with store._engine.reading() as txn:
            numbers = [few.numbers_of(txn, 1, [word])[0] for word in words]
            assert numbers == TermNumbers(store._tables).numbers_of(txn, 1, words)
            assert sum(map(len, few._known.values())) <= 4
