"""Render takes the history from a session, whose last turns are not recalled: whoever asks has them (S4-55)."""

from __future__ import annotations

from functools import partial
from typing import Any

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, explain, failure, learn, recall_request
from tests.service.conversing import append, create, learn_turn, recent, render_turn, texts
from tests.service.inputs import note
from tests.service.running import Stubs


def test_a_turn_is_persona_memories_history_and_the_users_message(service: Stubs, talking: str) -> None:
    """S4-01, S4-32, S4-35, S4-36."""
    learn(service, talking, note("My cat is called 团子"))
    append(service, talking, "s", "hello")
    append(service, talking, "s", "hi there", role=context.PROMPT_ROLE_ASSISTANT)
    sent = append(service, talking, "s", "what is my cat called")
    reply = render_turn(service, talking, "what is my cat called", message_id=sent.id, session_id="s")
    persona, memories, *said = reply.messages
    assert (persona.content, memories.role) == ("You are kind.", context.PROMPT_ROLE_SYSTEM)
    assert "团子" in memories.content
    assert [(one.role, one.content) for one in said] == [
        (context.PROMPT_ROLE_USER, "hello"),
        (context.PROMPT_ROLE_ASSISTANT, "hi there"),
        (context.PROMPT_ROLE_USER, "what is my cat called"),
    ]


def test_the_current_message_is_sent_once_whether_it_was_appended_or_not(service: Stubs, talking: str) -> None:
    """S4-34, 1.1-8."""
    append(service, talking, "s", "earlier")
    assert history(render_turn(service, talking, "now", message_id="m", session_id="s")) == ["earlier"]
    append(service, talking, "s", "now", id="m")
    reply = render_turn(service, talking, "now", message_id="m", session_id="s")
    assert texts(reply.messages) == ["You are kind.", "earlier", "now"]


def test_an_answer_is_made_again_from_what_was_said_before_it(service: Stubs, talking: str) -> None:
    append(service, talking, "s", "first")
    append(service, talking, "s", "again please", id="m")
    append(service, talking, "s", "a bad answer", role=context.PROMPT_ROLE_ASSISTANT)
    assert history(render_turn(service, talking, "again please", message_id="m", session_id="s")) == ["first"]


def test_the_history_is_cut_by_messages_and_then_by_characters(service: Stubs, talking: str) -> None:
    """S4-45."""
    for number in range(25):
        append(service, talking, "s", f"{number:02}")
    append(service, talking, "s", "now", id="m")

    def shown(**limits: int) -> list[str]:
        return history(render_turn(service, talking, "now", message_id="m", session_id="s", **limits))

    assert shown() == [f"{number:02}" for number in range(5, 25)]
    assert shown(max_messages=3) == ["22", "23", "24"]
    assert shown(max_messages=3, max_characters=5) == ["23", "24"]
    assert shown(max_characters=1) == ["24"]
    assert shown(max_messages=0) == []


def test_by_default_the_history_has_16000_characters(service: Stubs, talking: str) -> None:
    """S4-45."""
    for name in "abc":
        append(service, talking, "s", name * 8_000)
    assert history(render_turn(service, talking, "now", session_id="s")) == ["b" * 8_000, "c" * 8_000]


def test_a_history_and_a_session_exclude_each_other(service: Stubs, talking: str) -> None:
    request = context.RenderRequest(
        project=talking,
        memories=context.MemorySelection(ids=["x"]),
        form=context.RENDER_FORM_MESSAGES,
        current=context.PromptMessage(role=context.PROMPT_ROLE_USER, content="x"),
        session=context.SessionHistory(session_id="s"),
        history=[context.PromptMessage(role=context.PROMPT_ROLE_USER, content="y")],
    )
    refused = failure(service.context.Render, request)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message.startswith("history:")
    request.ClearField("history")
    request.ClearField("current")
    request.form = context.RENDER_FORM_MEMORIES
    refused = failure(service.context.Render, request)
    assert refused.message.startswith("session:")


def history(reply: context.RenderResponse) -> list[str]:
    """Messages before the current one."""
    said = [one for one in reply.messages if one.role != context.PROMPT_ROLE_SYSTEM]
    return texts(said[:-1])


def converse(service: Stubs, project: str, session_id: str, turns: int) -> None:
    """Turns that all speak of repayment, numbered from the first."""
    create(service, project, session_id)
    for number in range(1, turns + 1):
        learn_turn(service, project, session_id, f"repayment 还款 question {number}", f"repayment answer {number}")


def recalled(service: Stubs, project: str, **options: Any) -> set[str]:
    return set(contents(ask(service, project, "repayment 还款", top_k=200, **options)))


by_chat = partial(recalled, preset=recall.PRESET_CHAT)


def questions(*numbers: int) -> set[str]:
    return {f"repayment 还款 question {number}" for number in numbers}


def test_the_last_turns_are_left_out_or_those_that_the_history_shows(service: Stubs, project: str) -> None:
    converse(service, project, "s", 4)
    assert by_chat(service, project, session_id="s", window_turns=2) == questions(1, 2)
    both_sides = recalled(service, project, session_id="s", window_turns=3)
    assert both_sides == questions(1) | {"repayment answer 1"}
    sent = append(service, project, "s", "repayment 还款?")
    for shown, left in ((20, set()), (6, questions(1)), (5, questions(1, 2)), (0, questions(1, 2, 3, 4))):
        reply = render_turn(service, project, "repayment 还款?", message_id=sent.id, session_id="s", max_messages=shown)
        rendered = {one for one in questions(1, 2, 3, 4) if one in reply.text}
        assert rendered == left
        assert rendered.isdisjoint(history(reply))


@pytest.mark.long
def test_a_chat_leaves_out_ten_turns_and_other_presets_none(service: Stubs, project: str) -> None:
    converse(service, project, "s", 12)
    assert by_chat(service, project, session_id="s") == questions(1, 2)
    assert by_chat(service, project, session_id="s", window_turns=0) == questions(*range(1, 13))
    assert by_chat(service, project) == questions(*range(1, 13))
    assert len(recalled(service, project, session_id="s")) == 24


def test_other_sessions_and_other_origins_are_recalled(service: Stubs, project: str) -> None:
    converse(service, project, "s", 2)
    converse(service, project, "t", 1)
    learn(service, project, note("repayment note", session_id="s"))
    learn(service, project, note("repayment summary", session_id="s", origin=pb.ORIGIN_SUMMARY))
    assert by_chat(service, project, session_id="s") == questions(1) | {"repayment note", "repayment summary"}
    assert by_chat(service, project, session_id="unknown") >= questions(1, 2)


@pytest.mark.long
def test_turns_that_are_left_out_take_no_places(service: Stubs, project: str) -> None:
    """S4-55: left out before the search, so that there are as many hits as without them."""
    learn(service, project, *(note(f"repayment fact {number}") for number in range(5)))
    converse(service, project, "s", 10)
    reply = ask(service, project, "repayment", preset=recall.PRESET_CHAT, session_id="s", candidates=5, top_k=5)
    assert len(reply.hits) == 5
    (group,) = reply.receipt.groups
    # Origin USER_INPUT only: the preset leaves out answers of the model.
    assert (group.in_window, group.searched) == (10, 5)


def test_explain_names_the_window_and_the_turns_that_would_do(service: Stubs, talking: str) -> None:
    asked = learn_turn(service, talking, "s", "my cat is called 团子", "lovely")
    for number in range(3):
        learn_turn(service, talking, "s", f"something else {number}", "yes")
    question = {"preset": recall.PRESET_CHAT, "session_id": "s"}
    reply = explain(service, talking, "what is my cat called", asked.user.memory_id, **question)
    assert (reply.stage, reply.value, reply.threshold) == (explain_pb2.LOSS_STAGE_WINDOW, 4, 10)
    assert [(change.field, change.value) for change in reply.changes] == [("tuning.window_turns", "3")]
    assert reply.sentence.startswith("It is of turn 4 from the session's end; the last 10 turns are left out.")
    remedied = service.context.Recall(reply.changed_recall)
    assert asked.user.memory_id in {hit.memory.id for hit in remedied.hits}


@pytest.mark.parametrize(
    ("number", "shown", "left"), [(3, 20, ()), (3, 2, (1,)), (3, 0, (1, 2)), (1, 20, ()), (4, 2, (1, 2))]
)
def test_an_answer_made_again_sees_neither_its_turn_nor_later_ones(
    service: Stubs, project: str, number: int, shown: int, left: tuple[int, ...]
) -> None:
    """S4-55."""
    converse(service, project, "s", 4)
    (asked,) = [one for one in recent(service, project, "s").messages if one.content.endswith(f"question {number}")]
    reply = render_turn(service, project, asked.content, message_id=asked.id, session_id="s", max_messages=shown)
    memories = "\n".join(one.content for one in reply.messages[:-1] if one.role == context.PROMPT_ROLE_SYSTEM)
    assert {one for one in questions(1, 2, 3, 4) if one in memories} == questions(*left)


def test_a_rendering_keeps_the_window_that_its_recall_names(service: Stubs, project: str) -> None:
    converse(service, project, "s", 3)
    asked = recall_request("", "repayment 还款?", preset=recall.PRESET_CHAT, window_turns=1)
    reply = render_turn(service, project, "repayment 还款?", recall=asked, session_id="s")
    assert {one for one in questions(1, 2, 3) if one in reply.text} == questions(1, 2)


def test_a_window_needs_a_session(service: Stubs, project: str) -> None:
    refused = failure(ask, service, project, "repayment", window_turns=3)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message.startswith("tuning.window_turns:")
