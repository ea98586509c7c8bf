"""Memory in the system prompt of a chat, and a chat without it when it is not to be had."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hummock.core.render import Rendered, RenderQuery
from hummock_client import Client
from hummock_client.prompts import query_of, request, system_of, with_section
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import recall_pb2
from tests.client.conftest import MakeClient
from tests.rpc import samples
from tests.rpc.edge import Noted, edge_on_a_thread, use_cases

MESSAGES: Sequence[Mapping[str, Any]] = (
    {"role": "system", "content": "You are patient.", "name": "kept"},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "还款日是哪天？"},
    {"role": "assistant", "content": "", "tool_calls": []},
)

Ask = Callable[[str, float], Sequence[Mapping[str, Any]]]


@pytest.fixture
def ask(make_client: MakeClient) -> Ask:
    def with_memory(target: str, budget_s: float) -> Sequence[Mapping[str, Any]]:
        with make_client(target) as client:
            return client.with_memory("loan", MESSAGES, budget_s=budget_s)

    return with_memory


def reply(prompt: str, text: str = "memories") -> pb.RenderResponse:
    said = [pb.PromptMessage(role=pb.PROMPT_ROLE_SYSTEM, content=prompt)]
    return pb.RenderResponse(text=text, messages=said)


def test_the_users_last_message_is_asked_for_and_the_first_system_message_is_the_prompt(ask: Ask) -> None:
    render = Noted(samples.rendered)
    with edge_on_a_thread(use_cases(render=render)) as address:
        ask(address, 10)
    (query,) = render.asked
    assert query.recall is not None
    assert (query.recall.text, query.project) == ("还款日是哪天？", "loan")


def test_only_the_system_message_changes_and_it_keeps_its_other_keys() -> None:
    changed = with_section(MESSAGES, reply("You are patient.\n---\nmemories"))
    assert changed[0] == {"role": "system", "content": "You are patient.\n---\nmemories", "name": "kept"}
    assert [*changed[1:]] == [*MESSAGES[1:]]
    assert all(one is other for one, other in zip(changed[1:], MESSAGES[1:], strict=True))
    assert MESSAGES[0]["content"] == "You are patient."


def test_where_there_is_no_system_message_one_is_put_in_front() -> None:
    said = [{"role": "user", "content": "Hello"}]
    assert with_section(said, reply("memories")) == [{"role": "system", "content": "memories"}, *said]


def test_where_nothing_was_recalled_the_very_same_messages_come_back() -> None:
    assert with_section(MESSAGES, reply("You are patient.", text="")) is MESSAGES


@pytest.mark.parametrize(
    ("messages", "query", "system"),
    [
        ([], "", ""),
        ([{"role": "assistant", "content": "x"}], "", ""),
        ([{"role": "user", "content": " \n"}], "", ""),
        ([{"role": "user", "content": "先"}, {"role": "user", "content": "后 "}], "后", ""),
        ([{"role": "system", "content": "a"}, {"role": "system", "content": "b"}], "", "a"),
        (
            [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}]}],
            "one",
            "",
        ),
        ([{"role": "user", "content": "x" * 9000 + "when?"}], "x" * 8187 + "when?", ""),
    ],
)
def test_what_is_asked_is_what_the_user_said_last(messages: Any, query: str, system: str) -> None:
    assert (query_of(messages), system_of(messages)) == (query, system)


def test_the_form_is_memories_and_a_project_may_be_missing() -> None:
    asked = request("p", "q")
    assert (asked.form, asked.target) == (pb.RENDER_FORM_MEMORIES, pb.PROMPT_TARGET_SYSTEM)
    assert asked.allow_missing
    assert not asked.HasField("budget_tokens")
    chosen = request("p", "q", "prompt", pb.RENDER_FORM_CONTEXT, recall_pb2.PRESET_CHAT, 500)
    assert (chosen.prompt, chosen.recall.preset, chosen.budget_tokens) == ("prompt", recall_pb2.PRESET_CHAT, 500)


@pytest.mark.long
def test_a_service_that_is_away_leaves_the_messages_alone(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with caplog.at_level(logging.INFO, "hummock_client"):
        assert ask(address, 0.3) is MESSAGES
    assert "a prompt goes without memory: HummockCallError" in caplog.text


@pytest.mark.long
def test_a_service_that_is_slow_costs_no_more_than_the_budget(ask: Ask) -> None:
    release = threading.Event()

    def render(query: RenderQuery) -> Rendered:
        release.wait(20)
        return samples.rendered(query)

    with edge_on_a_thread(use_cases(render=render)) as address:
        started_s = time.monotonic()
        assert ask(address, 0.3) is MESSAGES
        # The budget, and what a busy machine takes to say so.
        assert time.monotonic() - started_s < 5
        release.set()


def test_what_nobody_thought_of_leaves_the_messages_alone(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [{"role": "user", "content": "\ud800"}, {"content": "no role"}, "no message"]
    monkeypatch.setitem(globals(), "MESSAGES", broken)
    assert ask("127.0.0.1:1", 0.3) is broken


def test_a_mistyped_option_is_no_want_of_memory() -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(TypeError):
        client.with_memory("p", MESSAGES, budget=1)  # type: ignore[call-arg]


def test_warming_up_asks_once_in_the_background_and_waits_for_the_service(make_client: MakeClient) -> None:
    asked = threading.Semaphore(0)

    def render(query: RenderQuery) -> Rendered:
        asked.release()
        return samples.rendered(query)

    with edge_on_a_thread(use_cases(render=render)) as address, make_client(address) as client:
        client.warm_up("loan")
        assert asked.acquire(timeout=20)


def test_warming_up_for_a_service_that_never_comes_is_forgotten_with_the_client(make_client: MakeClient) -> None:
    with make_client("127.0.0.1:1") as client:
        client.warm_up("loan")
