"""Limits on what strangers on this machine can make HTTP hold, and for how long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import h11
import pytest
import uvicorn

from hummock.access.authenticator import Authenticator, Exposure
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.listening import parse_address
from tests.service.running import Stubs
from tests.service.test_json_http import head, post

pytestmark = [pytest.mark.long, pytest.mark.timed, pytest.mark.storeless]

local_http = pytest.importorskip("hummock.local_http")
json_http = pytest.importorskip("hummock.rpc.json_http")


@pytest.fixture
def port(service: Stubs) -> Iterator[int]:
    with closing(json_http.JsonHttp("127.0.0.1", 0)) as served:
        served.start(parse_address(service.target))
        yield served.port


def is_closed(connection: socket.socket) -> bool:
    """Waits until the other end closes it."""
    with suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return True


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """Serves an application, and gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(local_http.config_of(app, 1, lifespan="off"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def connected(port: int) -> socket.socket:
    """A connection to it."""
    return socket.create_connection(("127.0.0.1", port), timeout=30)


@pytest.mark.parametrize("sent", [b"", b"POST / HT", b"HEAD", b"HEAD ", b"AGAIN", b"BEHIND"])
def test_a_request_that_does_not_go_on_is_closed(monkeypatch: pytest.MonkeyPatch, port: int, sent: bytes) -> None:
    """The request stops before its head, in it, before its body, in it, or after an earlier one of the connection."""
    monkeypatch.setattr(local_http, "_WITHIN_S", {h11.IDLE: 0.2, h11.SEND_BODY: 0.2})
    kept = head(port, 2, Connection=b"keep-alive") + b"{}"
    texts = {b"HEAD": head(port, 100), b"HEAD ": head(port, 100) + b'{"a', b"AGAIN": kept}
    texts[b"BEHIND"] = kept + head(port, 100) + b"ab"
    with connected(port) as connection:
        connection.sendall(texts.get(sent, sent))
        if sent == b"AGAIN":
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            connection.sendall(b"POST / HT")
        assert is_closed(connection)


def test_one_more_connection_takes_the_place_of_one_that_keeps_silent(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setattr(local_http, "MOST_CONNECTIONS", 4)
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(port)) for _ in range(9)]
        assert post(port, "AdminService/GetStatus", {})[0] == 200
        assert all(is_closed(connection) for connection in silent[:5])


def test_a_body_behind_another_request_gives_way_too(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """The body begins when the first request is answered."""
    monkeypatch.setattr(local_http, "MOST_CONNECTIONS", 3)
    two = head(port, 2, Connection=b"keep-alive") + b"{}" + head(port, 100) + b"ab"
    with ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(connected(port))
            connection.sendall(two)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert post(port, "AdminService/GetStatus", {})[0] == 200


def test_streams_give_way_last_and_calls_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_http, "MOST_CONNECTIONS", 3)
    let_go = Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        is_call = scope["method"] == "POST"
        await receive()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        if is_call:
            await asyncio.to_thread(let_go.wait, 10)
            await send({"type": "http.response.body", "body": b"ended"})
        elif scope["path"] == "/stream":
            await receive()
        else:
            await send({"type": "http.response.body"})

    def asked(start: bytes) -> socket.socket:
        connection = stack.enter_context(connected(port))
        connection.sendall(start + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while b"begun" not in answer:
            part = connection.recv(65536)
            assert part, answer
            answer += part
        return connection

    with ExitStack() as stack, serving(app) as port:
        call = asked(b"POST /")
        old, young = asked(b"GET /stream"), asked(b"GET /stream")
        idle = asked(b"GET /")
        assert is_closed(old)
        other = asked(b"GET /stream")
        assert is_closed(idle)
        asked(b"GET /")
        assert is_closed(young)
        let_go.set()
        assert b"ended" in call.recv(65536)
        other.close()


def test_a_connection_goes_on_behind_an_answer_that_did_not_wait_for_the_body(port: int) -> None:
    """The rest of the body is passed over, in however many pieces it comes."""
    length = 60_000
    wrong = head(port, length, Connection=b"keep-alive", Host=b"elsewhere")
    with connected(port) as connection:
        connection.sendall(wrong + b"x" * 10)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)
        assert b" 403 " in answer
        for size in (10, 30_000, length - 30_020):
            connection.sendall(b"x" * size)
            Event().wait(0.05)  # so that it is read by itself
        connection.sendall(head(port, 2) + b"{}")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_body_that_comes_steadily_has_time_and_one_that_does_not_is_told(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setattr(local_http, "_WITHIN_S", {h11.IDLE: 5.0, h11.SEND_BODY: 0.5})
    monkeypatch.setattr(local_http, "_BODY_BYTES_A_S", 50)

    def sent(*parts: bytes) -> bytes:
        with connected(port) as connection:
            connection.sendall(head(port, 100))
            for part in parts:
                with suppress(OSError):
                    connection.sendall(part)
                Event().wait(0.1)
            with suppress(ConnectionResetError):
                return connection.recv(65536)
            return b""

    whole = b"{}".ljust(100)
    assert sent(*(whole[at : at + 10] for at in range(0, 100, 10))).startswith(b"HTTP/1.1 200")
    assert sent(whole[:10]).startswith(b"HTTP/1.1 408")
    assert sent(*(whole[at : at + 1] for at in range(5))).startswith(b"HTTP/1.1 408")
    monkeypatch.setattr(local_http, "MOST_BODY_S", 0.7)
    assert not sent(*(whole[at : at + 10] for at in range(0, 100, 10))).startswith(b"HTTP/1.1 200")


def test_the_token_is_looked_at_before_the_body(service: Stubs, tmp_path: Path) -> None:
    """X11: also where the body never comes."""
    _, text = TokenFile(tmp_path).create("t", [Scope.parse("*:read")], now_s=1.0)
    interceptor = Interceptor(Authenticator(tmp_path, Exposure.OWNER))
    with closing(json_http.JsonHttp("127.0.0.1", 0, interceptor=interceptor)) as served:
        served.start(parse_address(service.target))
        for token in (None, b"Bearer x", b"Bearer \xff", b"Basic x"):
            headers = {} if token is None else {"Authorization": token}
            with connected(served.port) as connection:
                connection.sendall(head(served.port, 8_000_000, **headers))
                assert b" 401 " in connection.recv(65536).partition(b"\r\n")[0]
        status, error = post(served.port, "AdminService/GetStatus", {})
        refused = status, error["code"], error["details"][0]["debug"]["reason"]
        assert refused == (401, "unauthenticated", "TOKEN_INVALID")
        assert post(served.port, "AdminService/GetStatus", {}, Authorization=f"Bearer {text}")[0] == 200


def test_bodies_together_have_room_for_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones that do not end leave no room for another, and do not keep a small one out."""
    monkeypatch.setattr(local_http, "BODIES_BYTES", 100)
    bodies = local_http.Bodies()

    async def read(*parts: bytes, ends: bool = True) -> int:
        left = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        if ends:
            left[-1]["more_body"] = False

        async def receive() -> Any:
            if left:
                return left.pop(0)
            await asyncio.Event().wait()

        async with bodies.whole(receive) as body:
            return len(body)

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            stuck = [tasks.create_task(read(b"x" * 48, ends=False)) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(local_http.BodyRefused) as refused:
                await read(b"x" * 48)
            assert refused.value.http_status == 429
            assert await read(b"x" * 10, b"x" * 10) == 20
            for task in stuck:
                task.cancel()
        assert await read(b"x" * 60, b"x" * 39) == 99

    asyncio.run(run())
