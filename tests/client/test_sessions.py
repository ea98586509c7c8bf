"""The part of the Python clients that keeps conversations, against the service itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

import grpc
import pytest

from hummock_client import AsyncClient, Client, HummockCallError
from hummock_client.v1 import context_service_pb2 as pb
from tests.service.models import install_model
from tests.service.running import in_thread, settings


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    models: Path = tmp_path_factory.mktemp("models")
    chosen = settings(tmp_path_factory.mktemp("data"), models, install_model(models))
    with in_thread(chosen) as stubs:
        yield stubs.target


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
            "sync",
            "s",
            pb.TurnSide(text="你好", message_id="u-1"),
            "hello",
            used_memory_ids=["m"],
        )
        assert (turn.user.position, turn.assistant.position) == (1, 2)
        pages = [[one.content for one in page.messages] for page in sessions.messages("sync", "s", page_size=1)]
        assert pages == [["hello"], ["你好"]]
        assert sessions.get("sync", "s").message_count == named.message_count + 2
        assert sessions.update("sync", "s", archived=True).archived
        assert [one.id for one in sessions.list("sync", archived=True)] == ["s"]
        assert sessions.update("sync", "s", title="早上").title == "早上"
        assert sessions.delete("sync", "s").message_count == 2
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


def test_the_async_client_keeps_a_conversation(target: str) -> None:
    """S4-07, S4-11 to S4-14, S4-38."""

    async def converse() -> list[str]:
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
            return [one.content for page in pages for one in page.messages] + [one.content for one in first.messages]

    assert asyncio.run(converse()) == ["hello", "你好", "hello"]
