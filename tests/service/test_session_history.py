"""Render takes the history from a session."""

from __future__ import annotations

import grpc

from hummock_client.v1 import context_service_pb2 as context
from tests.service.calls import learn
from tests.service.conversing import append, create, problem, render_turn, texts
from tests.service.inputs import note
from tests.service.running import Stubs


def test_a_turn_is_persona_memories_history_and_the_users_message(service: Stubs, project: str) -> None:
    """S4-01, S4-32, S4-35, S4-36."""
    create(service, project, "s")
    learn(service, project, note("My cat is called 团子"))
    append(service, project, "s", "hello")
    append(service, project, "s", "hi there", role=context.PROMPT_ROLE_ASSISTANT)
    sent = append(service, project, "s", "what is my cat called")
    reply = render_turn(service, project, "what is my cat called", message_id=sent.id, session_id="s")
    persona, memories, *said = reply.messages
    assert persona.content == "You are kind."
    assert "团子" in memories.content
    assert memories.role == context.PROMPT_ROLE_SYSTEM
    assert [(one.role, one.content) for one in said] == [
        (context.PROMPT_ROLE_USER, "hello"),
        (context.PROMPT_ROLE_ASSISTANT, "hi there"),
        (context.PROMPT_ROLE_USER, "what is my cat called"),
    ]


def test_the_current_message_is_sent_once_whether_it_was_appended_or_not(service: Stubs, project: str) -> None:
    """S4-34, 1.1-8."""
    create(service, project, "s")
    append(service, project, "s", "earlier")
    assert history(render_turn(service, project, "now", message_id="m", session_id="s")) == ["earlier"]
    append(service, project, "s", "now", id="m")
    reply = render_turn(service, project, "now", message_id="m", session_id="s")
    assert texts(reply.messages) == ["You are kind.", "earlier", "now"]


def test_an_answer_is_made_again_from_what_was_said_before_it(service: Stubs, project: str) -> None:
    create(service, project, "s")
    append(service, project, "s", "first")
    append(service, project, "s", "again please", id="m")
    append(service, project, "s", "a bad answer", role=context.PROMPT_ROLE_ASSISTANT)
    assert history(render_turn(service, project, "again please", message_id="m", session_id="s")) == ["first"]


def test_the_history_is_cut_by_messages_and_then_by_characters(service: Stubs, project: str) -> None:
    """S4-45."""
    create(service, project, "s")
    for number in range(25):
        append(service, project, "s", f"{number:02}")
    append(service, project, "s", "now", id="m")

    def shown(**limits: int) -> list[str]:
        return history(render_turn(service, project, "now", message_id="m", session_id="s", **limits))

    assert shown() == [f"{number:02}" for number in range(5, 25)]
    assert shown(max_messages=3) == ["22", "23", "24"]
    assert shown(max_messages=3, max_characters=5) == ["23", "24"]
    assert shown(max_characters=1) == ["24"]
    assert shown(max_messages=0) == []


def test_by_default_the_history_has_16000_characters(service: Stubs, project: str) -> None:
    """S4-45."""
    create(service, project, "s")
    for name in "abc":
        append(service, project, "s", name * 8_000)
    assert history(render_turn(service, project, "now", session_id="s")) == ["b" * 8_000, "c" * 8_000]


def test_a_history_and_a_session_exclude_each_other(service: Stubs, project: str) -> None:
    create(service, project, "s")
    request = context.RenderRequest(
        project=project,
        memories=context.MemorySelection(ids=["x"]),
        form=context.RENDER_FORM_MESSAGES,
        current=context.PromptMessage(role=context.PROMPT_ROLE_USER, content="x"),
        session=context.SessionHistory(session_id="s"),
        history=[context.PromptMessage(role=context.PROMPT_ROLE_USER, content="y")],
    )
    code, message = problem(lambda: service.context.Render(request))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message.startswith("history:")
    request.ClearField("history")
    request.ClearField("current")
    request.form = context.RENDER_FORM_MEMORIES
    code, message = problem(lambda: service.context.Render(request))
    assert message.startswith("session:")


def history(reply: context.RenderResponse) -> list[str]:
    """Messages before the current one."""
    said = [one for one in reply.messages if one.role != context.PROMPT_ROLE_SYSTEM]
    return texts(said[:-1])
