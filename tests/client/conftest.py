"""What tests of several clients need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from bench import toy_models
from hummock_client import Client
from tests.client.consumers import require
from tests.client.waiting import WaitingClient
from tests.rpc.edge import edge_on_a_thread
from tests.service.running import in_process


@pytest.fixture(scope="session")
def go() -> str:
    """Path of `go`; the test is skipped where it is missing, or fails with REQUIRE_CLIENTS."""
    return require("go", "the client for Go cannot be tested")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service with the toy model and nothing stored."""
    directory = tmp_path_factory.mktemp("service")
    model = toy_models.build_tiny(directory / "models").name
    with in_process(directory / "data", directory / "models", model) as service:
        yield service.target


MakeClient: TypeAlias = Callable[..., Client]
Answers: TypeAlias = Callable[[Any, Callable[[Client], Any]], Any]


@pytest.fixture(params=[Client, WaitingClient], ids=["blocking", "asyncio"])
def make_client(request: pytest.FixtureRequest) -> MakeClient:
    """Either of the two clients."""
    make: MakeClient = request.param
    return make


@pytest.fixture
def answers(make_client: MakeClient) -> Answers:
    """Result of either client's call to a server with these use cases."""

    def answered(chosen: Any, ask: Callable[[Client], Any]) -> Any:
        with edge_on_a_thread(chosen) as address, make_client(address) as client:
            return ask(client)

    return answered
