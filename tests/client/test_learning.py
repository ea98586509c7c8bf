"""Learning, verdicts and sessions through both clients, the blocking one and the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from hummock.core.learning import Judgement, Verdict
from hummock.core.learning_requests import FeedbackCommand, FeedbackNoted
from hummock_client import AsyncClient, Client, HummockCallError
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import learning_pb2, memory_pb2
from hummock_client.v1 import learning_service_pb2 as service_pb
from hummock_client.v1.context_service_pb2 import JUDGEMENT_HELPFUL, JUDGEMENT_WRONG
from tests.rpc import samples
from tests.rpc.edge import edge_on_a_thread, use_cases
from tests.service.models import install_model
from tests.service.running import in_thread, settings

LAMP = "世界.图鉴.物品.长明灯"
ENTRY = memory_pb2.Memory(id=LAMP, kind=memory_pb2.MEMORY_KIND_ENTRY, title="长明灯", content="燃鲸油，风吹不灭。")
TURN: dict[str, Any] = {"scope": "s", "turn": 1}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    models: Path = tmp_path_factory.mktemp("models")
    chosen = settings(tmp_path_factory.mktemp("data"), models, install_model(models))
    with in_thread(chosen) as stubs:
        yield stubs.target


@pytest.mark.long
def test_learning_is_switched_tuned_shown_and_replayed(target: str) -> None:
    """S3-36 to S3-40."""
    with Client(target) as client:
        client.learn("sync", [ENTRY])
        learning = client.learning
        assert not learning.state("sync").enabled
        numbers = learning_pb2.LearningSettings(high_above=5, mid_above=2)
        changed = learning.update("sync", enabled=True, settings=numbers, keywords={LAMP: ["whale light"]})
        assert (changed.state.enabled, changed.state.settings.high_above) == (True, 5)
        rendered = client.render_turn("sync", "where is the whale light?", form=pb.RENDER_FORM_MEMORIES, **TURN)
        assert [row.memory_id for row in rendered.decision.injections] == [LAMP]
        (entry,) = learning.entries("sync", "s", page_size=1)
        assert (list(entry.profile.keywords), entry.injection.usage.frequency) == (["whale light"], 1)
        assert [event.WhichOneof("event") for event in learning.events("sync", page_size=2)] == [
            "settings_changed",
            "keywords_set",
            "switched",
            "injected",
        ]
        replayed = learning.replay("sync", fork=learning_pb2.LearningSettings(high_above=3))
        assert (replayed.matches, replayed.events, replayed.fork.differing_count) == (True, 4, 0)


def test_a_turn_gets_an_id_of_its_own(target: str) -> None:
    """1.1-9."""
    with Client(target) as client:
        client.learn("ids", [ENTRY])
        client.learning.update("ids", enabled=True)
        client.render_turn("ids", "长明灯", **TURN)
        client.render_turn("ids", "长明灯", **TURN)
        ids = {event.injected.request_id for event in client.learning.events("ids") if event.HasField("injected")}
        assert len(ids) == 2
        assert "" not in ids


def test_a_watch_shows_what_changes(target: str) -> None:
    """S3-40."""
    with Client(target) as client:
        client.learn("watch", [ENTRY])
        with closing(client.learning.watch("watch", "s")) as news:
            first = next(news)
            assert [entry.memory_id for entry in first.entries] == [LAMP]
            client.learning.update("watch", enabled=True)
            while not first.state.enabled:
                first = next(news)
            client.render_turn("watch", "长明灯", **TURN)
            second = next(news)
            assert (second.turn, second.entries[0].injection.usage.last_sent_turn) == (2, 1)
            client.delete("watch", [LAMP])
            while not list(second.removed_ids):
                second = next(news)
            assert list(second.removed_ids) == [LAMP]


async def test_the_same_without_blocking(target: str) -> None:
    """S3-36 to S3-40."""
    async with AsyncClient(target) as client:
        await client.learn("async", [ENTRY])
        learning = client.learning
        await learning.update("async", enabled=True)
        assert (await learning.state("async")).enabled
        await client.render_turn("async", "长明灯", **TURN)
        entries = [entry async for entry in learning.entries("async", "s")]
        assert [entry.injection.usage.frequency for entry in entries] == [1]
        assert [event.number async for event in learning.events("async", newest_first=True)] == [2, 1]
        assert (await learning.replay("async")).matches
        async with aclosing(learning.watch("async", "s")) as news:
            async for change in news:
                assert change.turn == 2
                break


def test_turns_are_observed_and_entries_read(target: str) -> None:
    """S3-05, S3-36."""
    with Client(target) as client:
        client.learn("observe", [ENTRY])
        client.learning.update("observe", enabled=True, settings=_without_pause())
        client.learning.observe_turn("observe", "长明灯在哪", "在码头。", turn=3, scope="s", used_ids=[LAMP])
        (observed,) = [one.turn_observed for one in client.learning.events("observe") if one.HasField("turn_observed")]
        assert (observed.turn, observed.user_text, list(observed.used_ids)) == (3, "长明灯在哪", [LAMP])
        told = list(client.learning.learn_keywords("observe", [LAMP]))
        assert [one.entry.memory_id for one in told if one.HasField("entry")] == [LAMP]
        assert told[-1].end == service_pb.SCAN_END_DONE


async def test_turns_are_observed_and_entries_read_without_blocking(target: str) -> None:
    """S3-05, S3-36."""
    async with AsyncClient(target) as client:
        await client.learn("observe-async", [ENTRY])
        await client.learning.update("observe-async", enabled=True, settings=_without_pause())
        assert (await client.learning.observe_turn("observe-async", "长明灯在哪", turn=0)).seq > 0
        told = [one async for one in client.learning.learn_keywords("observe-async", scope=service_pb.SCAN_SCOPE_ALL)]
        assert told[-1].end == service_pb.SCAN_END_DONE


def _without_pause() -> learning_pb2.LearningSettings:
    return learning_pb2.LearningSettings(cold_start_pause=Duration())


def entries_named(*names: str) -> list[memory_pb2.Memory]:
    return [
        memory_pb2.Memory(id=name, kind=memory_pb2.MEMORY_KIND_ENTRY, content=f"{name} is an entry.") for name in names
    ]


def test_pages_of_entries_follow_each_other(target: str) -> None:
    """S3-40."""
    with Client(target) as client:
        client.learn("paged", entries_named("oak", "elm", "ash"))
        assert [one.memory_id for one in client.learning.entries("paged", page_size=1)] == ["oak", "elm", "ash"]


async def test_pages_of_entries_follow_each_other_without_blocking(target: str) -> None:
    """S3-40."""
    async with AsyncClient(target) as client:
        await client.learn("paged-async", entries_named("oak", "elm", "ash"))
        ids = [one.memory_id async for one in client.learning.entries("paged-async", page_size=2)]
        assert ids == ["oak", "elm", "ash"]


VERDICTS = {"a": JUDGEMENT_HELPFUL, "b": JUDGEMENT_WRONG}


def test_both_clients_send_verdicts_by_id() -> None:
    """S1-17."""
    asked: list[FeedbackCommand] = []

    def feedback(command: FeedbackCommand) -> FeedbackNoted:
        asked.append(command)
        return samples.feedback_noted(command)

    async def run(address: str) -> None:
        async with AsyncClient(address) as client:
            assert (await client.feedback("p", VERDICTS, note="n")).unknown_ids == ["b"]

    with edge_on_a_thread(use_cases(feedback=feedback)) as address:
        with Client(address) as client:
            assert client.feedback("p", VERDICTS, query_text="q", session_id="s").recorded_count == 1
        asyncio.run(run(address))
    assert [(one.query_text, one.note, one.session_id) for one in asked] == [("q", "", "s"), ("", "n", "")]
    assert asked[0].verdicts == (
        Verdict(memory_id="a", judgement=Judgement.HELPFUL),
        Verdict(memory_id="b", judgement=Judgement.WRONG),
    )
    assert asked[0].request_id != asked[1].request_id


def test_a_conversation_is_kept(target: str) -> None:
    """S4-07, S4-11 to S4-14, S4-38."""
    with Client(target) as client:
        sessions = client.sessions
        active = sessions.active("sync")
        assert sessions.active("sync") == active
        named = sessions.create("sync", "s", title="晚上")
        assert [one.id for one in sessions.list("sync", page_size=1)] == ["s", active.id]
        sent = sessions.append("sync", "s", "你好", message_id="u-1")
        assert sent.position == 1
        turn = sessions.learn_turn(
            "sync", "s", pb.TurnSide(text="你好", message_id="u-1"), "hello", used_memory_ids=["m"]
        )
        assert (turn.user.position, turn.assistant.position) == (1, 2)
        pages = [[one.content for one in page.messages] for page in sessions.messages("sync", "s", page_size=1)]
        assert (pages, sessions.get("sync", "s").message_count) == ([["hello"], ["你好"]], named.message_count + 2)
        assert sessions.update("sync", "s", archived=True).archived
        assert [one.id for one in sessions.list("sync", archived=True)] == ["s"]
        assert (sessions.update("sync", "s", title="早上").title, sessions.delete("sync", "s").message_count) == (
            "早上",
            2,
        )
        with pytest.raises(HummockCallError) as caught:
            sessions.get("sync", "s")
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")


def test_a_watch_yields_what_comes_and_hangs_up_when_it_is_closed(target: str) -> None:
    """S4-12."""
    with Client(target) as client:
        client.sessions.create("watch", "s")
        client.sessions.append("watch", "s", "一")
        with closing(client.sessions.watch("watch", "s", newest=1)) as news:
            assert [one.content for one in next(news).messages] == ["一"]
            client.sessions.append("watch", "s", "two", role=pb.PROMPT_ROLE_ASSISTANT, raw="[joy]two")
            (message,) = next(news).messages
    assert (message.position, message.content, message.raw) == (2, "two", "[joy]two")


async def test_the_async_client_keeps_a_conversation(target: str) -> None:
    """S4-07, S4-11 to S4-14, S4-38."""
    async with AsyncClient(target) as client:
        sessions = client.sessions
        active = await sessions.active("async")
        await sessions.create("async", "s")
        assert [one.id async for one in sessions.list("async", page_size=1)] == ["s", active.id]
        await sessions.append("async", "s", "你好", message_id="u-1")
        await sessions.learn_turn("async", "s", pb.TurnSide(text="你好", message_id="u-1"), "hello")
        assert (await sessions.update("async", "s", title="t")).title == "t"
        assert (await sessions.get("async", "s")).message_count == 2
        async with aclosing(sessions.watch("async", "s", after_position=1)) as news:
            first = await anext(news)
        pages = [page async for page in sessions.messages("async", "s", page_size=1)]
        await sessions.delete("async", "s")
        kept = [one.content for page in pages for one in page.messages]
        assert (kept, [one.content for one in first.messages]) == (["hello", "你好"], ["hello"])
