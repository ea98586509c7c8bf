"""Addresses and options of a server, and how it stops."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grpc import aio

from hummock.access.authenticator import Exposure
from hummock.core.errors import StartError, Unavailable
from hummock.rpc.dispatch import InFlight
from hummock.rpc.status import LARGEST_REPLY_BYTES
from hummock.rpc.tls import Tls

DEFAULT_ADDRESS = "127.0.0.1:7420"
LONGEST_SOCKET_PATH_BYTES = 103  # sun_path of macOS is the shorter one
UNREAD_CALLS = 1024
"""Calls that gRPC's core queues until this process accepts them, one at a time. Above this number the core ends a
growing share of new calls with CANCELLED, which costs some microseconds."""

UNREAD_CALLS_MOST = 2048
"""Queued calls above which the core cancels every new one."""

CALLS_OF_CONNECTION = 256
"""Calls and streams of one connection at a time; the client's gRPC keeps others until there is room. More than the
streams that a caller may open, which would keep all of its calls otherwise."""

DRAIN_S = 6.0
"""Seconds that running calls have to finish when the service stops."""

_HURRY_S = 1.5
"""Grace after cancellation, in seconds. One embedding, which cannot be interrupted, takes less."""

_QUIET_S = 0.2
"""Seconds without a new call before the core stops. Calls under way get a named error until then; afterwards the core
sends CANCELLED, which explains nothing."""

_QUIET_WAIT_S = 0.5
"""Longest wait, in seconds, for _QUIET_S without a new call; callers may never pause."""

_TELL_S = 1.0
"""Seconds without any caller reading its error, after which the server stops waiting. A thousand streams need time on a
busy machine, and some clients never read."""

_SEND_S = 1.5
"""Seconds for the last replies to be sent, on a busy machine. Callers of the rest get CANCELLED."""

CORE_RECEIVE_BYTES = 16 * 1024 * 1024
"""Above our own limit, so that a slightly larger message is refused with an error that names the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpAddress:
    """A host and a port; port 0 lets the system choose one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixAddress:
    """A socket in the file system."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


Address = TcpAddress | UnixAddress


def parse_address(text: str) -> Address:
    """The address that the text names. Raises: StartError."""
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:").removeprefix("//"))
        if not path.name:
            raise StartError(f"{text} names no socket; write unix:/path/to/hummock.sock")
        return UnixAddress(path=path.absolute())
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise StartError(f"{text} is no address; write host:port, for example {DEFAULT_ADDRESS}, or unix:/path")
    return TcpAddress(host=host, port=int(port))


def exposure_of(address: Address) -> Exposure:
    """How far the address can be reached."""
    if isinstance(address, UnixAddress):
        return Exposure.OWNER
    return Exposure.MACHINE if address.is_loopback else Exposure.NETWORK


def check_bindable(address: Address) -> None:
    """Check that the address can be bound. Raises: StartError: names the obstacle."""
    if isinstance(address, UnixAddress):
        _check_socket_path(address.path)
    else:
        _check_port(address)


def _check_port(address: TcpAddress) -> None:
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise StartError(f"{address.host} is no address of this machine: {error.strerror}") from error
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(target)
            probe.listen()
        except OSError as error:
            raise StartError(_bind_advice(address, error)) from error


def _bind_advice(address: TcpAddress, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {address.port} of {address.host} is taken by another process, perhaps by another hummock; stop it "
            "or choose another port"
        )
    if error.errno == errno.EACCES:
        return f"port {address.port} needs more rights than this user has; choose one above 1023"
    return f"cannot listen on {address}: {error.strerror}"


def _check_socket_path(path: Path) -> None:
    if len(bytes(path)) > LONGEST_SOCKET_PATH_BYTES:
        raise StartError(f"{path} has {len(bytes(path))} bytes; a socket's path may have {LONGEST_SOCKET_PATH_BYTES}")
    if not path.parent.is_dir():
        raise StartError(f"{path.parent} is no directory; make it or choose another path for the socket")
    try:
        is_socket = stat.S_ISSOCK(path.stat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise StartError(f"{path} exists and is no socket; choose another path")
    # The core would silently take over the path of a running service.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return
    raise StartError(f"{path} is taken by another process, perhaps by another hummock; stop it or choose another path")


def server_options(*, shares_port: bool, has_inside: bool) -> tuple[tuple[str, int], ...]:
    """Options of a gRPC server.

    Args:
        shares_port: Other processes listen on the same port and get part of the connections.
        has_inside: Other parts of the service forward the calls of many callers over one connection.
    """
    return (
        ("grpc.server.max_pending_requests", UNREAD_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", UNREAD_CALLS_MOST),
        *(() if has_inside else (("grpc.max_concurrent_streams", CALLS_OF_CONNECTION),)),
        # Otherwise the core refuses new calls of a client whose previous calls have only just ended.
        ("grpc.http.overload_protection", 0),
        ("grpc.max_receive_message_length", CORE_RECEIVE_BYTES),
        ("grpc.max_send_message_length", LARGEST_REPLY_BYTES),
        # Otherwise a second service on the same port would get every other connection.
        ("grpc.so_reuseport", int(shares_port)),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Clients that ping more often than this are cut off.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    )


def bind(server: aio.Server, address: Address, tls: Tls | None = None) -> Address:
    """Listens there, on a Unix socket without TLS; the address with the port that was chosen. Raises: StartError."""
    try:
        if tls is None or isinstance(address, UnixAddress):
            port = server.add_insecure_port(str(address))
        else:
            port = server.add_secure_port(str(address), tls.for_grpc())
    except RuntimeError as error:
        raise StartError(f"cannot listen on {address}; choose another address") from error
    if isinstance(address, TcpAddress):
        return TcpAddress(host=address.host, port=port)
    with suppress(OSError):
        # Write access to the socket gives access to every memory, so only the owner has it.
        address.path.chmod(0o600)
    return address


async def drain(server: aio.Server, in_flight: InFlight, drain_s: float) -> None:
    """Give the calls in flight `drain_s` seconds to end, and stop the server. New calls are refused already.

    Calls that run longer are cancelled where possible and end with UNAVAILABLE.
    """
    with suppress(TimeoutError):
        await asyncio.wait_for(in_flight.drained(), drain_s)
    in_flight.hurry(Unavailable("the service is stopping, and this took too long; nothing was stored; try again"))
    with suppress(TimeoutError):
        await asyncio.wait_for(in_flight.drained(), min(drain_s, _HURRY_S))
    with suppress(TimeoutError):
        await asyncio.wait_for(in_flight.quiet(_QUIET_S), min(drain_s, _QUIET_WAIT_S))
    with suppress(TimeoutError):
        await asyncio.wait_for(in_flight.told(_TELL_S), drain_s)
    # The grace lets the last replies leave; health watchers never hang up, so the core would wait for them forever.
    # Stop only once: a second call meanwhile crashes the process.
    await server.stop(min(drain_s, _SEND_S))
