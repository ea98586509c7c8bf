"""Pages of a list, in either order and of what holds a string; and the events that a store sends to watchers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.memory import EventPage, Filter, MemoryEvent, MemoryEventType, Origin
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, domain, entries, write_request


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
    assert (walk(store, 1, contains="汐木"), walk(store, 1, contains="tIDAL")) == (["a"], ["a"])
    assert (walk(store, 1, contains="e_dat"), walk(store, 1, contains="花园")) == (["b"], ["c"])
    assert (walk(store, 1, contains="repay"), walk(store, 1, contains="raw")) == (["d"], [])
    assert walk(store, 1, Filter(origins=frozenset({Origin.MANUAL})), contains="date") == []


@pytest.mark.long
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


CREATED, UPDATED, DELETED = MemoryEventType.CREATED, MemoryEventType.UPDATED, MemoryEventType.DELETED


def told(page: EventPage) -> list[tuple[MemoryEventType, str, int]]:
    return [(event.type, event.memory_id, event.seq) for event in page.events]


def events(store: Store, after: int, project: str = "p") -> EventPage:
    return store.memory_events(project, after, full=True)


def test_events_are_of_one_project_within_reach_and_of_what_changed(store: Store) -> None:
    assert events(store, 0) == EventPage(events=(), seq=0)
    put(store, "p", Entry(id="a"))
    assert events(store, 9) == EventPage(events=(), seq=1, is_reset=True)
    assert events(store, 9, "unknown") == EventPage(events=(), seq=0, is_reset=True)
    put(store, "other", Entry(id="secret"))
    assert told(events(store, 0)) == [(CREATED, "a", 1)]
    store.write("p", delete_request(["unknown"])).result(30)
    assert events(store, 1) == EventPage(events=(), seq=2)


def test_stored_changed_and_removed_memories_are_told_of_in_the_order_of_the_writes(store: Store) -> None:
    """S4-40."""
    put(store, "p", Entry(id="a"), Entry(id="世界"))
    assert told(events(store, 0)) == [(CREATED, "a", 1), (CREATED, "世界", 1)]
    put(store, "p", Entry(id="a", words=("还款",)))
    store.write("p", delete_request(["世界"])).result(30)
    assert (told(events(store, 1)), told(events(store, 3))) == ([(UPDATED, "a", 2), (DELETED, "世界", 3)], [])


def test_an_event_carries_the_memory_as_it_is_in_the_view_that_is_asked_for(store: Store) -> None:
    """S4-41."""
    entry = Entry(id="a", words=("潮汐",), tags=("重要",), session_id="会话")
    put(store, "p", entry)
    (full,) = events(store, 0).events
    assert full == MemoryEvent(type=CREATED, memory_id="a", memory=entry.memory(), seq=1)
    (index,) = store.memory_events("p", 0, full=False).events
    assert index.memory is not None
    assert index.memory.payload is None


def test_of_several_changes_of_a_memory_the_last_is_told(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    for word in ("one", "two", "three"):
        put(store, "p", Entry(id="a", words=(word,)))
    page = events(store, 0)
    assert (told(page), told(events(store, 1))) == ([(CREATED, "a", 4)], [(UPDATED, "a", 4)])


def test_what_came_and_went_is_not_told(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    put(store, "p", Entry(id="b"))
    store.write("p", delete_request(["b"])).result(30)
    assert (told(events(store, 1)), events(store, 1).seq) == ([], 3)


def test_what_was_removed_and_stored_again_has_changed(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    store.write("p", delete_request(["a"])).result(30)
    put(store, "p", Entry(id="a", words=("again",)))
    assert told(events(store, 1)) == [(UPDATED, "a", 3)]


@pytest.mark.long
def test_many_large_memories_come_in_pages_of_whole_writes(store: Store) -> None:
    large = tuple(f"{number:08}" for number in range(60_000))
    for number in range(4):
        put(store, "p", Entry(id=f"{number}a", words=large), Entry(id=f"{number}b", words=large))
    seq, pages = 0, 0
    ids: list[str] = []
    while True:
        page = events(store, seq)
        assert len(page.events) % 2 == 0
        ids += [event.memory_id for event in page.events]
        seq, pages = page.seq, pages + 1
        if page.is_newest:
            break
    assert ids == [f"{number}{which}" for number in range(4) for which in "ab"]
    assert pages > 1


def test_a_memory_that_is_stored_twice_in_one_write_is_told_of_once(store: Store) -> None:
    def twice(unit: UnitOfWork) -> None:
        for word in ("one", "two"):
            Entry(id="a", words=(word,)).put(unit)

    store.write("p", write_request(twice)).result(30)
    (event,) = events(store, 0).events
    assert (event.type, event.memory and event.memory.payload and event.memory.payload.content) == (CREATED, "two")
