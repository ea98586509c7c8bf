"""TLS and mTLS before a real server: who is refused before any handler, and files that are replaced while it runs."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from hummock.core.errors import StartError
from hummock.rpc.listening import TcpAddress
from hummock.rpc.server import Access
from hummock.rpc.tls import Tls, TlsFiles
from hummock_client.v1 import admin_service_pb2 as admin_pb
from tests.conformance.certificates import Authority, Signed
from tests.rpc import samples
from tests.rpc.edge import edge, use_cases

pytestmark = pytest.mark.timed

pytest.importorskip("cryptography")


def put(directory: Path, signed: Signed, client_ca: bytes | None = None) -> TlsFiles:
    """The files, replaced as programs that renew certificates do it."""
    named = {"tls.pem": signed.certificate, "tls.key": signed.key, "clients.pem": client_ca}
    for name, data in named.items():
        if data is not None:
            (directory / f"{name}.new").write_bytes(data)
            (directory / f"{name}.new").replace(directory / name)
    return TlsFiles(
        certificate=directory / "tls.pem",
        key=directory / "tls.key",
        client_ca=directory / "clients.pem" if client_ca else None,
    )


class Asked:
    """A status that counts who asks for it."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Any:
        self.times += 1
        return samples.status()


async def status_of(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.StatusCode:
    """Status of a call over a connection of its own."""
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
    channel = (
        aio.insecure_channel(address, options=options)
        if credentials is None
        else aio.secure_channel(address, credentials, options=options)
    )
    async with channel:
        call: Any = channel.unary_unary("/hummock.v1.AdminService/GetStatus")
        try:
            await call(admin_pb.GetStatusRequest().SerializeToString(), timeout=20)
        except aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def trusting(authority: Authority, own: Signed | None = None) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        authority.certificate, own.key if own else None, own.certificate if own else None
    )


async def test_only_who_trusts_its_authority_gets_through(tmp_path: Path) -> None:
    """X11."""
    authority, asked = Authority(), Asked()
    access = Access(tls=Tls(put(tmp_path, authority.signed())))
    async with edge(use_cases(status=asked), access=access) as serving:
        address = str(serving.server.address)
        assert await status_of(address, trusting(authority)) is grpc.StatusCode.OK
        assert await status_of(address, trusting(Authority())) is grpc.StatusCode.UNAVAILABLE
        assert await status_of(address, None) is grpc.StatusCode.UNAVAILABLE
    assert asked.times == 1


async def test_with_an_authority_of_clients_all_others_are_refused_before_any_handler(tmp_path: Path) -> None:
    """X11: none, of another authority, expired."""
    authority, clients, asked = Authority(), Authority(), Asked()
    access = Access(tls=Tls(put(tmp_path, authority.signed(), clients.certificate)))
    async with edge(use_cases(status=asked), access=access) as serving:
        address = str(serving.server.address)
        assert await status_of(address, trusting(authority, clients.signed())) is grpc.StatusCode.OK
        for wrong in (None, Authority().signed(), authority.signed(), clients.signed(expired=True)):
            assert await status_of(address, trusting(authority, wrong)) is grpc.StatusCode.UNAVAILABLE
    assert asked.times == 1


async def test_files_that_are_replaced_count_for_the_next_connection(tmp_path: Path) -> None:
    """X11: rotation without a restart, of the certificate and of the authority of clients."""
    first, second, clients, others = Authority(), Authority(), Authority(), Authority()
    access = Access(tls=Tls(put(tmp_path, first.signed(), clients.certificate)))
    async with edge(access=access) as serving:
        address = str(serving.server.address)
        assert await status_of(address, trusting(first, clients.signed())) is grpc.StatusCode.OK
        put(tmp_path, second.signed(), others.certificate)
        assert await status_of(address, trusting(second, others.signed())) is grpc.StatusCode.OK
        assert await status_of(address, trusting(first, others.signed())) is grpc.StatusCode.UNAVAILABLE
        assert await status_of(address, trusting(second, clients.signed())) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.long
@pytest.mark.parametrize("harm", ["half replaced", "garbage", "gone"])
async def test_files_that_do_not_fit_are_said_and_the_last_ones_go_on(tmp_path: Path, harm: str) -> None:
    authority, files = Authority(), put(tmp_path, (first := Authority()).signed())
    access = Access(tls=Tls(files))
    async with edge(access=access) as serving:
        address = str(serving.server.address)
        renewed = authority.signed()
        if harm == "gone":
            files.key.unlink()
        else:
            files.certificate.write_bytes(renewed.certificate if harm == "half replaced" else b"x")
        with capture_logs() as logs:
            assert await status_of(address, trusting(first)) is grpc.StatusCode.OK
        assert "tls_files_refused" in {each["event"] for each in logs}
        put(tmp_path, renewed)
        assert await status_of(address, trusting(authority)) is grpc.StatusCode.OK


async def test_a_unix_socket_stays_plain(tmp_path: Path) -> None:
    access = Access(tls=Tls(put(tmp_path, Authority().signed())))
    async with edge(access=access, address=f"unix:{tmp_path}/s") as serving:
        assert await status_of(str(serving.server.address), None) is grpc.StatusCode.OK


def test_files_that_are_wrong_at_the_start_are_named(tmp_path: Path) -> None:
    authority = Authority()
    files = put(tmp_path, authority.signed(), authority.certificate)
    Tls(files)
    files.key.write_bytes(authority.signed().key)
    with pytest.raises(StartError, match=r"tls_certificate .* and tls_key .*"):
        Tls(files)
    put(tmp_path, authority.signed(), b"nothing")
    with pytest.raises(StartError, match=r"tls_client_ca .* holds no certificate"):
        Tls(files)
    files.key.unlink()
    with pytest.raises(StartError, match=r"tls.key cannot be read: No such file"):
        Tls(files)


@pytest.mark.long
async def test_http_speaks_tls_too_and_takes_new_files(tmp_path: Path) -> None:
    json_http = pytest.importorskip("hummock.rpc.json_http")
    first, second, clients = Authority(), Authority(), Authority()

    def ask(port: int, authority: Authority, own: Signed | None) -> int:
        context = ssl.create_default_context(cadata=authority.certificate.decode())
        if own is not None:
            (tmp_path / "own.pem").write_bytes(own.certificate + own.key)
            context.load_cert_chain(tmp_path / "own.pem")
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
        with closing(connection):
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/hummock.v1.AdminService/GetStatus", json.dumps({}), headers)
            return connection.getresponse().status

    def check(address: TcpAddress) -> None:
        tls = Tls(put(tmp_path, first.signed(), clients.certificate))
        with closing(json_http.JsonHttp("127.0.0.1", 0, tls=tls)) as served:
            served.start(address)
            assert (served.url, ask(served.port, first, clients.signed())) == (f"https://127.0.0.1:{served.port}", 200)
            for authority, own in ((second, clients.signed()), (first, None), (first, Authority().signed())):
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    ask(served.port, authority, own)
            put(tmp_path, second.signed(), first.certificate)
            assert ask(served.port, second, first.signed()) == 200
            with pytest.raises((ssl.SSLError, ConnectionError)):
                ask(served.port, second, clients.signed())

    async with edge() as serving:
        assert isinstance(serving.server.address, TcpAddress)
        await asyncio.to_thread(check, serving.server.address)
