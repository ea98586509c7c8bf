"""Serving many clients over streamable HTTP, on this machine's loopback alone."""

from __future__ import annotations

import socket
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from hummock import loopback

PATH: Final = "/mcp"

_DRAIN_S: Final = 5


def url_of(listener: socket.socket) -> str:
    """What clients are told to connect to."""
    return f"{loopback.url_of(listener)}{PATH}"


async def serve_http(server: Server[Any], listener: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM, which is raised again when all that ran is finished."""
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=_only_for(loopback.names_of(listener))
    )
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=_DRAIN_S
    )
    await uvicorn.Server(config).serve(sockets=[listener])


def _only_for(names: tuple[str, ...]) -> TransportSecuritySettings:
    """Requests that name this machine; a page in a browser, whatever its name resolves to, is told apart by these.

    A program sends no Origin. A browser always does, and may call from a page of this very address alone.
    """
    return TransportSecuritySettings(allowed_hosts=list(names), allowed_origins=[f"http://{name}" for name in names])
