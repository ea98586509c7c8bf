"""Feedback through both Python clients."""

from __future__ import annotations

import asyncio

from hummock.core.learning import Judgement, Verdict
from hummock.core.learning_requests import FeedbackCommand, FeedbackNoted
from hummock_client import AsyncClient, Client
from hummock_client.v1.context_service_pb2 import JUDGEMENT_HELPFUL, JUDGEMENT_WRONG
from tests.rpc import samples
from tests.rpc.edge import edge_on_a_thread, use_cases

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
