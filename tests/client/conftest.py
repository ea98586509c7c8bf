"""What tests of several clients need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import toy_models
from tests.client.consumers import require
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
