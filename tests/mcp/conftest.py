from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from hummock_tools.mcp import serving
from tests.service.conftest import model, models_dir
from tests.service.running import free_port, in_thread, settings

__all__ = ["HELLO", "Agent", "model", "models_dir"]
Agent: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]
_PROJECTS = count()

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}
"""The first line of a client."""


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[str]:
    """Address of the one service of these tests."""
    port = free_port()
    with in_thread(settings(tmp_path_factory.mktemp("data"), models_dir, model, port=port)):
        yield f"127.0.0.1:{port}"


@pytest.fixture
def nobody() -> Iterator[str]:
    """A target where nothing listens, and nothing will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def project() -> str:
    """A project that no other test has."""
    return f"项目-{next(_PROJECTS)}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Path of the server's stderr output."""
    return tmp_path / "stderr.txt"


@pytest.fixture
def agent(target: str, project: str, log: Path) -> Agent:
    """The SDK's own client: of a server in this process, or piped to a `hummock mcp` that it starts."""

    @asynccontextmanager
    async def start(
        service: str = target, command: tuple[str, ...] | None = None, *, is_piped: bool = False
    ) -> AsyncIterator[Client]:
        if command is None and not is_piped:
            async with serving._connected(project, service, None) as server, Client(server) as client:
                yield client
            return
        environ = {**os.environ, "HUMMOCK_TARGET": service, "HUMMOCK_PROJECT": project}
        program, *arguments = command or (sys.executable, "-m", "hummock", "mcp", "--no-serve")
        parameters = StdioServerParameters(command=program, args=arguments, env=environ)
        with log.open("w", encoding="utf-8") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                yield client

    return start
