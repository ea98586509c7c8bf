"""Address at which the client looks for the service."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_client import components, resolve_target, vector
from hummock_client.channel import is_local


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
    assert resolve_target() == "unix:/run/h.sock"
    assert resolve_target("h:1") == "h:1"


@pytest.mark.parametrize(
    ("target", "local"),
    [("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True), ("unix:/x", True), ("10.0.0.1:1", False)],
)
def test_proxies_are_passed_by_on_this_machine_alone(target: str, local: bool) -> None:
    assert is_local(target) == local


@given(st.lists(st.floats(width=32), min_size=1))
def test_a_vector_keeps_its_components(values: list[float]) -> None:
    assert [str(value) for value in components(vector(values, "e"))] == [str(value) for value in values]
