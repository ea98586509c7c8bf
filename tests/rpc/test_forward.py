"""Calls that a reader forwards: with the caller's deadline and metadata, for as long as the caller waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
import pytest
from grpc import aio

from hummock.recall.cache import CachedRecall
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.listening import TcpAddress
from hummock.rpc.reader import serve_recalls
from hummock_client.v1.recall_pb2 import RecallRequest
from tests.rpc.edge import OnWorkers, refused
from tests.rpc.samples import recalled

pytestmark = pytest.mark.timed

LEARN, LEARN_STREAM = "/hummock.v1.ContextService/Learn", "/hummock.v1.ContextService/LearnStream"
WATCH, RECALL = "/hummock.v1.MemoryService/WatchMemories", "/hummock.v1.ContextService/Recall"


class Service(grpc.GenericRpcHandler):
    """Notes each call; holds the ones that say so until their caller hangs up."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.time_left_s: list[float | None] = []
        self.metadata: list[dict[str, str | bytes]] = []
        self.has_begun = asyncio.Event()
        self.was_left = asyncio.Event()

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method

        async def unary(data: bytes, context: Any) -> bytes:
            await self._note(method, data, context)
            return data[::-1]

        async def stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
            async for data in requests:
                await self._note(method, data, context)
                yield data[::-1]

        async def replies(data: bytes, context: Any) -> AsyncIterator[bytes]:
            yield b"begun"
            await self._note(method, data, context)
            yield data[::-1]

        if method == LEARN_STREAM:
            return grpc.stream_stream_rpc_method_handler(stream)
        if method == WATCH:
            return grpc.unary_stream_rpc_method_handler(replies)
        return grpc.unary_unary_rpc_method_handler(unary)

    async def _note(self, method: str, data: bytes, context: Any) -> None:
        self.asked.append((method, data))
        self.time_left_s.append(context.time_remaining())
        self.metadata.append(dict(context.invocation_metadata()))
        if data != b"wait":
            return
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.was_left.set()


@asynccontextmanager
async def reading(service: Service | None) -> AsyncIterator[Any]:
    """A channel to a reader alongside the service; without a service it stands alone."""
    server = aio.server(handlers=[service] if service else [])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    if service is None:
        await server.stop(None)
    until, bound = asyncio.Event(), asyncio.get_running_loop().create_future()
    with ThreadPoolExecutor(1) as workers:
        queue = AdmissionQueue(workers, workers=1)
        serving = asyncio.create_task(
            serve_recalls(
                cast(CachedRecall, OnWorkers(recalled)),
                Lanes(read=queue, write=queue, stream=queue),
                TcpAddress(host="127.0.0.1", port=0),
                f"127.0.0.1:{port}",
                interceptor=Interceptor(),
                tls=None,
                until=until,
                on_listening=bound.set_result,
            )
        )
        async with aio.insecure_channel(str(await bound)) as channel:
            yield channel
        until.set()
        await serving
    await server.stop(None)


async def test_a_recall_is_answered_here_and_the_rest_there() -> None:
    service = Service()
    async with reading(service) as channel:
        request = RecallRequest(project="p", query_text="q").SerializeToString()
        assert await channel.unary_unary(RECALL)(request)
        assert await channel.unary_unary(LEARN)(b"abc") == b"cba"
        assert [each async for each in channel.unary_stream(WATCH)(b"ab")] == [b"begun", b"ba"]
        assert [each async for each in channel.stream_stream(LEARN_STREAM)(iter([b"ab", b"cd"]))] == [b"ba", b"dc"]
    assert service.asked == [(LEARN, b"abc"), (WATCH, b"ab"), (LEARN_STREAM, b"ab"), (LEARN_STREAM, b"cd")]


async def test_the_deadline_and_the_metadata_go_along() -> None:
    service = Service()
    async with reading(service) as channel:
        for timeout in (100.0, None):
            said = (("authorization", "Bearer token"), ("trace-bin", b"\x00\xff"))
            await channel.unary_unary(LEARN)(b"abc", timeout=timeout, metadata=said)
            async for _ in channel.unary_stream(WATCH)(b"abc", timeout=timeout, metadata=said):
                pass
            async for _ in channel.stream_stream(LEARN_STREAM)(iter([b"a"]), timeout=timeout, metadata=said):
                pass
    with_one, without = service.time_left_s[:3], service.time_left_s[3:]
    # Rounded up at each hop, to what the header can say.
    assert all(left is not None and 90 < left < 105 for left in with_one)
    assert without == [None, None, None]
    for metadata in service.metadata:
        assert (metadata["authorization"], metadata["trace-bin"]) == ("Bearer token", b"\x00\xff")


@pytest.mark.long
def test_who_hangs_up_ends_the_call_there() -> None:
    async def run(name: str) -> None:
        service = Service()
        async with reading(service) as channel:
            if name == LEARN:
                call: Any = channel.unary_unary(LEARN)(b"wait")
            elif name == WATCH:
                call = channel.unary_stream(WATCH)(b"wait")
                assert await call.read() == b"begun"
            else:
                call = channel.stream_stream(LEARN_STREAM)()
                await call.write(b"wait")
            async with asyncio.timeout(30):
                await service.has_begun.wait()
                call.cancel()
                await service.was_left.wait()

    for name in (LEARN, WATCH, LEARN_STREAM):
        asyncio.run(run(name))


async def test_without_the_service_recalls_are_answered_and_the_rest_is_unavailable() -> None:
    async with reading(None) as channel:
        request = RecallRequest(project="p", query_text="q").SerializeToString()
        assert await channel.unary_unary(RECALL)(request)
        answer = await refused(channel.unary_unary(LEARN)(b"abc"))
        assert (answer.code, answer.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        assert answer.retry_after_s
        assert "127.0.0.1" not in answer.message
