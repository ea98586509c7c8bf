"""The gRPC server: starts, says when it is ready, drains, stops."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Self

from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hummock.core.activity import Activity
from hummock.core.errors import StartError
from hummock.rpc.dispatch import InFlight
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.listening import (
    DEFAULT_ADDRESS,
    DRAIN_S,
    Address,
    UnixAddress,
    bind,
    check_bindable,
    drain,
    parse_address,
    server_options,
)
from hummock.rpc.methods import UseCases, handlers
from hummock.rpc.policy import SERVICES
from hummock.rpc.streams import Feed
from hummock.rpc.tls import Tls

_TROUBLE_S = 1.0
"""Between two looks at whether there is any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access control of a server.

    Attributes:
        interceptor: Authenticates callers by their tokens.
        tls: Spoken on ports; Unix sockets stay plain. None speaks plaintext.
        allow_remote_plaintext: Whether other machines may reach it without encryption.
        has_reflection: Whether any client may read the contract by reflection.
    """

    interceptor: Interceptor = field(default_factory=Interceptor)
    tls: Tls | None = None
    allow_remote_plaintext: bool = False
    has_reflection: bool = True

    def check(self, address: Address) -> None:
        """Check that the address is safe to open. Raises: StartError."""
        if isinstance(address, UnixAddress) or address.is_loopback:
            return
        if self.tls is None and not self.allow_remote_plaintext:
            raise StartError(
                f"{address} can be reached from other machines, and what is sent there is not encrypted: anyone on the "
                "way could read and write every memory; set tls_certificate and tls_key, listen on "
                f"{DEFAULT_ADDRESS}, or pass allow_remote_plaintext if the network is trusted"
            )
        if not self.interceptor.has_tokens:
            raise StartError(
                f"{address} can be reached from other machines, and there is no token by which to know who calls; make "
                "one for this data directory, `hummock tokens create NAME --scope 'PROJECT:learn'`, and give it to the "
                "caller as HUMMOCK_TOKEN"
            )


_OPEN = Access()
"""Access for the owner of this machine, without tokens."""


@dataclass(eq=False)
class Server:
    """A server that listens. Calls are answered UNAVAILABLE, and health says NOT_SERVING, until `open`."""

    _server: aio.Server
    _health: health.aio.HealthServicer
    _in_flight: InFlight
    _feed: Feed
    _addresses: Sequence[Address]
    _trouble: Callable[[], str]
    _watching: asyncio.Task[None] | None = None
    _stopping: asyncio.Task[None] | None = None

    @property
    def address(self) -> Address:
        """The address that callers know."""
        return self._addresses[0]

    @classmethod
    async def start(
        cls,
        use_cases: UseCases,
        lanes: Lanes,
        address: str,
        *,
        access: Access = _OPEN,
        inside: UnixAddress | None = None,
        shares_port: bool = False,
        activity: Callable[[], Activity] | None = None,
    ) -> Self:
        """Start a server.

        Args:
            use_cases: The functions that answer.
            lanes: The queues on which calls run.
            address: `host:port` (port 0 lets the system choose) or `unix:path`.
            access: Access control.
            inside: Address for other parts of the service; None if there are none.
            shares_port: Whether other processes listen on its port.
            activity: Counters of the service; None if no calls are counted.

        Raises:
            StartError: The address cannot be used.
        """
        wanted = parse_address(address)
        access.check(wanted)
        check_bindable(wanted)
        in_flight, feed, checks = InFlight(), Feed(), health.aio.HealthServicer()
        use_cases.follow(feed.tell)
        server = aio.server(
            handlers=handlers(use_cases, lanes, in_flight, feed, access.interceptor, activity),
            options=server_options(shares_port=shares_port, has_inside=inside is not None),
        )
        health_pb2_grpc.add_HealthServicer_to_server(checks, server)
        if access.has_reflection:
            reflection.enable_server_reflection((*_names(), health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        bound = [bind(server, each, access.tls) for each in (wanted, inside) if each is not None]
        started = cls(server, checks, in_flight, feed, bound, use_cases.trouble)
        await started._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        await server.start()
        return started

    async def open(self) -> None:
        """Lets calls in; health says SERVING, and NOT_SERVING while there is trouble."""
        self._in_flight.open()
        await self._say(health_pb2.HealthCheckResponse.SERVING)
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        said = ""
        while True:
            trouble = self._trouble()
            if bool(trouble) != bool(said):
                status = health_pb2.HealthCheckResponse
                await self._say(status.NOT_SERVING if trouble else status.SERVING)
            said = trouble
            await asyncio.sleep(_TROUBLE_S)

    async def stop(self, drain_s: float = DRAIN_S) -> None:
        """Report NOT_SERVING, refuse new calls, and give running ones `drain_s` seconds to end. Idempotent."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(drain_s))
        await self._stopping

    async def _stop(self, drain_s: float) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self._health.enter_graceful_shutdown()
        self._in_flight.close()
        self._feed.end()
        await drain(self._server, self._in_flight, drain_s)
        for address in self._addresses:
            if isinstance(address, UnixAddress):
                address.path.unlink(missing_ok=True)

    async def _say(self, status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> None:
        for name in ("", *_names()):
            await self._health.set(name, status)


async def serve(
    starting: Awaitable[Server],
    *,
    warm_up: Callable[[Address], None] | None = None,
    on_listening: Callable[[Address], None] | None = None,
    on_hangup: Callable[[], None] | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains and returns. A second signal ends the process at once.

    Args:
        starting: `Server.start`, not yet awaited.
        warm_up: Gets the address; runs on a thread after listening and before calls are let in.
        on_listening: Gets the address, with the chosen port, once calls are accepted.
        on_hangup: Called at each SIGHUP, once calls may come in.

    Raises:
        StartError: The address cannot be used.
    """
    asked_to_stop = _stop_event()
    if on_hangup is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
    server = await starting
    try:
        if warm_up is not None:
            await _unless(asked_to_stop, partial(warm_up, server.address))
        if not asked_to_stop.is_set():
            await server.open()
            if on_listening is not None:
                on_listening(server.address)
        await asked_to_stop.wait()
    finally:
        await server.stop()


async def _unless(asked_to_stop: asyncio.Event, work: Callable[[], None]) -> None:
    """Run work on a thread and wait until it ends or the server is to stop. Raises what the work raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:
            error = raised
        # The loop may be closed by then.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, error)

    # Its own daemon thread, which the process does not wait for at exit.
    Thread(target=run, name="warm-up", daemon=True).start()
    stopping = asyncio.ensure_future(asked_to_stop.wait())
    await asyncio.wait((done, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if done.done():
        done.result()


def _stop_event() -> asyncio.Event:
    loop, asked_to_stop = asyncio.get_running_loop(), asyncio.Event()

    def on_signal(number: int) -> None:
        if asked_to_stop.is_set():
            os._exit(128 + number)
        asked_to_stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return asked_to_stop


def _names() -> tuple[str, ...]:
    return tuple(service.full_name for service in SERVICES)
