"""Garbage of a refused call: nothing that only the collector of cycles would find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc import aio

from hummock.core.errors import EmbSpaceMismatch, InvalidRequest
from hummock.core.recall import RecallQuery
from hummock.recall.cache import Answer
from hummock_client.v1.context_service_pb2 import LearnRequest
from hummock_client.v1.memory_service_pb2 import WatchMemoriesRequest
from hummock_client.v1.recall_pb2 import RecallRequest
from tests.rpc.edge import edge, use_cases

pytestmark = pytest.mark.timed

_SMALL = 1000
MARK = "x" * 10_000
CALLS: list[tuple[str, bytes]] = [
    ("ContextService/Recall", RecallRequest(project="p", query_text=MARK).SerializeToString()),
    ("ContextService/Recall", RecallRequest(project="", query_text="x").SerializeToString()),
    ("ContextService/Learn", LearnRequest(project=MARK).SerializeToString()),
    ("ContextService/Learn", b"\xff" * 10_000),
    ("ContextService/Learn", bytes(5 << 20)),
    ("MemoryService/WatchMemories", WatchMemoriesRequest(project="").SerializeToString()),
]


@pytest.fixture
def garbage() -> Iterator[list[Any]]:
    """Objects that the collector finds, kept by it instead of freed."""
    gc.collect()
    gc.disable()
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.long
@pytest.mark.parametrize(("method", "request_bytes"), CALLS)
@pytest.mark.parametrize("is_inline", [True, False])
async def test_a_refused_call_is_freed_when_it_is_over(
    garbage: list[Any], method: str, request_bytes: bytes, is_inline: bool
) -> None:
    """Requests have up to 4 MiB, and the service collects seldom."""

    class Refusing:
        def answer(self, query: RecallQuery) -> Answer:
            raise EmbSpaceMismatch("query_vector", "a", "b")

        def inline(self, query: RecallQuery) -> Answer | None:
            return self.answer(query) if is_inline else None

    async with edge(use_cases(recall=Refusing())) as serving:

        async def called() -> None:
            if not method.endswith("WatchMemories"):
                await serving.raw(method, request_bytes)
                return
            call: Any = serving.channel.unary_stream(f"/hummock.v1.{method}")
            async for _ in call(request_bytes):
                pass

        async def refused() -> None:
            with pytest.raises(aio.AioRpcError) as caught:
                await called()
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

        await refused()
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        await refused()
    gc.collect()
    assert [error for error in garbage if isinstance(error, InvalidRequest)] == []
    held = [each for found in garbage for each in gc.get_referents(found) if isinstance(each, bytes)]
    # What the service has received is another object than what was sent to it from this process.
    assert not any(len(each) == len(request_bytes) > _SMALL and each is not request_bytes for each in held)
