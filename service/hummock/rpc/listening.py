"""How servers listen, and how they stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from grpc import aio

from hummock.core.errors import StartError
from hummock.rpc.address import Address, TcpAddress
from hummock.rpc.door import Door
from hummock.rpc.status import MAX_REPLY_BYTES

DRAIN_S = 10.0
"""That running calls have to end."""

_SEND_S = 0.5

CORE_RECEIVE_BYTES = 16 * 1024 * 1024
"""Above our own limit, so that what lies between is answered with the limit's name."""


def server_options(*, shares_port: bool) -> tuple[tuple[str, int], ...]:
    """Of a server of gRPC; one that shares its port gets some of the connections, and other processes the rest."""
    return (
        ("grpc.max_receive_message_length", CORE_RECEIVE_BYTES),
        ("grpc.max_send_message_length", MAX_REPLY_BYTES),
        # Otherwise a second service on the same port would get every other connection.
        ("grpc.so_reuseport", int(shares_port)),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Clients that ping more often than this are cut off.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    )


def bind(server: aio.Server, address: Address) -> Address:
    """Listens there; the address with the port that was chosen. Raises: StartError."""
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


async def drain(server: aio.Server, door: Door, drain_s: float) -> None:
    """Gives the calls behind a closed door so many seconds to end, and stops the server."""
    with suppress(TimeoutError):
        await asyncio.wait_for(door.emptied(), drain_s)
    # The core would wait for those who watch health, who never hang up; this is for the last replies to leave.
    # It must be told to stop once: a second time, meanwhile, crashes the process.
    await server.stop(min(drain_s, _SEND_S))
