"""Running the MCP server: over which transport, and its connection to the service."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server

from hummock_tools.mcp.reach import Reach, Refused, as_it_is
from hummock_tools.mcp.server import memory_server

if TYPE_CHECKING:
    from hummock_client import AsyncClient
    from hummock_tools.mcp.calls import ProjectCalls


async def over_stdio(project: str, target: str, reach: Reach | None) -> None:
    """Answer on stdout what comes on stdin until that ends; the log goes to stderr.

    Args:
        project: Project of the memories.
        target: Address of the service. It is called when a tool is, so it may start later and be restarted.
        reach: Starts the service where it is away; None leaves that to others.

    Raises:
        ServingEnded: It ended before stdin did.
    """
    from hummock_tools.mcp.stdio import serve_stdio

    async with _connected(project, target, reach) as server:
        await serve_stdio(server)


async def over_http(project: str, target: str, reach: Reach | None, listener: socket.socket) -> None:
    """Answer HTTP on a socket that listens already, until SIGINT or SIGTERM; then finish what runs.

    The signal is raised again at the end, for whoever is to know.
    """
    from hummock_tools.mcp.streamable_http import serve_http

    async with _connected(project, target, reach) as server:
        await serve_http(server, listener)


@asynccontextmanager
async def _connected(project: str, target: str, reach: Reach | None) -> AsyncIterator[Server[Any]]:
    """A server that connects to the service when it is first needed; hangs up at exit."""
    service = _Service(project, target, reach)
    try:
        yield memory_server(service.connect, service.on_start)
    finally:
        await service.hang_up()


class _Service:
    """The service, which nothing is imported for before it is called."""

    def __init__(self, project: str, target: str, reach: Reach | None) -> None:
        self._project = project
        self._target = target
        self._reach = reach
        self._client: AsyncClient | None = None
        self._starting: asyncio.Task[None] | None = None

    def connect(self) -> ProjectCalls:
        """The calls of the project."""
        from hummock_client import AsyncClient
        from hummock_tools.mcp.calls import ProjectCalls

        self._client = AsyncClient(self._target)
        return ProjectCalls(self._client, self._project, self._reach or as_it_is)

    def on_start(self) -> None:
        """Starts the service before anybody calls it, so that the first call waits less."""
        if self._reach is not None:
            self._starting = asyncio.create_task(_quietly(self._reach))

    async def hang_up(self) -> None:
        """Ends the connection."""
        if self._starting is not None:
            self._starting.cancel()
        if self._client is not None:
            await self._client.close()


async def _quietly(reach: Callable[[], Any]) -> None:
    """Reach the service; why it cannot be reached is for the call that needs it."""
    try:
        await reach()
    except Refused:
        return
