"""`python -m bench.trivial BYTES`: a bare grpc.aio server that answers every call with so many bytes and does no work.

What a recall over gRPC costs beyond one in process and beyond this is our own.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from grpc import aio

from bench.service import BenchFailed, process_cpu_s
from hummock_client.channel import channel_options

CALL = "/bench.Trivial/Call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trivial:
    """A running server that does nothing: its process, address and channel."""

    process_id: int
    target: str
    channel: grpc.Channel

    def cpu_s(self) -> float:
        """CPU seconds of its process so far."""
        return process_cpu_s(self.process_id)


@contextmanager
def trivial_server(reply_bytes: int) -> Iterator[Trivial]:
    """Starts a server that does nothing in a process of its own."""
    command = [sys.executable, "-m", "bench.trivial", str(reply_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            if not line:
                raise BenchFailed("the trivial server did not start")
            with grpc.insecure_channel(target := line.strip(), options=channel_options(target)) as channel:
                yield Trivial(process_id=process.pid, target=target, channel=channel)
        finally:
            process.kill()


async def _serve(reply_bytes: int) -> None:
    reply = bytes(range(256)) * (reply_bytes // 256 + 1)
    handler = _Always(reply[:reply_bytes])
    server = aio.server(handlers=(handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


class _Always(grpc.GenericRpcHandler):
    """Answers whatever the method."""

    def __init__(self, reply: bytes) -> None:
        async def answer(request: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
            return reply

        self._handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(answer)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return self._handler


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
