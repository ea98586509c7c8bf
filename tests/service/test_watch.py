"""A garden that is kept up to date by a watch, through the socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import edit, learn
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

pytestmark = pytest.mark.timed

CREATED, UPDATED = memory.MEMORY_EVENT_TYPE_CREATED, memory.MEMORY_EVENT_TYPE_UPDATED
DELETED = memory.MEMORY_EVENT_TYPE_DELETED


@contextmanager
def watching(service: Stubs, project: str, **asked: Any) -> Iterator[Iterator[memory.WatchMemoriesResponse]]:
    """The messages of a watch after its start."""
    call = service.memory.WatchMemories(project=project, allow_missing=True, **asked, timeout=60)
    try:
        assert next(call).WhichOneof("news") == "start"
        yield call
    finally:
        call.cancel()


def told(news: memory.WatchMemoriesResponse) -> list[tuple[int, str]]:
    return [(event.change, event.id) for event in news.events.events]


def remove(service: Stubs, project: str, *ids: str) -> int:
    return service.memory.DeleteMemories(project=project, ids=ids).seq


def test_a_note_added_in_the_garden_is_told_at_once(service: Stubs, project: str) -> None:
    """S4-05, S4-40."""
    with watching(service, project) as news:
        seq = learn(service, project, note("潮汐木的心材，退潮时发光", id="a", emotion_label="joy")).seq
        first = next(news)
        assert (told(first), first.seq) == ([(CREATED, "a")], seq)
        seen = first.events.events[0].memory
        assert (seen.origin, seen.emotion_label, seen.title) == (pb.ORIGIN_MANUAL, "joy", "潮汐木的心材，退潮时发光")
        assert not seen.text


def test_every_writer_is_told_of_edits_and_removals_too(service: Stubs, project: str) -> None:
    """S4-40, S4-42."""
    learn(service, project, note("the meeting is on monday", id="a"))
    with watching(service, project, view=pb.MEMORY_VIEW_FULL) as news:
        changed = pb.Memory(id="a", content="on friday", emotion_label="fear")
        edit(service, project, changed, "content", "emotion_label")
        (event,) = next(news).events.events
        assert (event.change, event.memory.content, event.memory.emotion_label) == (UPDATED, "on friday", "fear")
        remove(service, project, "a")
        assert told(next(news)) == [(DELETED, "a")]


def test_a_watch_that_was_cut_off_goes_on_where_it_was(service: Stubs, project: str) -> None:
    """S4-40."""
    with watching(service, project) as news:
        learn(service, project, note("one", id="a"))
        seq = next(news).seq
    learn(service, project, note("two", id="b"))
    learn(service, project, note("three", id="c"))
    with watching(service, project, after_seq=seq) as news:
        assert told(next(news)) == [(CREATED, "b"), (CREATED, "c")]


def test_a_filter_tells_of_its_own_and_of_what_leaves_it(service: Stubs, project: str) -> None:
    """S4-41."""
    where = pb.MemoryFilter(kinds=[pb.MEMORY_KIND_NOTE], tags=["花园"])
    with watching(service, project, filter=where) as news:
        learn(service, project, fragment("a.py", "f", "def f(): pass"), note("other", id="b"))
        learn(service, project, note("mine", id="a", tags=["#花园"]))
        assert told(next(news)) == [(CREATED, "a")]
        edit(service, project, pb.Memory(id="a"), "tags")
        assert told(next(news)) == [(DELETED, "a")]


def test_a_filter_by_path_tells_without_payloads(service: Stubs, project: str) -> None:
    with watching(service, project, filter=pb.MemoryFilter(paths=["Pay.kt"])) as news:
        pay = fragment("src/Pay.kt", "f", "fun f()")
        pay.id = "b"
        learn(service, project, fragment("src/Ship.kt", "g", "fun g()"), pay)
        (event,) = next(news).events.events
        assert event.id == "b"
        assert not event.memory.text


def test_a_project_may_be_watched_before_it_is_there(service: Stubs, project: str) -> None:
    with watching(service, project) as news, watching(service, "nobody's") as others:
        learn(service, project, note("first", id="a"))
        assert told(next(news)) == [(CREATED, "a")]
        assert others is not None


def test_a_position_ahead_of_the_project_is_a_gap_and_the_watch_goes_on(service: Stubs, project: str) -> None:
    learn(service, project, note("one"))
    with watching(service, project, after_seq=99) as news:
        gap = next(news)
        assert (gap.WhichOneof("news"), gap.seq) == ("reset", 1)
        learn(service, project, note("two", id="b"))
        assert told(next(news)) == [(CREATED, "b")]


def test_watchers_of_concurrent_writers_end_with_what_is_there(service: Stubs, project: str) -> None:
    """S4-40."""

    def write(writer: int) -> None:
        for number in range(12):
            memory_id = f"m{(writer + number) % 5}"
            learn(service, project, note(f"记住 {writer} {number}", id=memory_id))
            if number % 3 == 2:
                remove(service, project, memory_id)

    def mirrored() -> dict[str, str]:
        held: dict[str, str] = {}
        with watching(service, project, after_seq=0, view=pb.MEMORY_VIEW_FULL) as news:
            for message in news:
                for event in message.events.events:
                    if event.change == DELETED:
                        held.pop(event.id, None)
                    else:
                        held[event.id] = event.memory.content
                if "last" in held:
                    return held
        raise AssertionError("the watch ended")

    with ThreadPoolExecutor(8) as pool:
        mirrors = [pool.submit(mirrored) for _ in range(3)]
        list(pool.map(write, range(4)))
        learn(service, project, note("last", id="last"))
        listed = service.memory.ListMemories(project=project, view=pb.MEMORY_VIEW_FULL)
        expected = {one.id: one.content for one in listed.memories}
        for mirror in mirrors:
            assert mirror.result(60) == expected
