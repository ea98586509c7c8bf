"""Targets as they are written, and errors as the client raises them."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st

from hummock_client import components, resolve_target, vector
from hummock_client.channel import is_local
from hummock_client.errors import call_error, describe, status_error


class Failed:
    """A call that failed in the channel."""

    def __init__(self, code: grpc.StatusCode, metadata: Iterable[tuple[str, str | bytes]] | None = None) -> None:
        self._code = code
        self._metadata = metadata

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return None

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        return self._metadata


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (grpc.StatusCode.UNAVAILABLE, "cannot be reached"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "did not answer in time"),
        (grpc.StatusCode.CANCELLED, "more calls come than the service can read"),
        (grpc.StatusCode.UNIMPLEMENTED, "does not know this call"),
    ],
)
def test_what_the_channel_gives_up_is_said_with_the_target(code: grpc.StatusCode, words: str) -> None:
    said = describe(call_error(Failed(code), "127.0.0.1:7420"), "127.0.0.1:7420")
    assert words in said
    assert "127.0.0.1:7420" in said


def test_details_that_nobody_can_read_leave_the_code() -> None:
    garbled = Failed(grpc.StatusCode.INTERNAL, [("grpc-status-details-bin", b"\xff\xff\xff")])
    error = call_error(garbled, "127.0.0.1:7420")
    assert (error.code, error.reason, error.field_violations) == (grpc.StatusCode.INTERNAL, "INTERNAL", ())


def test_a_detail_that_cannot_be_read_leaves_the_others() -> None:
    """One of a known type whose bytes are none, and one of a type that a later service may add."""
    known = Any()
    known.Pack(ErrorInfo(reason="MEMORY_NOT_FOUND", metadata={"memory_id": "m"}))
    others = ("google.rpc.RetryInfo", "google.rpc.BadRequest", "hummock.v2.Later")
    garbled = [Any(type_url=f"type.googleapis.com/{name}", value=b"\xff") for name in others]
    error = status_error(Status(code=grpc.StatusCode.NOT_FOUND.value[0], details=[*garbled, known]))
    assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND")
    assert (error.metadata, error.field_violations, error.retry_after_s) == ({"memory_id": "m"}, (), None)


@pytest.mark.parametrize(
    ("given_target", "resolved"),
    [
        ("127.0.0.1:7420", "127.0.0.1:7420"),
        ("localhost", "localhost:7420"),
        ("memory.example.org:443", "memory.example.org:443"),
        ("[::1]:9", "[::1]:9"),
        ("[::1]", "[::1]:7420"),
        ("unix:///run/h.sock", "unix:/run/h.sock"),
        ("unix:/run/h.sock", "unix:/run/h.sock"),
        ("unix:h.sock", "unix:h.sock"),
    ],
)
def test_a_target_is_written_as_grpc_writes_it(given_target: str, resolved: str) -> None:
    assert resolve_target(given_target) == resolved


@pytest.mark.parametrize("target", ["", ":1", "h:", "h:0", "h:65536", "h:x", "::1", "unix:", "unix://", "http://h:1"])
def test_what_is_no_target_is_refused_with_an_example(target: str) -> None:
    with pytest.raises(ValueError, match=r"write (host:port|unix:)"):
        resolve_target(target)


def test_the_environment_names_the_target_and_the_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUMMOCK_TARGET", raising=False)
    assert resolve_target() == "127.0.0.1:7420"
    monkeypatch.setenv("HUMMOCK_TARGET", "unix:///run/h.sock")
    assert (resolve_target(), resolve_target("h:1")) == ("unix:/run/h.sock", "h:1")


@pytest.mark.parametrize(
    ("target", "local"),
    [("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True), ("unix:/x", True), ("10.0.0.1:1", False)],
)
def test_proxies_are_passed_by_on_this_machine_alone(target: str, local: bool) -> None:
    assert is_local(target) == local


@given(st.lists(st.floats(width=32), min_size=1))
def test_a_vector_keeps_its_components(values: list[float]) -> None:
    assert [str(value) for value in components(vector(values, "e"))] == [str(value) for value in values]
