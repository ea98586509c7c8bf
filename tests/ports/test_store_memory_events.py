"""Events that a store sends to watchers."""

from __future__ import annotations

from hummock.core.memory import EventPage, MemoryEvent, MemoryEventType
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from tests.ports.asking import put
from tests.strategies import Entry, delete_request, write_request

CREATED, UPDATED, DELETED = MemoryEventType.CREATED, MemoryEventType.UPDATED, MemoryEventType.DELETED


def told(page: EventPage) -> list[tuple[MemoryEventType, str, int]]:
    return [(event.type, event.memory_id, event.seq) for event in page.events]


def events(store: Store, after: int, project: str = "p") -> EventPage:
    return store.memory_events(project, after, full=True)


def test_an_unknown_project_has_no_events(store: Store) -> None:
    assert events(store, 0) == EventPage(events=(), seq=0)


def test_stored_changed_and_removed_memories_are_told_of_in_the_order_of_the_writes(store: Store) -> None:
    """S4-40."""
    put(store, "p", Entry(id="a"), Entry(id="世界"))
    assert told(events(store, 0)) == [(CREATED, "a", 1), (CREATED, "世界", 1)]
    put(store, "p", Entry(id="a", words=("还款",)))
    store.write("p", delete_request(["世界"])).result(30)
    assert told(events(store, 1)) == [(UPDATED, "a", 2), (DELETED, "世界", 3)]
    assert told(events(store, 3)) == []


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
    assert told(page) == [(CREATED, "a", 4)]
    assert told(events(store, 1)) == [(UPDATED, "a", 4)]


def test_what_came_and_went_is_not_told(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    put(store, "p", Entry(id="b"))
    store.write("p", delete_request(["b"])).result(30)
    assert told(events(store, 1)) == []
    assert events(store, 1).seq == 3


def test_what_was_removed_and_stored_again_has_changed(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    store.write("p", delete_request(["a"])).result(30)
    put(store, "p", Entry(id="a", words=("again",)))
    assert told(events(store, 1)) == [(UPDATED, "a", 3)]


def test_a_write_that_changes_nothing_moves_the_position_alone(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    store.write("p", delete_request(["unknown"])).result(30)
    assert events(store, 1) == EventPage(events=(), seq=2)


def test_one_project_is_not_told_of_another(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    put(store, "other", Entry(id="secret"))
    assert told(events(store, 0)) == [(CREATED, "a", 1)]


def test_a_position_ahead_of_the_project_is_out_of_reach(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    assert events(store, 9) == EventPage(events=(), seq=1, is_reset=True)
    assert events(store, 9, "unknown") == EventPage(events=(), seq=0, is_reset=True)


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
