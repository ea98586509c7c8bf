"""A project's own names for things, as its store knows them at every moment."""

from __future__ import annotations

from pathlib import Path

from hummock.core.learning import KeywordsSet
from hummock.core.memory import DomainKnowledge, MemoryKind
from hummock.learning.log import record
from hummock.ports.store import Store
from tests.ports.asking import put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, write_request


def domain(name: str, *aliases: str, memory_id: str = "domain") -> Entry:
    detail = DomainKnowledge(domain=name, aliases=aliases, summary="s")
    return Entry(id=memory_id, kind=MemoryKind.DOMAIN_KNOWLEDGE, detail=detail, supersedes=())


def called(store: Store, memory_id: str, *keywords: str) -> None:
    event = KeywordsSet(memory_id=memory_id, keywords=keywords)
    store.write("p", write_request(lambda work: record(work.learning, event))).result(30)


def names(store: Store, project: str = "p") -> set[tuple[str, ...]]:
    return set(at(store, project).given_names().groups)


def test_an_unknown_project_calls_nothing_anything(store: Store) -> None:
    assert names(store) == set()
    put(store, "p", Entry(id="a"))
    assert names(store) == set()


def test_domains_are_called_by_their_names_as_they_are_now(store: Store) -> None:
    """S0-10."""
    put(store, "p", domain("Repayment", "还款", "repay"))
    assert names(store) == {("Repayment", "还款", "repay")}
    put(
        store,
        "p",
        domain("Repayment", "偿还"),
        domain("风控", "Risk", memory_id="risk"),
        domain("x", memory_id="alone"),
    )
    assert names(store) == {("Repayment", "偿还"), ("风控", "Risk")}
    store.write("p", delete_request(["domain"])).result(30)
    assert names(store) == {("风控", "Risk")}
    assert names(store, "q") == set()


def test_entries_are_called_by_their_titles_and_keywords(store: Store) -> None:
    """S3-34."""
    put(store, "p", Entry(id="core", kind=MemoryKind.ENTRY, title=("潮汐木芯",), supersedes=()))
    assert names(store) == set()
    called(store, "core", "tidewood", "硬木头")
    assert names(store) == {("潮汐木芯", "tidewood", "硬木头")}
    called(store, "core", "driftwood")
    assert names(store) == {("潮汐木芯", "driftwood")}
    store.write("p", delete_request(["core"])).result(30)
    assert names(store) == set()


def test_they_are_the_very_same_while_nothing_named_changes(store: Store) -> None:
    put(store, "p", domain("Repayment", "还款"), Entry(id="a"))
    before = at(store, "p").given_names()
    put(store, "p", Entry(id="b"))
    store.write("p", delete_request(["a"])).result(30)
    assert at(store, "p").given_names() is before


def test_they_are_the_same_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", domain("Repayment", "还款"))
    with opened(tmp_path) as store:
        assert names(store) == {("Repayment", "还款")}
