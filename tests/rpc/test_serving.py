"""The server under load, on hang-up, on deadlines, at start and at stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from hummock.access.authenticator import Authenticator, Exposure
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope
from hummock.core.errors import StartError, Unavailable
from hummock.core.recall import Recalled, RecallQuery
from hummock.rpc.dispatch import InFlight
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.listening import TcpAddress, parse_address
from hummock.rpc.server import Access, Server
from hummock_client.v1.recall_pb2 import RecallRequest
from tests.rpc.edge import LOOPBACK, edge, one_worker, refused, use_cases
from tests.rpc.samples import recalled

pytestmark = pytest.mark.timed

RECALL = "ContextService/Recall"
SERVICES = (
    "hummock.v1.AdminService",
    "hummock.v1.ContextService",
    "hummock.v1.LearningService",
    "hummock.v1.MemoryService",
    "hummock.v1.ProjectService",
)


def request(text: str = "q") -> bytes:
    return RecallRequest(project="p", query_text=text).SerializeToString()


class SlowRecall:
    """A recall that holds its worker until it is released."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self.release = threading.Event()
        self.ran: list[str] = []

    def __call__(self, query: RecallQuery) -> Recalled:
        self.ran.append(query.text)
        self.started.release()
        self.release.wait()
        return recalled(query)


async def until(condition: Any) -> None:
    """Waits for a condition that another thread makes true."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 # the queue has no event to wait for, on purpose
            await asyncio.sleep(0.001)


async def test_overload_answers_at_once_with_a_time_to_retry() -> None:
    """V7 of the reliability notes."""
    slow = SlowRecall()
    async with edge(use_cases(recall=slow), workers=1, waiting_limit=1) as serving:
        try:
            calls = [asyncio.ensure_future(serving.raw(RECALL, request(str(index)))) for index in range(2)]
            await until(lambda: serving.lanes.read.load.waiting == 1)
            answer = await refused(serving.raw(RECALL, request("late")))
            health = health_pb2_grpc.HealthStub(serving.channel)
            assert (await health.Check(health_pb2.HealthCheckRequest())).status == 1
        finally:
            slow.release.set()
        await asyncio.gather(*calls)
    assert (answer.code, answer.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert answer.retry_after_s is not None
    assert answer.retry_after_s > 0
    assert "late" not in slow.ran


async def test_slow_writes_do_not_keep_reads_waiting() -> None:
    from hummock_client.v1 import context_service_pb2, memory_pb2

    release, started = threading.Event(), threading.Event()

    def learn(command: Any) -> Any:
        started.set()
        release.wait()
        raise AssertionError("its caller has gone")

    note = memory_pb2.Memory(kind=4, content="n")  # type: ignore[arg-type] # NOTE
    learn_bytes = context_service_pb2.LearnRequest(project="p", memories=[note]).SerializeToString()
    async with edge(use_cases(learn=learn), workers=1) as serving:
        try:
            stuck = asyncio.ensure_future(serving.raw("ContextService/Learn", learn_bytes))
            await until(started.is_set)
            await serving.raw(RECALL, request())
            stuck.cancel()
        finally:
            release.set()


@pytest.mark.parametrize("hangs_up", [True, False], ids=["hangs up", "deadline"])
async def test_the_work_of_a_caller_that_has_gone_never_runs(hangs_up: bool) -> None:
    """V6 of the reliability notes."""
    slow = SlowRecall()
    async with edge(use_cases(recall=slow), workers=1) as serving:
        try:
            first = asyncio.ensure_future(serving.raw(RECALL, request("first")))
            await until(lambda: slow.ran == ["first"])
            if hangs_up:
                gone = asyncio.ensure_future(serving.raw(RECALL, request("gone")))
                await until(lambda: serving.lanes.read.load.waiting == 1)
                gone.cancel()
            else:
                call: Any = serving.channel.unary_unary(f"/hummock.v1.{RECALL}")
                with pytest.raises(aio.AioRpcError) as caught:
                    await call(request("late"), timeout=0.05)
                assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await until(lambda: serving.lanes.read.load.waiting == 0)
        finally:
            slow.release.set()
        await first
        await serving.raw(RECALL, request("last"))
    assert slow.ran == ["first", "last"]


async def test_reflection_lists_every_service_and_needs_no_file_of_rules() -> None:
    async with edge() as serving:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(serving.channel)
        asked = (
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="hummock.v1.ContextService"),
        )
        listed, described = [reply async for reply in stub.ServerReflectionInfo(iter(asked))]
    names = {service.name for service in listed.list_services_response.service}
    assert names.issuperset({*SERVICES, "grpc.health.v1.Health"})
    files = [FileDescriptorProto.FromString(data) for data in described.file_descriptor_response.file_descriptor_proto]
    assert "hummock/v1/context_service.proto" in {file.name for file in files}
    assert "buf/validate/validate.proto" not in {file.name for file in files}


async def test_health_says_not_serving_until_the_server_opens() -> None:
    with ThreadPoolExecutor(1) as executor:
        lanes = one_worker(executor)
        server = await Server.start(use_cases(), lanes, LOOPBACK)
        async with aio.insecure_channel(str(server.address)) as channel:
            health = health_pb2_grpc.HealthStub(channel)

            async def said() -> set[int]:
                checks = [health_pb2.HealthCheckRequest(service=name) for name in ("", *SERVICES)]
                return {(await health.Check(check)).status for check in checks}

            assert await said() == {health_pb2.HealthCheckResponse.NOT_SERVING}
            await server.open()
            assert await said() == {health_pb2.HealthCheckResponse.SERVING}
        await server.stop(0)


@pytest.mark.long
async def test_health_says_not_serving_when_the_server_drains() -> None:
    async with edge() as serving:
        health = health_pb2_grpc.HealthStub(serving.channel)
        watch: Any = health.Watch(health_pb2.HealthCheckRequest()).__aiter__()
        assert (await anext(watch)).status == health_pb2.HealthCheckResponse.SERVING
        stopping = asyncio.ensure_future(serving.server.stop(600))
        assert (await anext(watch)).status == health_pb2.HealthCheckResponse.NOT_SERVING
        # Those who watch health for ever do not keep the server from stopping.
        async with asyncio.timeout(60):
            await stopping


async def test_a_call_that_runs_when_the_server_stops_is_answered() -> None:
    """V11 of the reliability notes."""

    async def refused_or_late(serving: Any) -> aio.AioRpcError:
        async with aio.insecure_channel(str(serving.server.address)) as channel:
            call: Any = channel.unary_unary(f"/hummock.v1.{RECALL}")
            with pytest.raises(aio.AioRpcError) as caught:
                await call(request())
        return caught.value

    slow = SlowRecall()
    async with edge(use_cases(recall=slow), workers=1) as serving:
        running = asyncio.ensure_future(serving.raw(RECALL, request()))
        await until(lambda: len(slow.ran) == 1)
        stopping = asyncio.ensure_future(serving.server.stop(600))
        assert (await refused_or_late(serving)).code() is grpc.StatusCode.UNAVAILABLE
        slow.release.set()
        assert await running
        await stopping


async def test_a_unix_socket_serves_its_owner_alone_and_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "h.sock"
    async with edge(address=f"unix:{path}") as serving:
        assert path.stat().st_mode & 0o777 == 0o600
        assert await serving.raw(RECALL, request())
    assert not path.exists()


def start_error(address: str, **options: Any) -> str:
    async def run() -> str:
        with ThreadPoolExecutor(1) as executor:
            lanes = one_worker(executor)
            with pytest.raises(StartError) as caught:
                await Server.start(use_cases(), lanes, address, **options)
        return str(caught.value)

    return asyncio.run(run())


def test_a_port_in_use_is_named_with_the_fix() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is taken" in start_error(f"127.0.0.1:{port}")


async def test_a_second_server_on_the_port_of_the_first_is_refused() -> None:
    async with edge() as first:
        with pytest.raises(StartError, match="is taken by another process"):
            await Server.start(use_cases(), first.lanes, str(first.server.address))


async def test_a_second_server_on_a_unix_socket_is_refused_and_a_dead_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "h.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with edge(address=f"unix:{path}") as first:
        with pytest.raises(StartError, match="is taken by another process"):
            await Server.start(use_cases(), first.lanes, f"unix:{path}")
        assert await first.raw(RECALL, request())


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.7"])  # noqa: S104 # refused, that is the point
def test_plaintext_that_other_machines_can_reach_is_refused_with_the_reason(host: str) -> None:
    """X11 of the reliability notes."""
    assert "is not encrypted" in start_error(f"{host}:0")


async def test_plaintext_for_other_machines_can_be_allowed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        TokenFile(tmp_path).create("a", [Scope.parse("*:read")], now_s=1)
        interceptor = Interceptor(Authenticator(tmp_path, Exposure.NETWORK))
        access = Access(interceptor=interceptor, allow_remote_plaintext=True)
        server = await Server.start(use_cases(), one_worker(executor), "0.0.0.0:0", access=access)
        assert isinstance(server.address, TcpAddress)
        assert server.address.port > 0
        await server.stop(0)


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":1", "h:70000", "h:-1", "h:x", "unix:"])
def test_what_is_no_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(StartError, match=r"write (host:port|unix:)"):
        parse_address(address)


@pytest.mark.parametrize("path", ["/nowhere/h.sock", "/tmp/" + "x" * 200, "/tmp"])  # noqa: S108 # nothing is written
def test_a_socket_path_that_cannot_be_used_is_refused(path: str) -> None:
    assert "/" in start_error(f"unix:{path}")


SCRIPT = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.server import Server, serve
from tests.rpc.edge import one_worker, use_cases

with ThreadPoolExecutor(1) as executor:
    lanes = one_worker(executor)
    asyncio.run(serve(Server.start(use_cases(), lanes, "127.0.0.1:0"),
                      warm_up=lambda address: print("warm", flush=True),
                      on_listening=lambda address: print(address, flush=True)))
print("closed", flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_the_process_in_order(number: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "warm\n"
        address = server.stdout.readline().strip()
        with grpc.insecure_channel(address) as channel:
            call: Any = channel.unary_unary(f"/hummock.v1.{RECALL}")
            assert call(request())
        server.send_signal(number)
        assert (server.stdout.read(), server.wait()) == ("closed\n", 0)


STUCK_SCRIPT = """
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.server import Server, serve
from tests.rpc.edge import one_worker, use_cases

def warm_up(address):
    print("stuck", flush=True)
    threading.Event().wait()

with ThreadPoolExecutor(1) as executor:
    lanes = one_worker(executor)
    asyncio.run(serve(Server.start(use_cases(), lanes, "127.0.0.1:0"), warm_up=warm_up))
print("closed", flush=True)
"""


@pytest.mark.long
def test_a_signal_ends_a_start_that_never_would() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", STUCK_SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "stuck\n"
        server.send_signal(signal.SIGTERM)
        assert (server.stdout.read(), server.wait()) == ("closed\n", 0)


FOREVER_S = 3600.0


def test_no_call_is_counted_while_none_is_let_in() -> None:
    """D9."""
    in_flight = InFlight()
    with pytest.raises(Unavailable), in_flight.counted():
        pytest.fail("it was let in")


async def test_a_stop_waits_until_every_caller_has_been_told() -> None:
    """D9."""
    in_flight = InFlight()
    with in_flight.telling():
        with in_flight.telling():
            told = asyncio.ensure_future(in_flight.told(FOREVER_S))
            await asyncio.sleep(0)
        # One has been told; the wait wakes, and goes on for the other.
        for _ in range(3):
            await asyncio.sleep(0)
        assert not told.done()
    await asyncio.wait_for(told, FOREVER_S)


async def test_who_is_never_told_is_waited_for_no_longer_than_said_and_nobody_else() -> None:
    """D9."""
    in_flight = InFlight()
    with in_flight.telling():
        await in_flight.told(0.0)
    with pytest.raises(RuntimeError, match="told it failed"), in_flight.telling():
        raise RuntimeError("told it failed")
    await in_flight.told(FOREVER_S)
