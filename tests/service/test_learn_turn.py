"""Learn(turn): both sides become memories and messages, in one write."""

from __future__ import annotations

import uuid

import grpc

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2
from tests.service.calls import ask, failure
from tests.service.conversing import append, create, learn_sides, learn_turn, recent, texts
from tests.service.running import Stubs


def memory(service: Stubs, project: str, memory_id: str) -> memory_pb2.Memory:
    return service.memory.GetMemory(project=project, id=memory_id).memory


def count(service: Stubs, project: str) -> int:
    return len(service.memory.ListMemories(project=project).memories)


def test_both_sides_are_memories_with_what_is_known_of_them(service: Stubs, project: str) -> None:
    """S4-09, S4-16, S4-37, S4-38."""
    create(service, project, "s")
    append(service, project, "s", "我养了一只叫团子的猫", id="u-1")
    reply = learn_sides(
        service,
        project,
        "s",
        user=context.TurnSide(text="我养了一只叫团子的猫", message_id="u-1", speaker="小林"),
        assistant=context.TurnSide(text="团子 sounds lovely!", raw="[joy]团子 sounds lovely!", emotion_label="joy"),
    )
    said, answered = recent(service, project, "s").messages
    user = memory(service, project, reply.user.memory_id)
    assistant = memory(service, project, reply.assistant.memory_id)
    assert (reply.user.position, reply.assistant.position) == (1, 2)
    assert reply.user.status == reply.assistant.status == context.TURN_SIDE_STATUS_CREATED
    assert (user.origin, user.session_id, user.speaker, user.event_time) == (
        memory_pb2.ORIGIN_USER_INPUT,
        "s",
        "小林",
        said.send_time,
    )
    assert user.content == said.content
    assert (assistant.origin, assistant.session_id, assistant.speaker, assistant.event_time) == (
        memory_pb2.ORIGIN_AI_OUTPUT,
        "s",
        "assistant",
        answered.send_time,
    )
    assert (assistant.emotion_label, assistant.content, assistant.raw) == ("joy", "团子 sounds lovely!", "")
    kept = service.memory.GetMemory(project=project, id=assistant.id, view=memory_pb2.MEMORY_VIEW_RAW).memory
    assert kept.raw == "[joy]团子 sounds lovely!"
    assert (answered.role, answered.content, answered.raw) == (
        context.PROMPT_ROLE_ASSISTANT,
        "团子 sounds lovely!",
        "[joy]团子 sounds lovely!",
    )


def test_a_turn_is_recallable_when_it_is_answered(service: Stubs, project: str) -> None:
    create(service, project, "s")
    reply = learn_turn(service, project, "s", "repayment day is the tenth", "noted")
    hits = ask(service, project, "which day is repayment", min_seq=reply.seq).hits
    assert hits[0].memory.id == reply.user.memory_id


def test_the_users_message_is_appended_where_it_is_missing(service: Stubs, project: str) -> None:
    """S4-32."""
    create(service, project, "s")
    learn_turn(service, project, "s", "问", "答")
    assert texts(recent(service, project, "s").messages) == ["问", "答"]


def test_a_repeated_turn_is_one_turn(service: Stubs, project: str) -> None:
    create(service, project, "s")
    request_id = str(uuid.uuid4())
    first = learn_turn(service, project, "s", "问", "答", request_id=request_id)
    assert learn_turn(service, project, "s", "问", "答", request_id=request_id) == first
    assert texts(recent(service, project, "s").messages) == ["问", "答"]
    assert count(service, project) == 2


def test_messages_that_were_learnt_are_not_learnt_again(service: Stubs, project: str) -> None:
    create(service, project, "s")
    sides = context.TurnSide(text="问", message_id="u"), context.TurnSide(text="答", message_id="a")
    first = learn_sides(service, project, "s", *sides)
    again = learn_sides(service, project, "s", *sides)
    assert again.user.status == again.assistant.status == context.TURN_SIDE_STATUS_UNCHANGED
    assert (again.user.memory_id, again.assistant.memory_id) == (first.user.memory_id, first.assistant.memory_id)
    assert texts(recent(service, project, "s").messages) == ["问", "答"]
    assert count(service, project) == 2


def test_equal_turns_are_two_turns(service: Stubs, project: str) -> None:
    create(service, project, "s")
    for _ in range(2):
        learn_turn(service, project, "s", "继续", "ok")
    assert texts(recent(service, project, "s").messages) == ["继续", "ok", "继续", "ok"]
    assert count(service, project) == 4


def test_a_turn_that_fails_leaves_nothing(service: Stubs, project: str) -> None:
    create(service, project, "s")
    append(service, project, "s", "said", id="a")
    sides = context.TurnSide(text="问"), context.TurnSide(text="answered", message_id="a")
    refused = failure(learn_sides, service, project, "s", *sides)
    assert refused.code is grpc.StatusCode.ALREADY_EXISTS
    assert refused.message.startswith("assistant.message_id:")
    assert texts(recent(service, project, "s").messages) == ["said"]
    assert count(service, project) == 0


def test_a_blank_side_is_refused(service: Stubs, project: str) -> None:
    refused = failure(service.context.Learn, project=project)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "memories" in refused.message
    create(service, project, "s")
    refused = failure(learn_turn, service, project, "s", " \n", "answer")
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message == "user.text: is blank"


def test_turns_of_a_stream_keep_their_order(service: Stubs, project: str) -> None:
    create(service, project, "s")
    batches = (
        context.LearnStreamRequest(
            learn_turn=context.LearnTurnRequest(
                project=project,
                session_id="s",
                user=context.TurnSide(text=f"问 {number}"),
                assistant=context.TurnSide(text=f"answer {number}"),
            )
        )
        for number in range(8)
    )
    replies = list(service.context.LearnStream(batches))
    assert [reply.learnt_turn.assistant.position for reply in replies] == list(range(2, 18, 2))
    assert replies[-1].stored_count == 16
