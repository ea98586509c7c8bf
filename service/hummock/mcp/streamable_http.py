"""Serving many clients over streamable HTTP, on this machine's loopback alone."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

PATH: Final = "/mcp"
DEFAULT_PORT: Final = 7421
"""The port beside the service's own."""

_DRAIN_S: Final = 5
_BACKLOG: Final = 128


class NotLoopback(ValueError):
    """The address is one that other machines can reach."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        NotLoopback: Other machines could call, and nothing would ask them who they are.
        OSError: The port is taken.
    """
    address = _loopback(host)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """What clients are told to connect to."""
    host, port = listener.getsockname()[:2]
    return f"http://{_in_url(host)}:{port}{PATH}"


async def serve_http(server: Server[Any], listener: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM, which is raised again when all that ran is finished."""
    host, port = listener.getsockname()[:2]
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=only_for(str(host), int(port)))
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=_DRAIN_S
    )
    await uvicorn.Server(config).serve(sockets=[listener])


def only_for(host: str, port: int) -> TransportSecuritySettings:
    """Requests that name this machine; a page in a browser, whatever its name resolves to, is told apart by these.

    A program sends no Origin. A browser always does, and may call from a page of this very address alone.
    """
    names = sorted({f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]", _in_url(host))})
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])


def _loopback(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise NotLoopback(
            f"{host} can be reached by other machines, and this server asks nobody who they are: what it may do, all "
            "could do through it. Listen on 127.0.0.1, and let other machines in through what checks who "
            f"they are, for example ssh -L {DEFAULT_PORT}:127.0.0.1:{DEFAULT_PORT}"
        )
    return host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
