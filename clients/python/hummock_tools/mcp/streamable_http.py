"""Serving many clients over streamable HTTP, on this machine's loopback alone."""

from __future__ import annotations

import socket
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummock.local_http import WholeBodies, config_of
from hummock_tools import loopback
from hummock_tools.mcp.serving import NotAMessage, decode, read_message

PATH: Final = "/mcp"

_DRAIN_S: Final = 5

MOST_SESSIONS: Final = 512
SESSION_IDLE_S: Final = 1800.0
"""Without a request or a stream. Clients begin another session then, of themselves."""


def url_of(listener: socket.socket) -> str:
    """URL that clients connect to."""
    return f"{loopback.url_of(listener)}{PATH}"


async def serve_http(server: Server[Any], listener: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM, which is raised again when all that ran is finished."""
    app = app_of(server, loopback.names_of(listener))
    await uvicorn.Server(config_of(app, _DRAIN_S)).serve(sockets=[listener])


def app_of(server: Server[Any], names: tuple[str, ...]) -> ASGIApp:
    """Build the server's application, for requests whose Host is one of the names."""
    # A program sends no Origin. A browser always does, and may call from a page of this very address alone, whatever
    # its name resolves to.
    origins = [f"http://{name}" for name in names]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(allowed_hosts=list(names), allowed_origins=origins),
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=SESSION_IDLE_S,
    )
    return WholeBodies(_reading_messages(app))


def _reading_messages(app: ASGIApp) -> ASGIApp:
    """The app after the reader that stdin has too: what the SDK would answer without its id, or not at all.

    It is given whole bodies.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        whole = await receive()
        # What is larger is the SDK's to refuse.
        text = decode(whole["body"]) if len(whole["body"]) <= DEFAULT_MAX_REQUEST_BODY_SIZE else ""
        if text.strip():
            try:
                read_message(text)
            except NotAMessage as none:
                errors = [each.model_dump(mode="json", by_alias=True, exclude_unset=True) for each in none.answers]
                await JSONResponse(errors if len(errors) > 1 else errors[0], status_code=400)(scope, receive, send)
                return
            whole["body"] = text.encode()
        unread = [whole]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        await app(scope, again, send)

    return answer
