"""Learned keywords: another way to a memory that is otherwise what it was."""

from __future__ import annotations

import pytest

from hummock.core.learning import KeywordsSet
from hummock.core.memory import Filter
from hummock.learning.log import record
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from tests.ports.asking import ask, ids, put
from tests.strategies import Entry, delete_request, learned_request, write_request


def learn(store: Store, memory_id: str, *terms: str) -> None:
    store.write("p", learned_request(memory_id, *terms)).result(30)


def found(store: Store, *terms: str) -> set[str]:
    return ids(ask(store, terms=terms))


def test_the_very_next_search_finds_a_memory_by_what_was_learnt(store: Store) -> None:
    """S3-14."""
    put(store, "p", Entry(id="wood", words=("tide",)), Entry(id="other", words=("stone",)))
    assert found(store, "timber") == set()
    learn(store, "wood", "timber", "damp")
    assert found(store, "timber") == {"wood"}


def test_learned_keywords_replace_those_of_before_and_no_words_of_the_memory(store: Store) -> None:
    put(store, "p", Entry(id="wood", words=("tide", "timber"), title=("wood",)))
    learn(store, "wood", "timber", "damp")
    learn(store, "wood", "warm")
    assert found(store, "damp") == set()
    assert [found(store, term) for term in ("warm", "timber", "tide", "wood")] == [{"wood"}] * 4
    learn(store, "wood")
    assert [found(store, term) for term in ("warm", "timber")] == [set(), {"wood"}]


def test_an_edit_keeps_what_was_learnt(store: Store) -> None:
    """S3-14, S3-38."""
    put(store, "p", Entry(id="wood", words=("tide",)))
    learn(store, "wood", "timber")
    put(store, "p", Entry(id="wood", words=("another", "text"), seeds=(2, 3)))
    assert [found(store, term) for term in ("timber", "another", "tide")] == [{"wood"}, {"wood"}, set()]


def test_the_memory_its_vectors_and_facets_stay_as_they_were(store: Store) -> None:
    entry = Entry(id="wood", session_id="s", tags=("#材料",), seeds=(4, 5), words=("tide", "rock"))
    put(store, "p", Entry(id="first", session_id="s"), entry, Entry(id="last", session_id="s"))
    before = ask(store, seed=4)
    learn(store, "wood", "timber")
    after = ask(store, seed=4)
    assert store.get("p", ["wood"], 0, full=True) == [entry.memory()]
    assert dict(zip(after.memory_id, after.cosine.tolist(), strict=True)) == dict(
        zip(before.memory_id, before.cosine.tolist(), strict=True)
    )
    assert dict(zip(after.memory_id, after.session_position.tolist(), strict=True))["wood"] == 1
    assert ids(ask(store, seed=4, where=Filter(tags=("#材料",)))) == {"wood"}
    assert store.find_by_text("p", [entry.key]) == ["wood"]


def test_a_learned_keyword_weighs_less_than_a_word_of_the_text(store: Store) -> None:
    put(store, "p", *(Entry(id=name, words=("tide", "x")) for name in ("learned", "none")))
    put(store, "p", Entry(id="body", words=("tide", "damp")), Entry(id="title", words=("tide",), title=("damp",)))
    learn(store, "learned", "damp")
    ranked = ask(store, terms=("damp",))
    score = dict(zip(ranked.memory_id, ranked.keyword.tolist(), strict=True))
    assert 0 < score["learned"] < score["body"] < score["title"]


def test_what_was_learnt_goes_with_the_memory(store: Store) -> None:
    put(store, "p", Entry(id="wood"))
    learn(store, "wood", "timber")
    store.write("p", delete_request(["wood"])).result(30)
    put(store, "p", Entry(id="wood"))
    assert found(store, "timber") == set()


def test_the_same_keywords_again_change_no_recall(store: Store) -> None:
    put(store, "p", Entry(id="wood"))
    learn(store, "wood", "timber")
    before = store.generation("p").content_seq
    learn(store, "wood", "timber")
    assert store.generation("p").content_seq == before


def test_a_memory_put_in_the_same_write_can_be_given_keywords(store: Store) -> None:
    def put_and_learn(unit: UnitOfWork) -> None:
        Entry(id="wood").put(unit)
        record(unit.learning, KeywordsSet(memory_id="wood", keywords=("timber",)))
        Entry(id="wood", words=("other",)).put(unit)

    store.write("p", write_request(put_and_learn)).result(30)
    assert found(store, "timber") == {"wood"}


def test_a_write_that_fails_leaves_no_keywords(store: Store) -> None:
    put(store, "p", Entry(id="wood"))

    def learn_and_fail(unit: UnitOfWork) -> None:
        record(unit.learning, KeywordsSet(memory_id="wood", keywords=("timber",)))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.write("p", write_request(learn_and_fail)).result(30)
    assert found(store, "timber") == set()
    learn(store, "wood", "damp")
    assert found(store, "damp") == {"wood"}
