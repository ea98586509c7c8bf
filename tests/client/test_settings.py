"""Settings through both Python clients."""

from __future__ import annotations

import asyncio

from hummock.core.settings import PresetSettings, ProjectSettings
from hummock_client import AsyncClient, Client
from hummock_client.v1.recall_pb2 import RecallTuning as SentPreset
from hummock_client.v1.settings_pb2 import ProjectSettings as Sent
from tests.rpc.edge import FixedSettings, edge_on_a_thread, use_cases

SENT = Sent(chat=SentPreset(top_k=8))


def test_settings_are_read_and_changed() -> None:
    """S4-46."""
    settings = FixedSettings()
    with edge_on_a_thread(use_cases(settings=settings)) as address, Client(address) as client:
        assert client.settings("loan").settings.chat.top_k == 8
        assert client.update_settings("loan", SENT, ["chat.top_k"]).settings.chat.top_k == 8
    asked, (project, request_id, values, paths, _) = settings.asked
    assert asked == ("loan",)
    assert (project, values, paths) == ("loan", ProjectSettings(chat=PresetSettings(top_k=8)), {"chat.top_k"})
    assert len(request_id) == 36


def test_the_async_client_does_the_same() -> None:
    """S4-46."""
    settings = FixedSettings()

    async def run(address: str) -> None:
        async with AsyncClient(address) as client:
            assert (await client.settings("loan")).content_seq == 4
            assert (await client.update_settings("loan", SENT, ["chat"])).seq == 9

    with edge_on_a_thread(use_cases(settings=settings)) as address:
        asyncio.run(run(address))
    assert {"chat.top_k", "chat.origins"} <= settings.asked[1][3]
