"""The last turns of a session are not recalled: whoever asks has them in the history."""

from __future__ import annotations

from typing import Any

import grpc

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2 as explain
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn
from tests.service.conversing import append, create, learn_turn, problem, render_turn
from tests.service.inputs import note
from tests.service.running import Stubs


def converse(service: Stubs, project: str, session_id: str, turns: int) -> None:
    """Turns that all speak of repayment, numbered from the first."""
    create(service, project, session_id)
    for number in range(1, turns + 1):
        learn_turn(service, project, session_id, f"repayment 还款 question {number}", f"repayment answer {number}")


def recalled(service: Stubs, project: str, **options: Any) -> set[str]:
    return set(contents(ask(service, project, "repayment 还款", top_k=200, **options)))


def chat(service: Stubs, project: str, **options: Any) -> set[str]:
    return recalled(service, project, preset=recall.PRESET_CHAT, **options)


def questions(*numbers: int) -> set[str]:
    return {f"repayment 还款 question {number}" for number in numbers}


def test_the_last_turns_of_a_named_session_are_left_out(service: Stubs, project: str) -> None:
    """S4-55."""
    converse(service, project, "s", 4)
    assert chat(service, project, session_id="s", window_turns=2) == questions(1, 2)
    both_sides = recalled(service, project, session_id="s", window_turns=3)
    assert both_sides == questions(1) | {"repayment answer 1"}


def test_a_chat_leaves_out_ten_turns_and_other_presets_none(service: Stubs, project: str) -> None:
    """S4-55."""
    converse(service, project, "s", 12)
    assert chat(service, project, session_id="s") == questions(1, 2)
    assert chat(service, project, session_id="s", window_turns=0) == questions(*range(1, 13))
    assert chat(service, project) == questions(*range(1, 13))
    assert len(recalled(service, project, session_id="s")) == 24


def test_other_sessions_and_other_origins_are_recalled(service: Stubs, project: str) -> None:
    """S4-55."""
    converse(service, project, "s", 2)
    converse(service, project, "t", 1)
    learn(service, project, note("repayment note", session_id="s"))
    learn(service, project, note("repayment summary", session_id="s", origin=pb.ORIGIN_SUMMARY))
    assert chat(service, project, session_id="s") == questions(1) | {"repayment note", "repayment summary"}
    assert chat(service, project, session_id="unknown") >= questions(1, 2)


def test_turns_that_are_left_out_take_no_places(service: Stubs, project: str) -> None:
    """S4-55: left out before the search, so that there are as many hits as without them."""
    learn(service, project, *(note(f"repayment fact {number}") for number in range(5)))
    converse(service, project, "s", 10)
    reply = ask(service, project, "repayment", preset=recall.PRESET_CHAT, session_id="s", candidates=5, top_k=5)
    assert len(reply.hits) == 5
    (group,) = reply.receipt.groups
    # Of origin USER_INPUT: those of the model are not of the preset.
    assert (group.in_window, group.searched) == (10, 5)


def test_explain_names_the_window_and_the_turns_that_would_do(service: Stubs, project: str) -> None:
    """S4-55."""
    create(service, project, "s")
    asked = learn_turn(service, project, "s", "my cat is called 团子", "lovely")
    for number in range(3):
        learn_turn(service, project, "s", f"something else {number}", "yes")
    request = recall.RecallRequest(
        project=project, query_text="what is my cat called", preset=recall.PRESET_CHAT, session_id="s"
    )
    reply = service.context.Explain(explain.ExplainRequest(recall=request, memory_id=asked.user.memory_id))
    assert (reply.stage, reply.value, reply.threshold) == (explain.LOSS_STAGE_WINDOW, 4, 10)
    assert [(change.field, change.value) for change in reply.changes] == [("tuning.window_turns", "3")]
    assert reply.sentence.startswith("It is of turn 4 from the session's end; the last 10 turns are left out.")
    remedied = service.context.Recall(reply.changed_recall)
    assert asked.user.memory_id in {hit.memory.id for hit in remedied.hits}


def test_a_rendering_leaves_out_the_turns_that_its_history_shows(service: Stubs, project: str) -> None:
    """S4-55."""
    converse(service, project, "s", 4)
    sent = append(service, project, "s", "repayment 还款?")
    for shown, left in ((20, set()), (6, questions(1)), (5, questions(1, 2)), (0, questions(1, 2, 3, 4))):
        reply = render_turn(service, project, "repayment 还款?", message_id=sent.id, session_id="s", max_messages=shown)
        rendered = {one for one in questions(1, 2, 3, 4) if one in reply.text}
        assert rendered == left
        history = [one.content for one in reply.messages if one.role != context.PROMPT_ROLE_SYSTEM]
        assert rendered.isdisjoint(history)


def test_a_rendering_keeps_the_window_that_its_recall_names(service: Stubs, project: str) -> None:
    converse(service, project, "s", 3)
    asked = recall.RecallRequest(
        query_text="repayment 还款?", preset=recall.PRESET_CHAT, tuning=recall.RecallTuning(window_turns=1)
    )
    reply = render_turn(service, project, "repayment 还款?", recall=asked, session_id="s")
    assert {one for one in questions(1, 2, 3) if one in reply.text} == questions(1, 2)


def test_a_window_needs_a_session(service: Stubs, project: str) -> None:
    code, message = problem(lambda: ask(service, project, "repayment", window_turns=3))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message.startswith("tuning.window_turns:")
