"""A call's deadline reaches the work that is done for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import explain_pb2, recall_pb2
from tests.rpc.edge import Noted, edge, use_cases
from tests.rpc.samples import explained, recalled, rendered, searched

pytestmark = pytest.mark.timed

RECALL = "ContextService/Recall"
OTHERS = {
    "Search": pb.SearchRequest(project="p", query_text="还款"),
    "Explain": explain_pb2.ExplainRequest(
        recall=recall_pb2.RecallRequest(project="p", query_text="还款"), memory_id="m"
    ),
    "Render": pb.RenderRequest(project="p", recall=recall_pb2.RecallRequest(query_text="还款")),
}
REQUEST = recall_pb2.RecallRequest(project="p", query_text="还款").SerializeToString()


async def test_a_recall_knows_when_its_caller_stops_waiting() -> None:
    recall = Noted(recalled)
    begun = time.monotonic()
    async with edge(use_cases(recall=recall), workers=1) as serving:
        call: Any = serving.channel.unary_unary(f"/hummock.v1.{RECALL}")
        await call(REQUEST, timeout=50_000)
        await call(REQUEST)
    hurried, patient = recall.asked
    assert hurried.until_s is not None
    # gRPC rounds what it sends.
    assert begun + 40_000 < hurried.until_s < begun + 60_000
    assert patient.until_s is None
    assert hurried == patient


@pytest.mark.parametrize("method", sorted(OTHERS))
async def test_so_do_all_that_recall_for_another_answer(method: str) -> None:
    asked: list[float | None] = []
    samples: dict[str, Callable[[Any], Any]] = {"Search": searched, "Explain": explained, "Render": rendered}

    def answer(query: Any) -> Any:
        inner = query if method == "Search" else query.recall
        asked.append(inner.until_s)
        return samples[method](query)

    begun = time.monotonic()
    async with edge(use_cases(**{method.lower(): answer}), workers=1) as serving:
        call: Any = serving.channel.unary_unary(f"/hummock.v1.ContextService/{method}")
        await call(OTHERS[method].SerializeToString(), timeout=500)
    (until_s,) = asked
    assert until_s is not None
    assert begun + 400 < until_s < begun + 600
