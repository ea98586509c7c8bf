"""Pages of a list, in either order, of all memories or of those that hold a string."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.memory import Filter, Origin
from hummock.ports.store import Store
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, domain, entries


def walk(
    store: Store, limit: int, where: Filter | None = None, *, newest_first: bool = False, contains: str = ""
) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    after: int | None = 0
    while after is not None:
        page = store.page(
            "p", where or Filter(), after, limit, full=False, newest_first=newest_first, contains=contains
        )
        assert len(page.memories) <= limit
        found += [memory.id for memory in page.memories]
        after = page.next_after
    return found


def test_what_was_written_last_comes_first_where_that_is_asked(store: Store) -> None:
    """S4-18, S4-41."""
    put(store, "p", *(Entry(id=str(number)) for number in range(5)))
    put(store, "p", Entry(id="1", words=("edited",)))
    store.write("p", delete_request(["3"])).result(30)
    for limit in (1, 2, 9):
        assert walk(store, limit, newest_first=True) == ["1", "4", "2", "0"]
        assert walk(store, limit) == ["0", "2", "4", "1"]


def test_a_page_behind_a_memory_that_is_gone_goes_on_where_it_was(store: Store) -> None:
    put(store, "p", *(Entry(id=str(number)) for number in range(4)))
    page = store.page("p", Filter(), 0, 2, full=False, newest_first=True)
    store.write("p", delete_request(["2"])).result(30)
    put(store, "p", Entry(id="new"))
    assert page.next_after is not None
    rest = store.page("p", Filter(), page.next_after, 9, full=False, newest_first=True)
    assert [memory.id for memory in rest.memories] == ["1", "0"]


def test_only_memories_that_hold_the_string_are_listed(store: Store) -> None:
    """S4-41."""
    put(
        store,
        "p",
        Entry(id="a", words=("潮汐木芯", "Tidal")),
        Entry(id="b", title=("parse_date",), origin=Origin.SUMMARY),
        Entry(id="c", tags=("花园",)),
        domain("d", ("还款", "repayment")),
    )
    assert walk(store, 1, contains="汐木") == ["a"]
    assert walk(store, 1, contains="tIDAL") == ["a"]
    assert walk(store, 1, contains="e_dat") == ["b"]
    assert walk(store, 1, contains="花园") == ["c"]
    assert walk(store, 1, contains="repay") == ["d"]
    assert walk(store, 1, contains="raw") == []
    assert walk(store, 1, Filter(origins=frozenset({Origin.MANUAL})), contains="date") == []


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    written=st.lists(entries("abcdefgh"), max_size=12),
    contains=st.sampled_from(["", "tide", "款", "e"]),
    newest_first=st.booleans(),
    limit=st.integers(1, 4),
)
def test_pages_hold_each_memory_once_in_the_order_that_is_asked(
    tmp_path_factory: pytest.TempPathFactory, written: list[Entry], contains: str, newest_first: bool, limit: int
) -> None:
    with opened(tmp_path_factory.mktemp("pages")) as store:
        for entry in written:
            put(store, "p", entry)
        last = {entry.id: entry for entry in written}
        order = list(dict.fromkeys(entry.id for entry in reversed(written)))
        expected = [
            memory_id
            for memory_id in order
            if contains in " ".join((*last[memory_id].words, *last[memory_id].title, *last[memory_id].tags))
        ]
        found = walk(store, limit, newest_first=newest_first, contains=contains)
        assert found == (expected if newest_first else expected[::-1])


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_page_ends_early_where_much_must_be_read_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    monkeypatch.setattr("hummock.store.search.filters.MAX_SUBSTRING_BYTES", 1000)
    with opened(tmp_path) as store:
        put(
            store,
            "p",
            *(Entry(id=str(number), words=("wanted" if number in (4, 17) else "x",)) for number in range(20)),
        )
        first = store.page("p", Filter(), 0, 5, full=False, newest_first=newest_first, contains="wanted")
        assert len(first.memories) < 2
        assert first.next_after is not None
        assert sorted(walk(store, 5, newest_first=newest_first, contains="wanted")) == ["17", "4"]
