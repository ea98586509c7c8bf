"""The star map, where every memory is a point that stays, and watches that keep a garden up to date."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from hummock.rpc import memory_service
from hummock_client import Client
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import await_vectors, edit, failure, learn, told, watching
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs

pytestmark = pytest.mark.timed

Places = dict[str, tuple[float, float]]
COLUMNS = ("x", "y", "is_placed", "kinds", "origins", "update_unix_s", "sessions")


def mapped(service: Stubs, project: str, *ids: str, **more: Any) -> list[memory.MapMemoriesResponse]:
    """The messages of a map, each column of them as long as it has to be."""
    messages = list(service.memory.MapMemories(project=project, ids=ids, **more, timeout=60))
    assert len({message.seq for message in messages}) == 1
    for message in messages:
        assert {len(getattr(message, name)) for name in COLUMNS} == {len(message.ids)}
    return messages


def places(messages: Iterable[memory.MapMemoriesResponse]) -> Places:
    return {one: (x, y) for message in messages for one, x, y in zip(message.ids, message.x, message.y, strict=True)}


def notes(start: int, end: int) -> list[pb.Memory]:
    return [note(f"lamp number {n} on the quay burns {n * 7} hours", id=f"n{n}") for n in range(start, end)]


def test_the_map_has_every_memory_with_what_it_is_coloured_by(service: Stubs, project: str) -> None:
    """S4-40."""
    seq = learn(
        service,
        project,
        note("潮汐木的心材，退潮时发光", id="a", session_id="潮"),
        note("the settlement page takes ISO dates", id="b", origin=pb.ORIGIN_AI_OUTPUT, session_id="潮"),
        record("还款方式有哪些？", "等额本息、等额本金、先息后本。", id="c"),
        fragment("src/dates.py", "parse_date", "def parse_date(text):\n    return text"),
        domain("还款", "还款模块处理所有还款相关业务。"),
    ).seq
    first, stars = mapped(service, project)
    assert (first.seq, first.memory_count, first.layout_id, list(first.ids)) == (seq, 5, "", [])
    assert stars.layout_id
    assert list(stars.ids)[:3] == ["a", "b", "c"]
    kinds = [pb.MemoryKind.Name(kind).removeprefix("MEMORY_KIND_") for kind in stars.kinds]
    assert kinds == ["NOTE", "NOTE", "LEARNING_RECORD", "CODE_FRAGMENT", "DOMAIN_KNOWLEDGE"]
    assert (list(stars.origins)[:2], list(stars.sessions)) == ([pb.ORIGIN_MANUAL, pb.ORIGIN_AI_OUTPUT], [1, 1, 0, 0, 0])
    assert list(stars.session_ids) == ["潮"]
    assert all(stars.is_placed)
    assert all(x * x + y * y <= 1 + 1e-5 for x, y in places([stars]).values())
    changed = service.memory.GetMemory(project=project, id="a").memory.update_time
    assert stars.update_unix_s[0] == changed.seconds


def test_what_is_learnt_edited_or_deleted_moves_nothing_else(service: Stubs, project: str) -> None:
    """S4-40."""
    learn(service, project, *notes(0, 20))
    before = mapped(service, project)
    learn(service, project, *notes(20, 30))
    service.memory.DeleteMemories(project=project, ids=["n3"])
    edit(service, project, pb.Memory(id="n4", content="a bell in the harbour"), "content")
    after = mapped(service, project)
    assert after[1].layout_id == before[1].layout_id
    then, now = places(before), places(after)
    assert now.keys() == {f"n{number}" for number in range(30)} - {"n3"}
    for one in now.keys() & then.keys() - {"n4"}:
        assert now[one] == pytest.approx(then[one], abs=1e-5)


def test_some_memories_stand_where_the_whole_map_has_them(service: Stubs, project: str) -> None:
    learn(service, project, *notes(0, 12))
    whole = places(mapped(service, project))
    first, some = mapped(service, project, "n7", "gone", "n2", "n7")
    assert first.memory_count == 12
    assert list(some.ids) == ["n2", "n7"]
    for one, place in places([some]).items():
        assert place == pytest.approx(whole[one], abs=1e-5)
    assert [list(message.ids) for message in mapped(service, project, "gone")] == [[]]


def test_a_large_map_comes_in_parts_that_number_sessions_alike(
    service: Stubs, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_service, "MOST_STARS", 4)
    said = [note(f"{number} boats", id=f"n{number}", session_id="ABCA"[number % 4]) for number in range(10)]
    learn(service, project, *said)
    first, *parts = mapped(service, project)
    assert (first.memory_count, [len(part.ids) for part in parts]) == (10, [4, 4, 2])
    names = [name for part in parts for name in part.session_ids]
    assert sorted(names) == ["A", "B", "C"]
    numbers = [number for part in parts for number in part.sessions]
    assert [names[number - 1] for number in numbers] == ["ABCA"[number % 4] for number in range(10)]


def test_what_waits_for_its_vectors_is_told_apart(service: Stubs, project: str) -> None:
    learn(service, project, *notes(0, 9))
    late, deferred = note("late to the map", id="late"), context.EMBEDDING_MODE_DEFERRED
    service.context.Learn(project=project, memories=[late], embedding=deferred)
    await_vectors(service, project)
    (_, some) = mapped(service, project, "late")
    assert list(some.is_placed) == [True]


def test_an_unknown_project_is_not_found_unless_it_may_be_missing(service: Stubs, project: str) -> None:
    assert failure(mapped, service, project).code is grpc.StatusCode.NOT_FOUND
    (empty,) = mapped(service, project, allow_missing=True)
    assert (empty.seq, empty.memory_count) == (0, 0)


@pytest.mark.parametrize("wrong", [{"project": ""}, {"ids": ["x"] * 513}, {"ids": [""]}, {"ids": ["a\nb"]}])
def test_a_request_that_breaks_a_rule_is_refused(service: Stubs, project: str, wrong: dict[str, Any]) -> None:
    learn(service, project, note("a lamp"))
    stars = service.memory.MapMemories(**{"project": project, **wrong})
    assert failure(next, stars).code is grpc.StatusCode.INVALID_ARGUMENT


def test_to_look_at_the_map_changes_nothing(service: Stubs, project: str) -> None:
    seq = learn(service, project, *notes(0, 5)).seq
    mapped(service, project)
    assert mapped(service, project)[0].seq == seq


def test_the_client_has_it(service: Stubs, project: str) -> None:
    learn(service, project, *notes(0, 3))
    with Client(service.target) as client:
        first, stars = client.map_memories(project)
        assert first.memory_count == 3
        assert list(stars.ids) == ["n0", "n1", "n2"]
        assert [len(one.ids) for one in client.map_memories(project, ["n1"])] == [0, 1]


CREATED, UPDATED = memory.MEMORY_EVENT_TYPE_CREATED, memory.MEMORY_EVENT_TYPE_UPDATED
DELETED = memory.MEMORY_EVENT_TYPE_DELETED


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
        (event,) = next(news).events.events
        assert (event.change, event.id, event.HasField("memory")) == (DELETED, "a", False)


def test_a_watch_that_was_cut_off_goes_on_where_it_was(service: Stubs, project: str) -> None:
    """S4-40."""
    with watching(service, project) as news:
        learn(service, project, note("one", id="a"))
        seq = next(news).seq
    learn(service, project, note("two", id="b"))
    learn(service, project, note("three", id="c"))
    with watching(service, project, after_seq=seq) as news:
        behind = next(news)
        assert (told(behind), behind.seq) == ([(CREATED, "b"), (CREATED, "c")], seq + 2)
        assert [event.seq for event in behind.events.events] == [seq + 1, seq + 2]


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
        pay = fragment("src/Pay.kt", "f", "fun f()", id="b")
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


@pytest.mark.long
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
