"""`hummock health` over gRPC's own health protocol, as a container engine runs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from typer.testing import CliRunner

from hummock.cli.main import app

Statuses = health_pb2.HealthCheckResponse


@pytest.fixture
def service() -> Iterator[tuple[str, Callable[[int], None]]]:
    """A target that answers health checks, and what sets its status."""
    checks = health.HealthServicer()
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", lambda status: checks.set("", status)
    server.stop(None).wait()


def test_a_service_that_takes_calls_is_healthy(service: tuple[str, Callable[[int], None]]) -> None:
    target, say = service
    say(Statuses.SERVING)
    shown = CliRunner().invoke(app, ["health", "--target", target])
    assert (shown.exit_code, shown.stdout) == (0, "SERVING\n")
    shown = CliRunner().invoke(app, ["health", "--json", "--target", target])
    assert (shown.exit_code, json.loads(shown.stdout)) == (0, {"status": "SERVING"})


@pytest.mark.parametrize("status", [Statuses.NOT_SERVING, Statuses.UNKNOWN])
def test_a_service_that_takes_none_ends_it_with_one(service: tuple[str, Callable[[int], None]], status: int) -> None:
    target, say = service
    say(status)
    shown = CliRunner().invoke(app, ["health", "--target", target])
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert f"{target} says {Statuses.ServingStatus.Name(status)}" in shown.stderr


def test_a_service_that_is_down_ends_it_with_one() -> None:
    shown = CliRunner().invoke(app, ["health", "--target", "127.0.0.1:1"])
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "127.0.0.1:1" in shown.stderr
