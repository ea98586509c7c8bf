"""Sessions, their messages, and turns that are learnt: both sides, in one write."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_pb2 as session_messages
from hummock_client.v1 import session_service_pb2 as pb
from tests.service.calls import ask, await_vectors, failure, learn, pages
from tests.service.conversing import append, create, every_call, learn_sides, learn_turn, listed, recent, texts, update
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


def test_the_first_user_message_names_the_session_unless_a_title_was_given(service: Stubs, talking: str) -> None:
    """S4-07."""
    append(service, talking, "s", "You are kind.", role=context.PROMPT_ROLE_SYSTEM)
    assert get(service, talking, "s").title == ""
    append(service, talking, "s", "\n  帮我 add 先本后息的还款方式\n第二行")
    append(service, talking, "s", "another")
    assert get(service, talking, "s").title == "帮我 add 先本后息的还款方式"
    for given, said, title in (("", "长" * 100, "长" * 39 + "…"), ("晚上的对话", "hello", "晚上的对话")):
        name = create(service, talking, said[0], title=given).session.id
        append(service, talking, name, said)
        assert get(service, talking, name).title == title
        assert update(service, talking, name, ["title"], title="renamed").session.title == "renamed"
        assert get(service, talking, name).title == "renamed"


def test_messages_come_back_whole_and_in_order(service: Stubs, talking: str) -> None:
    """S4-08, S4-13, S4-14."""
    first = append(service, talking, "s", "你好", id="u-1")
    second = append(service, talking, "s", "hello", role=context.PROMPT_ROLE_ASSISTANT, raw="[joy]hello")
    user, assistant = recent(service, talking, "s").messages
    assert (first.id, first.position, second.position) == ("u-1", 1, 2)
    told = user.id, user.position, user.role, user.content, user.raw
    assert told == ("u-1", 1, context.PROMPT_ROLE_USER, "你好", "")
    assert (assistant.id, assistant.content, assistant.raw) == (second.id, "hello", "[joy]hello")
    assert user.send_time.ToMicroseconds() <= assistant.send_time.ToMicroseconds()
    kept = get(service, talking, "s")
    assert (kept.message_count, kept.update_time) == (2, assistant.send_time)


def test_a_message_that_is_there_is_not_appended_again_and_keeps_its_id(service: Stubs, talking: str) -> None:
    """S4-14, 1.1-8."""
    first = append(service, talking, "s", "once", id="m")
    again = append(service, talking, "s", "once", id="m")
    assert (again.id, again.position) == (first.id, first.position)
    refused = failure(append, service, talking, "s", "another", id="m")
    assert refused.code is grpc.StatusCode.ALREADY_EXISTS
    assert texts(recent(service, talking, "s").messages) == ["once"]
    create(service, talking, "t")
    assert append(service, talking, "t", "another", id="m").position == 1


def test_a_repeated_append_answers_as_the_first_time(service: Stubs, talking: str) -> None:
    request_id = str(uuid.uuid4())
    first = append(service, talking, "s", "one", request_id=request_id)
    append(service, talking, "s", "two")
    assert append(service, talking, "s", "one", request_id=request_id) == first
    assert texts(recent(service, talking, "s").messages) == ["one", "two"]


def test_pages_go_back_in_time(service: Stubs, talking: str) -> None:
    """S4-13."""
    for number in range(7):
        append(service, talking, "s", str(number))
    found = pages(recent, service=service, project=talking, session_id="s", page_size=3)
    assert [texts(page.messages) for page in found] == [["4", "5", "6"], ["1", "2", "3"], ["0"]]


def test_characters_cut_the_oldest_messages_but_never_the_newest(service: Stubs, talking: str) -> None:
    """S4-45."""
    for text in ("老的一句", "abc", "新的"):
        append(service, talking, "s", text)
    page = recent(service, talking, "s", max_characters=6)
    assert texts(page.messages) == ["abc", "新的"]
    older = recent(service, talking, "s", max_characters=6, page_token=page.next_page_token)
    assert texts(older.messages) == ["老的一句"]
    assert not older.next_page_token
    append(service, talking, "s", "before")
    append(service, talking, "s", "long" * 100)
    assert texts(recent(service, talking, "s", max_characters=10).messages) == ["long" * 100]


@pytest.mark.long
def test_messages_too_large_for_one_reply_come_in_several(service: Stubs, talking: str) -> None:
    large = "大" * 80_000
    for number in range(20):
        append(service, talking, "s", f"{number}{large}", raw=large)
    page = recent(service, talking, "s", page_size=20)
    assert 1 < len(page.messages) < 20
    assert page.messages[-1].content.startswith("19")
    older = recent(service, talking, "s", page_size=20, page_token=page.next_page_token)
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


def test_a_deleted_session_is_gone_and_its_memories_stay(service: Stubs, talking: str) -> None:
    for number in range(3):
        append(service, talking, "s", str(number), id=f"m-{number}")
    learn(service, talking, note("kept", id="kept", session_id="s"))
    assert service.session.DeleteSession(project=talking, id="s").message_count == 3
    assert {failure(call).code for call in every_call(service, talking, "s")} == {grpc.StatusCode.NOT_FOUND}
    assert listed(service, talking) == []
    assert service.memory.GetMemory(project=talking, id="kept").memory.session_id == "s"
    create(service, talking, "s")
    assert recent(service, talking, "s").messages == []
    assert append(service, talking, "s", "anew", id="m-0").position == 1


def test_a_session_whose_id_is_taken_is_refused(service: Stubs, talking: str) -> None:
    refused = failure(create, service, talking, "s")
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
    service: Stubs, talking: str, fields: dict[str, Any], field: str
) -> None:
    refused = failure(service.session.AppendMessage, project=talking, session_id="s", **fields)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message.startswith(f"{field}:")


def active(service: Stubs, project: str) -> session_messages.ChatSession:
    return service.session.GetOrCreateActiveSession(project=project).session


def get(service: Stubs, project: str, name: str) -> session_messages.ChatSession:
    return service.session.GetSession(project=project, id=name).session


def memory(service: Stubs, project: str, memory_id: str) -> memory_pb2.Memory:
    return service.memory.GetMemory(project=project, id=memory_id).memory


def memory_count(service: Stubs, project: str) -> int:
    return len(service.memory.ListMemories(project=project).memories)


def test_both_sides_are_memories_with_what_is_known_of_them(service: Stubs, talking: str) -> None:
    """S4-09, S4-16, S4-37, S4-38."""
    append(service, talking, "s", "我养了一只叫团子的猫", id="u-1")
    asked = context.TurnSide(text="我养了一只叫团子的猫", message_id="u-1", speaker="小林")
    given = context.TurnSide(text="团子 sounds lovely!", raw="[joy]团子 sounds lovely!", emotion_label="joy")
    reply = learn_sides(service, talking, "s", asked, given)
    said, answered = recent(service, talking, "s").messages
    user = memory(service, talking, reply.user.memory_id)
    assistant = memory(service, talking, reply.assistant.memory_id)
    assert (reply.user.position, reply.assistant.position) == (1, 2)
    assert reply.user.status == reply.assistant.status == context.TURN_SIDE_STATUS_CREATED
    assert (user.content, user.session_id, user.speaker, user.event_time) == (said.content, "s", "小林", said.send_time)
    assert (user.origin, assistant.origin) == (memory_pb2.ORIGIN_USER_INPUT, memory_pb2.ORIGIN_AI_OUTPUT)
    known = assistant.session_id, assistant.speaker, assistant.event_time
    assert known == ("s", "assistant", answered.send_time)
    assert (assistant.emotion_label, assistant.content, assistant.raw) == ("joy", "团子 sounds lovely!", "")
    kept = service.memory.GetMemory(project=talking, id=assistant.id, view=memory_pb2.MEMORY_VIEW_RAW).memory
    assert kept.raw == "[joy]团子 sounds lovely!"
    assert answered.role == context.PROMPT_ROLE_ASSISTANT
    assert (answered.content, answered.raw) == ("团子 sounds lovely!", "[joy]团子 sounds lovely!")


def test_a_turn_is_recallable_when_it_is_answered(service: Stubs, talking: str) -> None:
    reply = learn_turn(service, talking, "s", "repayment day is the tenth", "noted")
    hits = ask(service, talking, "which day is repayment", min_seq=reply.seq).hits
    assert hits[0].memory.id == reply.user.memory_id


def test_a_deferred_turn_is_found_by_words_at_once_and_by_meaning_when_its_vectors_are_there(
    service: Stubs, talking: str
) -> None:
    said = ("repayment day is the tenth", "noted: the repayment day")
    reply = learn_turn(service, talking, "s", *said, embedding=context.EMBEDDING_MODE_DEFERRED)
    both = {reply.user.memory_id, reply.assistant.memory_id}
    assert {hit.memory.id for hit in ask(service, talking, "repayment day", min_seq=reply.seq).hits} == both
    await_vectors(service, talking)
    by_meaning = ask(service, talking, "repayment day", paths=[recall.RECALL_PATH_VECTOR]).hits
    assert {hit.memory.id for hit in by_meaning} == both


def test_a_repeated_turn_is_one_turn_and_an_equal_one_another(service: Stubs, talking: str) -> None:
    """S4-32: the user's message is appended where it is missing."""
    request_id = str(uuid.uuid4())
    first = learn_turn(service, talking, "s", "问", "答", request_id=request_id)
    assert learn_turn(service, talking, "s", "问", "答", request_id=request_id) == first
    assert texts(recent(service, talking, "s").messages) == ["问", "答"]
    assert memory_count(service, talking) == 2
    learn_turn(service, talking, "s", "问", "答")
    assert texts(recent(service, talking, "s").messages) == ["问", "答", "问", "答"]
    assert memory_count(service, talking) == 4


def test_messages_that_were_learnt_are_not_learnt_again(service: Stubs, talking: str) -> None:
    sides = context.TurnSide(text="问", message_id="u"), context.TurnSide(text="答", message_id="a")
    first = learn_sides(service, talking, "s", *sides)
    again = learn_sides(service, talking, "s", *sides)
    assert again.user.status == again.assistant.status == context.TURN_SIDE_STATUS_UNCHANGED
    assert (again.user.memory_id, again.assistant.memory_id) == (first.user.memory_id, first.assistant.memory_id)
    assert texts(recent(service, talking, "s").messages) == ["问", "答"]
    assert memory_count(service, talking) == 2


def test_a_turn_that_fails_leaves_nothing(service: Stubs, talking: str) -> None:
    append(service, talking, "s", "said", id="a")
    sides = context.TurnSide(text="问"), context.TurnSide(text="answered", message_id="a")
    refused = failure(learn_sides, service, talking, "s", *sides)
    assert refused.code is grpc.StatusCode.ALREADY_EXISTS
    assert refused.message.startswith("assistant.message_id:")
    assert texts(recent(service, talking, "s").messages) == ["said"]
    assert memory_count(service, talking) == 0


def test_a_blank_side_is_refused(service: Stubs, project: str) -> None:
    refused = failure(service.context.Learn, project=project)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "memories" in refused.message
    create(service, project, "s")
    refused = failure(learn_turn, service, project, "s", " \n", "answer")
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message == "user.text: is blank"


def test_a_side_that_was_said_before_has_its_time(service: Stubs, talking: str) -> None:
    said = Timestamp(seconds=1_772_323_200)
    sides = (
        context.TurnSide(text="I moved to Porto", message_id="u", create_time=said),
        context.TurnSide(text="The bridge in Porto is by Eiffel", message_id="a"),
    )
    reply = learn_sides(service, talking, "s", *sides)
    user, assistant = (
        service.memory.GetMemory(project=talking, id=each.memory_id).memory for each in (reply.user, reply.assistant)
    )
    assert (user.create_time, user.event_time) == (said, said)
    assert assistant.create_time.seconds > said.seconds
    # Messages stand in the order in which they were appended.
    times = [message.send_time.seconds for message in recent(service, talking, "s").messages]
    assert times == sorted(times)
    assert times[0] > said.seconds
    again = learn_sides(service, talking, "s", *sides)
    assert (again.user.status, again.user.memory_id) == (context.TURN_SIDE_STATUS_UNCHANGED, user.id)
    answered = context.LearnTurnRequest(project=talking, session_id="s", replace_answer=True)
    answered.user.CopyFrom(sides[0])
    answered.assistant.CopyFrom(
        context.TurnSide(text="The river in Porto is the Douro", message_id="a", create_time=said)
    )
    replaced = service.context.LearnTurn(answered)
    kept = service.memory.GetMemory(project=talking, id=replaced.assistant.memory_id).memory
    assert (kept.content, kept.event_time) == ("The river in Porto is the Douro", said)


@pytest.mark.parametrize("name", ["user", "assistant"])
def test_a_side_is_not_said_in_the_future(service: Stubs, talking: str, name: str) -> None:
    later = Timestamp(seconds=4_000_000_000)
    sides = {each: context.TurnSide(text=f"the {each} speaks") for each in ("user", "assistant")}
    sides[name].create_time.CopyFrom(later)
    refused = failure(service.context.LearnTurn, project=talking, session_id="s", **sides)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message.startswith(f"{name}.create_time: is ")
    assert "the limit is 60 s" in refused.message
    assert memory_count(service, talking) == 0


def test_turns_of_a_stream_keep_their_order(service: Stubs, talking: str) -> None:
    sides = ((context.TurnSide(text=f"问 {n}"), context.TurnSide(text=f"answer {n}")) for n in range(8))
    turn = partial(context.LearnTurnRequest, project=talking, session_id="s")
    batches = (context.LearnStreamRequest(learn_turn=turn(user=one, assistant=other)) for one, other in sides)
    replies = list(service.context.LearnStream(batches))
    assert [reply.learnt_turn.assistant.position for reply in replies] == list(range(2, 18, 2))
    assert replies[-1].stored_count == 16
