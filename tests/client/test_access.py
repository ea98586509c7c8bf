"""Tokens and transport of outgoing calls."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from hummock_client import AsyncClient, Certificate, Client, HummockCallError
from hummock_client.access import open_channel, resolve_access
from hummock_client.errors import describe
from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1 import memory_service_pb2 as memories_pb
from tests.client.conftest import MakeClient
from tests.conformance.certificates import Authority

SECRET = "s3cret-token"


class Porch(grpc.GenericRpcHandler):
    """Answers every call with nothing, and keeps what was said at the door."""

    def __init__(self) -> None:
        self.heard: list[str | bytes | None] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        self.heard.append(dict(details.invocation_metadata or ()).get("authorization"))
        return grpc.stream_stream_rpc_method_handler(lambda requests, context: iter([b""]))


@contextmanager
def porch(credentials: grpc.ServerCredentials | None = None) -> Iterator[tuple[Porch, int]]:
    handler = Porch()
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((handler,))
        port = (
            server.add_secure_port("127.0.0.1:0", credentials)
            if credentials
            else server.add_insecure_port("127.0.0.1:0")
        )
        server.start()
        yield handler, port
        server.stop(None).wait()


def secured(authority: Authority, clients: Authority | None = None) -> grpc.ServerCredentials:
    signed = authority.signed()
    ca = clients.certificate if clients else None
    return grpc.ssl_server_credentials([(signed.key, signed.certificate)], ca, clients is not None)


def every_shape(client: Client) -> None:
    """A call with one reply, one with several, one with several requests, one to be ready."""
    client.status()
    list(client.stream(memories_pb.WatchMemoriesRequest(project="p")))
    list(client.learn_stream([]))
    client.wait_until_ready()


def test_the_token_goes_with_every_call_to_this_machine(make_client: MakeClient) -> None:
    with porch() as (heard, port), make_client(f"127.0.0.1:{port}", token=SECRET) as client:
        every_shape(client)
    assert heard.heard == [f"Bearer {SECRET}"] * 4


def test_the_environment_names_the_token_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TOKEN", SECRET)
    with porch() as (heard, port):
        for token in (None, "other", ""):
            with Client(f"127.0.0.1:{port}", token=token) as client:
                client.status()
    assert heard.heard == [f"Bearer {SECRET}", "Bearer other", None]


@pytest.mark.parametrize("target", ["10.0.0.1:7420", "memory.example.org:7420", "127.0.0.1.example.org:1"])
def test_a_token_is_never_sent_to_another_machine_in_the_clear(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TOKEN", SECRET)
    for make in (Client, AsyncClient):
        with pytest.raises(ValueError, match="in the clear") as caught:
            make(target)
        assert SECRET not in str(caught.value)


def test_over_tls_it_may_go_anywhere() -> None:
    access = resolve_access("memory.example.org:7420", token=SECRET, tls=True, root_certificates=None)
    assert access.metadata == (("authorization", f"Bearer {SECRET}"),)
    assert access.credentials is not None
    assert SECRET not in repr(access)


@pytest.mark.parametrize("token", ["two words", "line\n", "密"])
def test_what_no_header_can_hold_is_no_token(token: str) -> None:
    with pytest.raises(ValueError, match="the token has characters") as caught:
        resolve_access("127.0.0.1:1", token=token, tls=False, root_certificates=None)
    assert token not in str(caught.value)


@pytest.mark.long
def test_tls_trusts_the_authority_that_is_named_and_no_other() -> None:
    authority = Authority()
    with porch(secured(authority)) as (heard, port):
        target = f"127.0.0.1:{port}"
        with Client(target, token=SECRET, root_certificates=authority.certificate) as client:
            every_shape(client)
        assert heard.heard == [f"Bearer {SECRET}"] * 4
        for options in ({"tls": True}, {"root_certificates": Authority().certificate}):
            with Client(target, token=SECRET, **options) as client, pytest.raises(HummockCallError) as caught:
                client.status(timeout_s=5)
            assert caught.value.code is grpc.StatusCode.UNAVAILABLE
            assert "certificate" in describe(caught.value, target).lower()
        assert len(heard.heard) == 4


@pytest.mark.long
def test_a_client_in_the_clear_is_told_so_by_a_server_of_tls() -> None:
    with porch(secured(Authority())) as (heard, port), Client(f"127.0.0.1:{port}") as client:
        with pytest.raises(HummockCallError) as caught:
            client.send(admin_pb.GetStatusRequest(), timeout_s=5)
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert heard.heard == []


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_of_the_environment_holds_the_token(
    mark: str, secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret_file.write_text(f"{mark}{SECRET}\n", encoding="utf-8")
    monkeypatch.setenv("HUMMOCK_TOKEN_FILE", str(secret_file))
    with porch() as (heard, port):
        with Client(f"127.0.0.1:{port}") as client:
            client.status()
        # The other variable goes before it, and says by being empty that there is none.
        monkeypatch.setenv("HUMMOCK_TOKEN", "")
        with Client(f"127.0.0.1:{port}") as client:
            client.status()
    assert heard.heard == [f"Bearer {SECRET}", None]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o601])
def test_a_token_that_others_can_read_is_not_used(
    mode: int, secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret_file.chmod(mode)
    monkeypatch.setenv("HUMMOCK_TOKEN_FILE", str(secret_file))
    for make in (Client, AsyncClient):
        with pytest.raises(ValueError, match="chmod 600") as caught:
            make("127.0.0.1:1")
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "variable", ["HUMMOCK_TOKEN_FILE", "HUMMOCK_TLS_CA", "HUMMOCK_CLIENT_CERTIFICATE", "HUMMOCK_CLIENT_KEY"]
)
def test_a_file_that_is_not_there_is_named_with_its_variable(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "/nowhere/x")
    with pytest.raises(ValueError, match=f"{variable}: /nowhere/x cannot be read: No such file"):
        Client("127.0.0.1:1")


@pytest.mark.long
def test_the_environment_asks_for_tls_and_brings_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, clients = Authority(), Authority()
    own = clients.signed()
    for name, data in {"ca": authority.certificate, "own": own.certificate, "key": own.key}.items():
        (tmp_path / name).write_bytes(data)
    with porch(secured(authority, clients)) as (heard, port):
        target = f"127.0.0.1:{port}"
        monkeypatch.setenv("HUMMOCK_TLS_CA", str(tmp_path / "ca"))
        with Client(target, token=SECRET) as client, pytest.raises(HummockCallError):
            client.status(timeout_s=5)
        monkeypatch.setenv("HUMMOCK_CLIENT_CERTIFICATE", str(tmp_path / "own"))
        with pytest.raises(ValueError, match="go together"):
            Client(target)
        monkeypatch.setenv("HUMMOCK_CLIENT_KEY", str(tmp_path / "key"))
        with Client(target, token=SECRET) as client:
            client.status()
        # The command line's own channels do the same.
        with open_channel(target, resolve_access(target, token=SECRET)) as channel:
            unary: Any = channel.unary_unary("/hummock.v1.AdminService/GetStatus")
            assert unary(b"", timeout=20) == b""
            stream: Any = channel.stream_stream("/hummock.v1.ProjectService/ImportProject")
            assert list(stream(iter([b""]), timeout=20)) == [b""]
    assert heard.heard == [f"Bearer {SECRET}"] * 3


def test_a_certificate_of_ones_own_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    authority, clients = Authority(), Authority()
    own = clients.signed()
    with porch(secured(authority, clients)) as (heard, port):
        certificate = Certificate(own.certificate, own.key)
        with Client(
            f"127.0.0.1:{port}", token="", root_certificates=authority.certificate, certificate=certificate
        ) as client:
            client.status()
    assert heard.heard == [None]
    assert resolve_access("unix:/s", token="", certificate=None).credentials is None
