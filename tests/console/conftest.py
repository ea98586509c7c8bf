from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from hummock_tools import loopback
from hummock_tools.console.app import app_of
from tests.console.browser import Browser
from tests.service.conftest import model, models_dir, project, service
from tests.service.running import Stubs

__all__ = ["answering", "model", "models_dir", "project", "service"]


@contextmanager
def answering(target: str) -> Iterator[int]:
    """The console over a target, on a free port, in a thread of this process."""
    with loopback.listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(
            app_of(target, loopback.names_of(listener)), log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="console")
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def console(service: Stubs) -> Iterator[int]:
    """The port of a console over the service of the session."""
    with answering(service.target) as port:
        yield port


@pytest.fixture(params=["en", "zh"])
def browser(console: int, request: pytest.FixtureRequest) -> Browser:
    """One that asks for English, and one that asks for Chinese."""
    return Browser(console, {"en": "en-GB,en;q=0.9,zh;q=0.1", "zh": "zh-CN,zh;q=0.9,en;q=0.8"}[request.param])


@pytest.fixture
def english(console: int) -> Browser:
    return Browser(console, "en")


@pytest.fixture
def stranded() -> Iterator[Browser]:
    """A browser at a console whose service is away."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with answering(f"127.0.0.1:{bound.getsockname()[1]}") as port:
            yield Browser(port, "en")
