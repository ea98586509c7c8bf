"""The gRPC server: starts, says when it is ready, drains, stops."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hummock.core.errors import StartError
from hummock.rpc.address import Address, TcpAddress, UnixAddress, check_bindable, parse_address
from hummock.rpc.feed import Feed
from hummock.rpc.handlers import SERVICES, Door, Gates, handlers
from hummock.rpc.status import MAX_REPLY_BYTES
from hummock.rpc.use_cases import UseCases

DRAIN_S = 10.0
_SEND_S = 0.5
_CORE_RECEIVE_BYTES = 16 * 1024 * 1024

_OPTIONS: tuple[tuple[str, int], ...] = (
    # Above our own limit, so that what lies between is answered with the limit's name.
    ("grpc.max_receive_message_length", _CORE_RECEIVE_BYTES),
    ("grpc.max_send_message_length", MAX_REPLY_BYTES),
    # Otherwise a second service on the same port would get every other connection.
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Clients that ping more often than this are cut off.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
)


class Server:
    """A server that listens. Calls are answered UNAVAILABLE, and health says NOT_SERVING, until `open`."""

    def __init__(
        self, server: aio.Server, checks: health.aio.HealthServicer, door: Door, feed: Feed, address: Address
    ) -> None:
        self._server = server
        self._health = checks
        self._door = door
        self._feed = feed
        self._stopping: asyncio.Task[None] | None = None
        self.address = address

    @classmethod
    async def start(
        cls, use_cases: UseCases, gates: Gates, address: str, *, allow_remote_plaintext: bool = False
    ) -> Self:
        """Listens.

        Args:
            use_cases: What answers the calls.
            gates: Where calls run.
            address: `host:port` (port 0 lets the system choose) or `unix:path`.
            allow_remote_plaintext: Whether other machines may reach it without encryption.

        Raises:
            StartError: The address cannot be used.
        """
        wanted = parse_address(address)
        check_bindable(wanted, allow_remote_plaintext=allow_remote_plaintext)
        door, feed, checks = Door(), Feed(), health.aio.HealthServicer()
        use_cases.follow(feed.tell)
        server = aio.server(handlers=handlers(use_cases, gates, door, feed), options=_OPTIONS)
        health_pb2_grpc.add_HealthServicer_to_server(checks, server)
        reflection.enable_server_reflection((*_names(), health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        bound = _bind(server, wanted)
        started = cls(server, checks, door, feed, bound)
        await started._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        await server.start()
        return started

    async def open(self) -> None:
        """Lets calls in; health says SERVING."""
        self._door.open()
        await self._say(health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, drain_s: float = DRAIN_S) -> None:
        """Says NOT_SERVING, refuses new calls, and gives those inside `drain_s` seconds to end. Once is enough."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(drain_s))
        await self._stopping

    async def _stop(self, drain_s: float) -> None:
        await self._health.enter_graceful_shutdown()
        self._door.close()
        self._feed.end()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._door.emptied(), drain_s)
        # The core would wait for those who watch health, who never hang up; this is for the last replies to leave.
        # It must be told to stop once: a second time, meanwhile, crashes the process.
        await self._server.stop(min(drain_s, _SEND_S))
        if isinstance(self.address, UnixAddress):
            self.address.path.unlink(missing_ok=True)

    async def _say(self, status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> None:
        for name in ("", *_names()):
            await self._health.set(name, status)


async def serve(
    use_cases: UseCases,
    gates: Gates,
    address: str,
    *,
    allow_remote_plaintext: bool = False,
    warm_up: Callable[[], None] | None = None,
    on_listening: Callable[[Address], None] | None = None,
    drain_s: float = DRAIN_S,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains and returns. A second signal ends the process at once.

    Args:
        use_cases: What answers the calls.
        gates: Where calls run.
        address: `host:port` or `unix:path`.
        allow_remote_plaintext: Whether other machines may reach it without encryption.
        warm_up: Runs on a thread after listening and before calls are let in.
        on_listening: Told the address, with the port that was chosen, once calls are let in.
        drain_s: Seconds that running calls have to end.

    Raises:
        StartError: The address cannot be used.
    """
    asked_to_stop = _stop_event()
    server = await Server.start(use_cases, gates, address, allow_remote_plaintext=allow_remote_plaintext)
    try:
        if warm_up is not None:
            await asyncio.to_thread(warm_up)
        if not asked_to_stop.is_set():
            await server.open()
            if on_listening is not None:
                on_listening(server.address)
        await asked_to_stop.wait()
    finally:
        await server.stop(drain_s)


def _stop_event() -> asyncio.Event:
    loop, asked_to_stop = asyncio.get_running_loop(), asyncio.Event()

    def on_signal(number: int) -> None:
        if asked_to_stop.is_set():
            os._exit(128 + number)
        asked_to_stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return asked_to_stop


def _bind(server: aio.Server, address: Address) -> Address:
    try:
        port = server.add_insecure_port(str(address))
    except RuntimeError as error:
        raise StartError(f"cannot listen on {address}; choose another address") from error
    if isinstance(address, TcpAddress):
        return TcpAddress(host=address.host, port=port)
    with suppress(OSError):
        # Whoever can write to the socket can read every memory: it is for its owner alone.
        address.path.chmod(0o600)
    return address


def _names() -> tuple[str, ...]:
    return tuple(service.full_name for service in SERVICES)
