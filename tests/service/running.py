"""The whole service over a real socket: in a thread of this process, or as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import grpc

from hummock.access.tokens import TokenFile
from hummock.config import Settings, load_settings
from hummock.core.access import Scope
from hummock.observe.ledger import ledgers_with
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.server import Access, Server
from hummock.wiring.service import open_use_cases
from hummock_client.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.learning_service_pb2_grpc import LearningServiceStub
from hummock_client.v1.memory_service_pb2_grpc import MemoryServiceStub
from hummock_client.v1.project_service_pb2_grpc import ProjectServiceStub
from hummock_client.v1.session_service_pb2_grpc import SessionServiceStub
from hummock_tools.cli.background import SERVING_ON
from tests.service.methods import Admin, Context, Learning, Memory, Metadata, Project, Session
from tests.service.stores import store_of

_STOP_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Stubs:
    """The methods of each service over one channel to the target."""

    target: str
    channel: grpc.Channel
    token: str
    context: Context
    memory: Memory
    learning: Learning
    project: Project
    admin: Admin
    session: Session

    @classmethod
    def over(cls, target: str, channel: grpc.Channel, token: str = "") -> Stubs:
        """All of them over this channel, by whoever has this token."""
        sent: Metadata = (("authorization", f"Bearer {token}"),) if token else ()
        return cls(
            target=target,
            channel=channel,
            token=token,
            context=Context(ContextServiceStub(channel), sent),
            memory=Memory(MemoryServiceStub(channel), sent),
            learning=Learning(LearningServiceStub(channel), sent),
            project=Project(ProjectServiceStub(channel), sent),
            admin=Admin(AdminServiceStub(channel), sent),
            session=Session(SessionServiceStub(channel), sent),
        )


@contextmanager
def connected(target: str) -> Iterator[Stubs]:
    """Stubs of the service at the target, which listens already."""
    with grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", 16 << 20)]) as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
        yield Stubs.over(target, channel)


def settings(data_dir: Path, models_dir: Path, model: str, **more: object) -> Settings:
    """Settings that depend on nothing of this machine."""
    flags = {"data_dir": data_dir, "models_dir": models_dir, "model": model, "port": 0, "workers": 2, **more}
    flags.setdefault("store", store_of(data_dir))
    return load_settings(flags, environ={}, directory=data_dir)


@contextmanager
def in_thread(chosen: Settings) -> Iterator[Stubs]:
    """The service in a thread of this process; stopped, and its directory released, at exit."""
    with (
        ledgers_with(chosen.readers) as ledgers,
        open_use_cases(chosen, say=lambda line: None) as use_cases,
        ThreadPoolExecutor(chosen.workers) as reads,
        ThreadPoolExecutor(8) as writes,
        ThreadPoolExecutor(2) as streams,
    ):
        lanes = Lanes(
            read=AdmissionQueue(reads, workers=chosen.workers),
            write=AdmissionQueue(writes, workers=8),
            stream=AdmissionQueue(streams, workers=2),
        )
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="service")
        thread.start()

        async def start() -> Server:
            server = await Server.start(
                use_cases,
                lanes,
                f"{chosen.host}:{chosen.port}",
                access=Access(interceptor=Interceptor(meters=(ledgers.own,))),
                activity=lambda: ledgers.activity(use_cases.load(), lanes.load(), 0),
            )
            await server.open()
            return server

        server = asyncio.run_coroutine_threadsafe(start(), loop).result()
        try:
            with connected(str(server.address)) as stubs:
                yield stubs
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(drain_s=5), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def free_port() -> int:
    """One on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class NotStarted(Exception):
    """The service ended before it served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The service as a process."""

    popen: subprocess.Popen[str]
    target: str

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()

    def stop(self) -> None:
        """Lets it finish what it does, and returns when it has ended."""
        self.popen.terminate()
        self.popen.wait(_STOP_S)


@contextmanager
def in_process(
    data_dir: Path,
    models_dir: Path,
    model: str,
    environ: Mapping[str, str] | None = None,
    stderr: IO[str] | None = None,
    port: int = 0,
) -> Iterator[Process]:
    """`hummock serve`, on a free port unless one is named; ended at exit if it still runs. Its log goes to `stderr`."""
    command = [sys.executable, "-m", "hummock", "serve", "--port", str(port)]
    names = {"HUMMOCK_DATA": str(data_dir), "HUMMOCK_MODELS": str(models_dir), "HUMMOCK_MODEL": model}
    dsn = store_of(data_dir)
    store = {} if dsn is None else {"HUMMOCK_STORE": dsn}
    env = {**os.environ, **names, **store, **(environ or {})}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True) as popen:
        try:
            assert popen.stdout is not None
            line = popen.stdout.readline()
            if not line.startswith(SERVING_ON):
                raise NotStarted("the service did not start; its log says why")
            yield Process(popen=popen, target=line.removeprefix(SERVING_ON).strip())
        finally:
            popen.kill()


@contextmanager
def calling_by_token(
    data_dir: Path, models_dir: Path, model: str, scopes: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> Iterator[dict[str, Stubs]]:
    """The service as a process, and stubs by the names of their tokens; each token has one scope."""
    file = TokenFile(data_dir)
    made = {name: file.create(name, [Scope.parse(scope)], now_s=1.0)[1] for name, scope in scopes.items()}
    with in_process(data_dir, models_dir, model, environ) as process, connected(process.target) as stubs:
        yield {name: Stubs.over(process.target, stubs.channel, text) for name, text in made.items()}
