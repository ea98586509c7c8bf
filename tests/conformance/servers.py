"""The servers of the conformance cases: four services, and fronts before the first one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc.aio

from bench import toy_models
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope
from tests.conformance.certificates import Authority, Signed
from tests.conformance.fronts import fronts, listening
from tests.service.running import free_port, in_process

CASES = Path(__file__).parent / "cases"
_DRAIN_S = 1.0


@contextmanager
def serving(directory: Path) -> Iterator[Path]:
    """All of them for as long as the block runs; gives the file that tells runners where they are."""
    models_dir = directory / "models"
    model = toy_models.build_tiny(models_dir).name
    path = directory / "hummock.sock"
    over_unix = {"HUMMOCK_UNIX_SOCKET": str(path)}
    authority = Authority()
    _, token = TokenFile(directory / "token").create("good", [Scope.parse("*:learn")], time.time())
    over_tls = _tls_settings(directory, "token", authority.signed())
    expired = _tls_settings(directory, "expired", authority.signed(expired=True))
    (directory / "ca.pem").write_bytes(authority.certificate)
    with (
        in_process(directory / "main", models_dir, model) as main,
        in_process(directory / "unix", models_dir, model, over_unix),
        in_process(directory / "token", models_dir, model, over_tls) as guarded,
        in_process(directory / "expired", models_dir, model, expired) as late,
        _fronts(main.target, authority) as ports,
    ):
        before = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        # TLS is for a name: the certificate's are localhost and 127.0.0.1. The first may stand for two addresses, and
        # gRPC tells of the one that it tried last: what is wrong with a certificate is asked where there is one.
        secure = {"tls": before.pop("tls"), "token": guarded.target}
        targets = {
            "main": main.target,
            "unix": f"unix://{path}",
            "down": f"127.0.0.1:{free_port()}",
            **before,
            **{name: f"localhost:{target.rpartition(':')[2]}" for name, target in secure.items()},
            "expired": f"127.0.0.1:{late.target.rpartition(':')[2]}",
        }
        told = {"cases": str(CASES), "ca": str(directory / "ca.pem"), "token": token, "targets": targets}
        file = directory / "conformance.json"
        file.write_text(json.dumps(told, indent=1), encoding="utf-8")
        yield file


@contextmanager
def _fronts(target: str, authority: Authority) -> Iterator[dict[str, int]]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fronts")
    thread.start()

    async def start() -> tuple[grpc.aio.Channel, list[grpc.aio.Server], dict[str, int]]:
        channel = grpc.aio.insecure_channel(target, options=[("grpc.max_receive_message_length", 16 << 20)])
        all_of_them = fronts(channel)
        started = {name: await listening(front, _credentials(name, authority)) for name, front in all_of_them.items()}
        return channel, [server for server, _ in started.values()], {name: port for name, (_, port) in started.items()}

    async def stop() -> None:
        for server in servers:
            await server.stop(_DRAIN_S)
        await channel.close()

    channel, servers, ports = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield ports
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _credentials(name: str, authority: Authority) -> grpc.ServerCredentials | None:
    if name != "tls":
        return None
    signed = authority.signed()
    return grpc.ssl_server_credentials([(signed.key, signed.certificate)])


def _tls_settings(directory: Path, name: str, signed: Signed) -> dict[str, str]:
    """Settings of a service that speaks TLS."""
    files = {"HUMMOCK_TLS_CERTIFICATE": signed.certificate, "HUMMOCK_TLS_KEY": signed.key}
    for setting, data in files.items():
        (directory / f"{name}.{setting}.pem").write_bytes(data)
    return {setting: str(directory / f"{name}.{setting}.pem") for setting in files}
