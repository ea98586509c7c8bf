"""A call's deadline reaches the work that is done for it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hummock.core.recall import Recalled, RecallQuery
from hummock.v1 import recall_pb2
from tests.rpc.edge import edge, use_cases
from tests.rpc.samples import recalled

RECALL = "ContextService/Recall"
REQUEST = recall_pb2.RecallRequest(project="p", query_text="还款").SerializeToString()


def test_a_recall_knows_when_its_caller_stops_waiting() -> None:
    asked: list[RecallQuery] = []

    def recall(query: RecallQuery) -> Recalled:
        asked.append(query)
        return recalled(query)

    async def run() -> None:
        async with edge(use_cases(recall=recall), workers=1) as serving:
            call: Any = serving.channel.unary_unary(f"/hummock.v1.{RECALL}")
            await call(REQUEST, timeout=50_000)
            await call(REQUEST)

    begun = time.monotonic()
    asyncio.run(run())
    hurried, patient = asked
    assert hurried.until_s is not None
    # gRPC rounds what it sends.
    assert begun + 40_000 < hurried.until_s < begun + 60_000
    assert patient.until_s is None
    assert hurried == patient
