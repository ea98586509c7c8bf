"""Small talk in turns: a message of its session, and no memory."""

from __future__ import annotations

from typing import Any

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, recall_pb2, settings_pb2
from tests.service.calls import change_settings, learn, memory_ids
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

CREATED, SKIPPED = context.TURN_SIDE_STATUS_CREATED, context.TURN_SIDE_STATUS_SMALL_TALK


def said(toy: Stubs, project: str, user: str, answer: str, number: int = 1) -> context.LearnTurnResponse:
    """A turn of session s, which is created with the first one."""
    if number == 1:
        toy.session.CreateSession(project=project, id="s")
    return toy.context.LearnTurn(
        project=project,
        session_id="s",
        user=context.TurnSide(text=user, message_id=f"u{number}"),
        assistant=context.TurnSide(text=answer, message_id=f"a{number}"),
    )


@pytest.mark.parametrize(("user", "answer"), [("good morning!", "Hello you!"), ("今天好累", "抱抱，早点休息")])
def test_small_talk_is_a_message_and_no_memory(toy: Stubs, project: str, user: str, answer: str) -> None:
    reply = said(toy, project, user, answer)
    assert (reply.user.status, reply.user.memory_id) == (SKIPPED, "")
    assert memory_ids(toy, project) == [one for one in (reply.assistant.memory_id,) if one]
    messages = toy.session.ListMessages(project=project, session_id="s").messages
    assert [one.content for one in messages] == [user, answer]
    assert said(toy, project, user, answer, 2).user.status == SKIPPED


def test_each_side_is_judged_by_itself(toy: Stubs, project: str) -> None:
    reply = said(toy, project, "I am allergic to peanuts", "Thanks!")
    assert (reply.user.status, reply.assistant.status) == (CREATED, SKIPPED)
    reply = said(toy, project, "ok", "The pier closes at six in winter.", 2)
    assert (reply.user.status, reply.assistant.status) == (SKIPPED, CREATED)


def test_a_repeated_turn_is_told_the_same(toy: Stubs, project: str) -> None:
    first = said(toy, project, "good morning!", "The pier closes at six in winter.")
    again = toy.context.LearnTurn(
        project=project,
        session_id="s",
        user=context.TurnSide(text="good morning!", message_id="u1"),
        assistant=context.TurnSide(text="The pier closes at six in winter.", message_id="a1"),
    )
    assert again.user.status == SKIPPED
    assert again.assistant.memory_id == first.assistant.memory_id


@pytest.mark.parametrize(
    ("question", "status"), [("Are you allergic to peanuts?", CREATED), ("How are you today?", SKIPPED)]
)
@pytest.mark.parametrize("is_appended", [False, True])
def test_what_answers_a_question_is_learnt(
    toy: Stubs, project: str, question: str, status: int, is_appended: bool
) -> None:
    said(toy, project, "Which snacks shall I buy?", question)
    if is_appended:
        toy.session.AppendMessage(
            project=project, session_id="s", id="u2", role=context.PROMPT_ROLE_USER, content="yes"
        )
    assert said(toy, project, "yes", "Noted, none of them.", 2).user.status == status


@pytest.mark.parametrize(
    ("question", "status"),
    [("Do we deploy on Fridays?", CREATED), ("周五可以部署吗？", CREATED), ("How are you?", SKIPPED)],
)
def test_a_mere_yes_of_the_model_is_learnt_where_it_answers(
    toy: Stubs, project: str, question: str, status: int
) -> None:
    assert said(toy, project, question, "No.").assistant.status == status


def test_a_project_may_keep_its_small_talk(toy: Stubs, project: str) -> None:
    change_settings(toy, project, "turns.small_talk", turns={"small_talk": settings_pb2.SMALL_TALK_POLICY_KEEP})
    reply = said(toy, project, "good morning!", "Hello you!")
    assert (reply.user.status, reply.assistant.status) == (CREATED, CREATED)
    assert len(memory_ids(toy, project)) == 2


TALK = ("ok thanks", "good morning", "早安", "哈哈哈", "你好呀", "继续")


def rendered(toy: Stubs, project: str, text: str, form: Any, **more: Any) -> context.RenderResponse:
    recall = recall_pb2.RecallRequest(query_text=text, preset=recall_pb2.PRESET_CHAT, **more)
    current = None
    if form == context.RENDER_FORM_MESSAGES:
        current = context.PromptMessage(id="now", role=context.PROMPT_ROLE_USER, content=text)
    return toy.context.RenderTurn(
        render=context.RenderRequest(project=project, recall=recall, form=form, current=current), scope="s", turn=1
    ).rendering


@pytest.mark.parametrize("form", [context.RENDER_FORM_MEMORIES, context.RENDER_FORM_CONTEXT])
@pytest.mark.parametrize("text", TALK)
def test_small_talk_has_nothing_recalled_and_asks_nothing(toy: Stubs, project: str, text: str, form: Any) -> None:
    said(toy, project, "ok do that, five attempts and then the dead letter", "Done, it is good morning mail.")
    said(toy, project, "手术是几点？", "早上八点，继续观察", 2)
    said(toy, project, text, "The pier closes at six in winter.", 3)
    reply = rendered(toy, project, text, form)
    assert reply.text == ""
    assert {one.reason for one in reply.memories} <= {"left out: nothing stored bears on the query"}


def test_small_talk_has_what_is_pinned_and_what_the_caller_asks_for(toy: Stubs, project: str) -> None:
    learn(toy, project, note("I am allergic to peanuts", pinned=True), note("ok means all knights"))
    memories = context.RENDER_FORM_MEMORIES
    text = rendered(toy, project, "ok", memories).text
    assert "peanuts" in text
    assert "knights" not in text
    assert "clearly answers" not in text
    origins = memory_pb2.MemoryFilter(origins=[memory_pb2.ORIGIN_MANUAL])
    assert "knights" in rendered(toy, project, "ok", memories, filter=origins).text
    assert "knights" in rendered(toy, project, "ok knights", memories).text


def test_the_messages_of_small_talk_are_the_persona_and_the_text(toy: Stubs, project: str) -> None:
    learn(toy, project, note("早上八点做手术"))
    messages = rendered(toy, project, "早安", context.RENDER_FORM_MESSAGES).messages
    assert [one.content for one in messages] == ["早安"]
