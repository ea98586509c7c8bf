"""Sessions and their messages, over a real socket."""

from __future__ import annotations

import uuid
from typing import Any

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import session_pb2 as session_messages
from hummock_client.v1 import session_service_pb2 as pb
from tests.service.calls import failure, learn, pages
from tests.service.conversing import append, create, every_call, listed, recent, texts, update
from tests.service.inputs import note
from tests.service.running import Stubs


def test_the_active_session_is_created_once(service: Stubs, project: str) -> None:
    """S4-11."""
    request = pb.GetOrCreateActiveSessionRequest(project=project)
    first = service.session.GetOrCreateActiveSession(request)
    second = service.session.GetOrCreateActiveSession(request)
    assert first.created
    assert not second.created
    assert first.session == second.session
    assert listed(service, project) == [first.session.id]


def test_the_session_that_was_written_to_last_is_the_active_one(service: Stubs, project: str) -> None:
    """S4-11, S4-15."""
    for name in ("一", "two", "three"):
        create(service, project, name)
    append(service, project, "two", "接着说")
    assert listed(service, project) == ["two", "three", "一"]
    assert active(service, project).id == "two"


def test_an_archived_session_is_never_the_active_one(service: Stubs, project: str) -> None:
    """S4-07."""
    create(service, project, "old")
    create(service, project, "new")
    assert update(service, project, "new", ["archived"], archived=True).session.archived
    assert active(service, project).id == "old"
    append(service, project, "new", "still taken")
    assert active(service, project).id == "old"
    assert listed(service, project) == ["old"]
    assert listed(service, project, archived=True) == ["new"]
    update(service, project, "new", ["archived"], archived=False)
    assert active(service, project).id == "new"


def test_the_first_user_message_names_the_session(service: Stubs, project: str) -> None:
    """S4-07."""
    create(service, project, "s")
    append(service, project, "s", "You are kind.", role=context.PROMPT_ROLE_SYSTEM)
    assert get(service, project, "s").title == ""
    append(service, project, "s", "\n  帮我 add 先本后息的还款方式\n第二行")
    append(service, project, "s", "another")
    assert get(service, project, "s").title == "帮我 add 先本后息的还款方式"


def test_a_long_first_message_is_cut_for_the_title(service: Stubs, project: str) -> None:
    create(service, project, "s")
    append(service, project, "s", "长" * 100)
    assert get(service, project, "s").title == "长" * 39 + "…"


def test_a_title_that_was_given_stays(service: Stubs, project: str) -> None:
    create(service, project, "s", title="晚上的对话")
    append(service, project, "s", "hello")
    assert get(service, project, "s").title == "晚上的对话"
    assert update(service, project, "s", ["title"], title="renamed").session.title == "renamed"
    assert get(service, project, "s").title == "renamed"


def test_messages_come_back_whole_and_in_order(service: Stubs, project: str) -> None:
    """S4-08, S4-13, S4-14."""
    create(service, project, "s")
    first = append(service, project, "s", "你好", id="u-1")
    second = append(service, project, "s", "hello", role=context.PROMPT_ROLE_ASSISTANT, raw="[joy]hello")
    user, assistant = recent(service, project, "s").messages
    assert (first.id, first.position, second.position) == ("u-1", 1, 2)
    assert (user.id, user.position, user.role, user.content, user.raw) == (
        "u-1",
        1,
        context.PROMPT_ROLE_USER,
        "你好",
        "",
    )
    assert (assistant.id, assistant.content, assistant.raw) == (second.id, "hello", "[joy]hello")
    assert user.send_time.ToMicroseconds() <= assistant.send_time.ToMicroseconds()
    kept = get(service, project, "s")
    assert kept.message_count == 2
    assert kept.update_time == assistant.send_time


def test_a_message_that_is_there_is_not_appended_again(service: Stubs, project: str) -> None:
    """S4-14, 1.1-8."""
    create(service, project, "s")
    first = append(service, project, "s", "once", id="m")
    again = append(service, project, "s", "once", id="m")
    assert (again.id, again.position) == (first.id, first.position)
    assert texts(recent(service, project, "s").messages) == ["once"]


def test_the_id_of_another_message_is_refused(service: Stubs, project: str) -> None:
    create(service, project, "s")
    append(service, project, "s", "one", id="m")
    refused = failure(append, service, project, "s", "another", id="m")
    assert refused.code is grpc.StatusCode.ALREADY_EXISTS
    create(service, project, "t")
    assert append(service, project, "t", "another", id="m").position == 1


def test_a_repeated_append_answers_as_the_first_time(service: Stubs, project: str) -> None:
    create(service, project, "s")
    request_id = str(uuid.uuid4())
    first = append(service, project, "s", "one", request_id=request_id)
    append(service, project, "s", "two")
    assert append(service, project, "s", "one", request_id=request_id) == first
    assert texts(recent(service, project, "s").messages) == ["one", "two"]


def test_pages_go_back_in_time(service: Stubs, project: str) -> None:
    """S4-13."""
    create(service, project, "s")
    for number in range(7):
        append(service, project, "s", str(number))
    found = pages(recent, service=service, project=project, session_id="s", page_size=3)
    assert [texts(page.messages) for page in found] == [["4", "5", "6"], ["1", "2", "3"], ["0"]]


def test_characters_cut_the_oldest_messages(service: Stubs, project: str) -> None:
    """S4-45."""
    create(service, project, "s")
    for text in ("老的一句", "abc", "新的"):
        append(service, project, "s", text)
    page = recent(service, project, "s", max_characters=6)
    assert texts(page.messages) == ["abc", "新的"]
    older = recent(service, project, "s", max_characters=6, page_token=page.next_page_token)
    assert texts(older.messages) == ["老的一句"]
    assert not older.next_page_token


def test_the_newest_message_comes_whatever_its_length(service: Stubs, project: str) -> None:
    """S4-45."""
    create(service, project, "s")
    append(service, project, "s", "before")
    append(service, project, "s", "long" * 100)
    assert texts(recent(service, project, "s", max_characters=10).messages) == ["long" * 100]


def test_messages_too_large_for_one_reply_come_in_several(service: Stubs, project: str) -> None:
    create(service, project, "s")
    large = "大" * 80_000
    for number in range(20):
        append(service, project, "s", f"{number}{large}", raw=large)
    page = recent(service, project, "s", page_size=20)
    assert 1 < len(page.messages) < 20
    assert page.messages[-1].content.startswith("19")
    older = recent(service, project, "s", page_size=20, page_token=page.next_page_token)
    assert older.messages[-1].position == page.messages[0].position - 1


def test_what_does_not_exist_is_not_found_in_this_project_or_another(service: Stubs, project: str) -> None:
    other = f"{project}-other"
    learn(service, other, note("here"))
    create(service, project, "s")
    append(service, project, "s", "private")
    said = {
        other: "session s does not exist in this project",
        "unknown": "project unknown does not exist; the first Learn creates it",
    }
    for where, message in said.items():
        refused = map(failure, every_call(service, where, "s"))
        assert {(one.code, one.message) for one in refused} == {(grpc.StatusCode.NOT_FOUND, message)}
    assert listed(service, "unknown", allow_missing=True) == []
    assert texts(recent(service, project, "s").messages) == ["private"]


def test_a_deleted_session_is_gone_and_its_memories_stay(service: Stubs, project: str) -> None:
    create(service, project, "s")
    for number in range(3):
        append(service, project, "s", str(number), id=f"m-{number}")
    learn(service, project, note("kept", id="kept", session_id="s"))
    assert service.session.DeleteSession(project=project, id="s").message_count == 3
    assert {failure(call).code for call in every_call(service, project, "s")} == {grpc.StatusCode.NOT_FOUND}
    assert listed(service, project) == []
    assert service.memory.GetMemory(project=project, id="kept").memory.session_id == "s"
    create(service, project, "s")
    assert recent(service, project, "s").messages == []
    assert append(service, project, "s", "anew", id="m-0").position == 1


def test_a_session_whose_id_is_taken_is_refused(service: Stubs, project: str) -> None:
    create(service, project, "s")
    refused = failure(create, service, project, "s")
    assert refused.code is grpc.StatusCode.ALREADY_EXISTS
    assert "exists already" in refused.message


def test_sessions_come_in_pages(service: Stubs, project: str) -> None:
    for number in range(5):
        create(service, project, f"s-{number}")
    found = pages(service.session.ListSessions, project=project, page_size=2)
    assert [[one.id for one in page.sessions] for page in found] == [["s-4", "s-3"], ["s-2", "s-1"], ["s-0"]]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"content": "", "role": context.PROMPT_ROLE_USER}, "content"),
        ({"content": "x"}, "role"),
        ({"content": "x" * 262145, "role": context.PROMPT_ROLE_USER}, "content"),
        ({"content": "x", "role": context.PROMPT_ROLE_USER, "id": "a\nb"}, "id"),
        ({"content": "x", "role": 9}, "role"),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(
    service: Stubs, project: str, fields: dict[str, Any], field: str
) -> None:
    create(service, project, "s")
    refused = failure(service.session.AppendMessage, project=project, session_id="s", **fields)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message.startswith(f"{field}:")


def active(service: Stubs, project: str) -> session_messages.ChatSession:
    return service.session.GetOrCreateActiveSession(project=project).session


def get(service: Stubs, project: str, name: str) -> session_messages.ChatSession:
    return service.session.GetSession(project=project, id=name).session
