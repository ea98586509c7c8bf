"""The garden as its screen needs it: listed, filtered, edited, and recalled in the next conversation."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import ask, chat, contents, edit, failure, learn, pages
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

DAY_S = 86_400


def listed(service: Stubs, project: str, **asked: Any) -> list[str]:
    """Ids of all pages of two."""
    found = pages(service.memory.ListMemories, project=project, page_size=2, **asked)
    return [one.id for page in found for one in page.memories]


def at(day: int) -> Timestamp:
    return Timestamp(seconds=1_700_000_000 + day * DAY_S)


@pytest.fixture
def garden(service: Stubs, project: str) -> str:
    """Memories of three days."""
    code = fragment("src/Garden.kt", "plant", "fun plant() = 种下")
    code.id = "code"
    learn(
        service,
        project,
        note("种下一颗星星", id="star", create_time=at(0), tags=["花园", "夜"]),
        note("我今天很开心", id="said", origin=pb.ORIGIN_USER_INPUT, session_id="s1", create_time=at(1)),
        note("那真好", id="answer", origin=pb.ORIGIN_AI_OUTPUT, session_id="s1", create_time=at(1)),
        note("The user planted a star", id="summary", origin=pb.ORIGIN_SUMMARY, create_time=at(2), event_time=at(0)),
        code,
    )
    return project


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["star", "said", "answer", "summary", "code"]),
        ({"order": memory.LIST_ORDER_NEWEST_FIRST}, ["code", "summary", "answer", "said", "star"]),
        ({"filter": pb.MemoryFilter(origins=[pb.ORIGIN_MANUAL, pb.ORIGIN_SUMMARY])}, ["star", "summary", "code"]),
        ({"filter": pb.MemoryFilter(kinds=[pb.MEMORY_KIND_CODE_FRAGMENT])}, ["code"]),
        ({"filter": pb.MemoryFilter(session_ids=["s1"])}, ["said", "answer"]),
        ({"filter": pb.MemoryFilter(tags=["#花园"])}, ["star"]),
        ({"filter": pb.MemoryFilter(created_after=at(1), created_before=at(2))}, ["said", "answer"]),
        ({"filter": pb.MemoryFilter(event_after=at(0), event_before=at(1))}, ["summary"]),
        ({"filter": pb.MemoryFilter(event_after=at(1))}, ["said", "answer"]),
        ({"contains": "STAR"}, ["summary"]),
        ({"contains": "种下"}, ["star", "code"]),
        ({"contains": "种下", "filter": pb.MemoryFilter(tags=["夜"])}, ["star"]),
        ({"contains": "nowhere"}, []),
    ],
)
def test_the_garden_is_listed_by_what_its_screen_asks_for(
    service: Stubs, garden: str, asked: dict[str, Any], found: list[str]
) -> None:
    """S4-41."""
    assert listed(service, garden, **asked) == found


def test_a_page_that_is_too_large_is_one_of_a_thousand(service: Stubs, project: str) -> None:
    notes = [note(f"row {number}", id=f"m{number:04}") for number in range(1003)]
    for start in range(0, len(notes), 502):
        later = context.EMBEDDING_MODE_DEFERRED
        service.context.Learn(project=project, memories=notes[start : start + 502], embedding=later)
    found = pages(service.memory.ListMemories, project=project, page_size=4_000_000_000)
    assert [len(page.memories) for page in found] == [1000, 3]


def test_a_memory_shows_text_time_origin_and_session(service: Stubs, garden: str) -> None:
    """S4-41."""
    said = service.memory.ListMemories(project=garden, view=pb.MEMORY_VIEW_FULL).memories[1]
    assert (said.content, said.origin, said.session_id) == ("我今天很开心", pb.ORIGIN_USER_INPUT, "s1")
    assert said.create_time == at(1)


def test_a_page_token_belongs_to_its_order_and_its_string(service: Stubs, garden: str) -> None:
    page = service.memory.ListMemories(project=garden, page_size=2)
    for other in ({"order": memory.LIST_ORDER_NEWEST_FIRST}, {"contains": "x"}):
        refused = failure(service.memory.ListMemories, project=garden, page_token=page.next_page_token, **other)
        assert refused.code is grpc.StatusCode.INVALID_ARGUMENT


def test_origin_and_feeling_are_edited_and_the_text_stays(service: Stubs, garden: str) -> None:
    """S4-42."""
    changed = pb.Memory(id="said", origin=pb.ORIGIN_MANUAL, emotion_label="joy", tags=["心情"])
    edited = edit(service, garden, changed, "origin", "emotion_label", "tags").memory
    assert (edited.origin, edited.emotion_label, list(edited.tags)) == (pb.ORIGIN_MANUAL, "joy", ["心情"])
    assert (edited.content, edited.session_id, edited.create_time) == ("我今天很开心", "s1", at(1))
    assert listed(service, garden, filter=pb.MemoryFilter(tags=["心情"])) == ["said"]


def test_an_edited_text_is_found_by_what_it_says_now_and_not_by_what_it_said(service: Stubs, project: str) -> None:
    """S4-42."""
    learn(service, project, note("the lighthouse needs paint", id="a"), note("buy bread and milk", id="b"))
    edit(service, project, pb.Memory(id="a", content="周五和林见面"), "content")
    assert contents(ask(service, project, "周五和谁见面"))[0] == "周五和林见面"
    found = {hit.memory.id: list(hit.matched_terms) for hit in ask(service, project, "paint the lighthouse").hits}
    assert not found.get("a")


def test_a_memory_planted_in_the_garden_is_recalled_in_the_next_conversation(service: Stubs, project: str) -> None:
    """S4-05, S4-50, S4-43: the garden and the conversations have one store."""
    assert chat(service, project, "我养的猫叫什么") == []
    learn(service, project, note("我养的猫叫潮汐"))
    assert chat(service, project, "我养的猫叫什么") == ["我养的猫叫潮汐"]
    learned = listed(service, project)
    service.memory.DeleteMemories(project=project, ids=learned)
    assert chat(service, project, "我养的猫叫什么") == []
