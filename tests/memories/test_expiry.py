"""Expired memories are gone for every read at once, and removed a little later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from hummock.core.errors import InvalidRequest, MemoryNotFound
from hummock.core.memory import Changes, Draft, Filter, LearnStatus, MemoryEventType, MemoryKind, Payload
from hummock.core.recall import RecallQuery
from hummock.learning.references import Entries
from hummock.memories.retention import Expiry
from hummock.ports.writes import ProjectRemoval
from tests.ports.asking import ask, ids
from tests.recall.test_cached_recall import Counted
from tests.store.opening import opened
from tests.sure import sure
from tests.workplace import Workplace, note, workplace

NOW = 1_700_000_000.0


def ending(draft: Draft, in_s: float) -> Draft:
    return replace(draft, expire_time=NOW + in_s)


@pytest.fixture
def expiry(work: Workplace) -> Iterator[Expiry]:
    with closing(Expiry(work.store)) as made:
        yield made


def there(work: Workplace) -> set[str]:
    """Ids that a page, a search, a look-up by id and an export find, which must be the same."""
    listed = {one.id for one in work.store.page("p", Filter(), 0, 100, full=True).memories}
    names = ["a", "b", "c"]
    got = {one.id for one in work.store.get("p", names, 0, full=False) if one is not None}
    seq = work.store.generation("p").seq
    exported = {one.memory.id for one in work.store.export("p", 0, seq, with_vectors=False).memories}
    found = ids(ask(work.store, seed=1))
    assert listed == got == exported == found
    return listed


def test_it_is_gone_at_its_time_and_not_before(work: Workplace) -> None:
    work.teach(ending(note("tide one", "a"), 10), ending(note("tide two", "b"), 20), note("tide three", "c"))
    assert there(work) == {"a", "b", "c"}
    work.clock.move(9.999)
    assert there(work) == {"a", "b", "c"}
    work.clock.move(0.001)
    assert there(work) == {"b", "c"}
    work.clock.move(10)
    assert there(work) == {"c"}
    # People set clocks back: nothing is lost that is not removed.
    work.clock.move(-10)
    assert there(work) == {"b", "c"}


def test_it_is_gone_also_where_the_project_is_not_in_memory(tmp_path: Path) -> None:
    with workplace(tmp_path) as work:
        work.teach(ending(note("tide one", "a"), 10), note("tide three", "c"))
        clock = work.clock
    clock.move(10)
    with opened(tmp_path, clock=clock) as store:
        assert store.generation("p").expired_at == NOW + 10
        assert ids(ask(store, seed=1)) == {"c"}
        assert store.expired(10) == [("p", "a")]


def test_a_removal_is_told_and_leaves_nothing(work: Workplace, expiry: Expiry) -> None:
    work.teach(ending(note("tide one", "a"), 10), ending(note("tide two", "b"), 10), note("tide three", "c"))
    seq = work.store.generation("p").seq
    assert not expiry.remove_some()
    work.clock.move(10)
    # Nothing is told before it is so for those who ask by their seq.
    assert work.store.memory_events("p", seq, full=False).events == ()
    assert expiry.remove_some()
    assert not expiry.remove_some()
    events = work.store.memory_events("p", seq, full=False).events
    assert [(one.type, one.memory_id) for one in events] == [(MemoryEventType.DELETED, name) for name in "ab"]
    assert (sure(work.store.project("p")).memory_count, there(work)) == (1, {"c"})
    assert work.store.expired(10) == []


def test_who_watches_from_the_beginning_is_told_of_none_that_has_expired(work: Workplace) -> None:
    work.teach(ending(note("tide one", "a"), 10), note("tide three", "c"))
    work.clock.move(10)
    assert [one.memory_id for one in work.store.memory_events("p", 0, full=True).events] == ["c"]


def test_an_answer_that_was_kept_ends_with_what_it_holds(work: Workplace, expiry: Expiry) -> None:
    """Neither what has expired comes out of the cache, nor is what it replaced left out."""
    counted = Counted(work)
    work.teach(note("tide table old", "b"), note("tide three", "c"))
    work.teach(replace(ending(note("tide table new", "a"), 10), supersedes=("b",)))
    query = RecallQuery(project="p", text="tide table")

    def found() -> set[str]:
        return {hit.memory.id for hit in counted.cached(query).hits}

    assert found() == found() == {"a", "c"}
    assert len(counted.asked) == 1
    work.clock.move(10)
    assert found() == found() == {"b", "c"}
    assert len(counted.asked) == 2
    assert expiry.remove_some()
    assert found() == {"b", "c"}


def test_an_entry_that_has_expired_is_referred_to_by_nobody(work: Workplace) -> None:
    entries = Entries()
    entry = Draft(id="a", kind=MemoryKind.ENTRY, payload=Payload(content="tide core"), expire_time=NOW + 10)
    work.teach(entry)
    assert [one.memory_id for one in work.store.read("p", partial(entries.of, "p"))] == ["a"]
    work.clock.move(10)
    assert work.store.read("p", partial(entries.of, "p")) == ()


def test_its_id_and_its_text_are_free_again(work: Workplace, expiry: Expiry) -> None:
    """This holds also before its removal: a text that nobody can read must not swallow a new one."""
    work.teach(ending(note("tide one", "a"), 10), ending(note("tide two", "b"), 10))
    work.clock.move(10)
    first = work.teach(note("tide one", "a"))
    assert first.results[0].status is LearnStatus.CREATED
    second = work.teach(note("tide two", "c"))
    assert (second.results[0].status, second.results[0].id) == (LearnStatus.CREATED, "c")
    assert there(work) == {"a", "c"}
    assert expiry.remove_some()
    assert there(work) == {"a", "c"}


def test_its_time_may_be_changed_until_it_has_come(work: Workplace, expiry: Expiry) -> None:
    work.teach(ending(note("tide one", "a"), 10), ending(note("tide two", "b"), 10))
    later = Changes(expire_time=NOW + 30, expire_time_set=True)
    assert work.garden.update("p", "", "a", later, b"").memory.expire_time == NOW + 30
    work.clock.move(10)
    expiry.remove_some()
    assert there(work) == {"a"}
    with pytest.raises(MemoryNotFound):
        work.garden.update("p", "", "b", later, b"")
    never = Changes(expire_time_set=True)
    assert work.garden.update("p", "", "a", never, b"").memory.expire_time is None
    work.clock.move(100)
    assert there(work) == {"a"}
    assert work.store.expired(10) == []


def test_a_time_that_has_passed_is_refused_and_a_repeat_is_not(work: Workplace) -> None:
    with pytest.raises(InvalidRequest) as error:
        work.teach(note("x"), ending(note("y"), 0))
    assert error.value.field == "memories[1].expire_time"
    first = work.teach(ending(note("tide", "a"), 10), request_id="r")
    work.clock.move(10)
    assert work.teach(ending(note("tide", "a"), 10), request_id="r") == first
    work.teach(note("tide", "b"))
    with pytest.raises(InvalidRequest) as error:
        work.garden.update("p", "", "b", Changes(expire_time=NOW, expire_time_set=True), b"")
    assert error.value.field == "expire_time"


def test_it_is_not_deleted_twice(work: Workplace) -> None:
    work.teach(ending(note("tide one", "a"), 10), note("tide two", "b"))
    work.clock.move(10)
    deleted = work.garden.delete("p", "", ["a", "b"], b"")
    assert (deleted.deleted_count, deleted.missing_ids) == (1, ("a",))
    assert work.store.expired(10) == []


def test_what_waits_for_its_vectors_waits_no_more(work: Workplace, expiry: Expiry) -> None:
    work.teach(ending(note("tide one", "a"), 10), is_deferred=True)
    work.clock.move(10)
    assert work.store.pending("p", 10) == []
    work.embed_pending()
    assert work.embedder.embedded == []
    assert expiry.remove_some()
    assert work.store.status().pending_count == 0


def test_a_removed_project_leaves_no_time_behind(work: Workplace, expiry: Expiry) -> None:
    work.teach(ending(note("tide one", "a"), 10))
    work.store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"")).result(30)
    work.teach(note("tide two", "b"))
    work.clock.move(10)
    assert work.store.expired(10) == []
    assert not expiry.remove_some()
    assert there(work) == {"b"}


def test_many_that_end_at_once_are_removed_in_several_writes(work: Workplace, expiry: Expiry) -> None:
    work.teach(*(ending(note(f"tide {number}", f"m{number}"), 10) for number in range(300)), note("tide", "c"))
    seq = work.store.generation("p").seq
    work.clock.move(10)
    assert [expiry.remove_some() for _ in range(3)] == [True, True, False]
    assert work.store.generation("p").seq == seq + 2
    assert there(work) == {"c"}


def test_a_process_removes_what_expired_before_it_began(tmp_path: Path) -> None:
    with workplace(tmp_path) as work:
        work.teach(ending(note("tide one", "a"), 10), note("tide two", "b"))
        clock = work.clock
    clock.move(10)
    with opened(tmp_path, clock=clock) as store, closing(Expiry(store)) as expiry:
        assert expiry.remove_some()
        assert sure(store.project("p")).memory_count == 1
