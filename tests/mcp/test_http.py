"""Streamable HTTP: the SDK's own client over a real socket, and who is turned away; calls that are cancelled."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult
from starlette.testclient import TestClient
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_tools.cli.mcp import SERVING_MCP_ON
from hummock_tools.mcp import streamable_http
from tests.mcp.cancelling import ENDINGS, over_http, over_stdio
from tests.mcp.conftest import HELLO

pytestmark = [pytest.mark.long, pytest.mark.timed]

COMMAND = (sys.executable, "-m", "hummock", "mcp", "--transport", "http", "--no-serve")
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture
def server(target: str, project: str) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "HUMMOCK_TARGET": target, "HUMMOCK_PROJECT": project}
    with subprocess.Popen(
        [*COMMAND, "--port", "0"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def url(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line.startswith(f"{SERVING_MCP_ON}http://127.0.0.1:")
    return line.removeprefix(SERVING_MCP_ON).strip()


def ask(url: str, talk: Callable[[Client], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        async with Client(url) as client:
            return await talk(client)

    return asyncio.run(session())


def posted(url: str, **headers: str) -> int:
    """The status of a first message with these headers."""
    request = Request(url, json.dumps(HELLO).encode(), {**JSON, **headers})  # noqa: S310 - http, and our own
    try:
        with urlopen(request) as answer:  # noqa: S310
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_the_tools_answer_over_http_as_over_a_pipe(url: str) -> None:
    async def talk(client: Client) -> tuple[list[str], CallToolResult, CallToolResult, CallToolResult]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        noted = await client.call_tool("remember", {"text": "结算页的 parseDate 只接受 ISO 8601"})
        found = await client.call_tool("search", {"query": "parseDate", "topK": 1})
        return tools, noted, found, await client.call_tool("search", {"query": "parseDate", "limit": 1})

    tools, noted, found, refused = ask(url, talk)
    assert tools == ["search", "read_memory", "recall_context", "remember", "forget"]
    assert [each["id"] for each in found.structured_content["results"]] == [noted.structured_content["id"]]
    assert refused.is_error


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_a_page_whose_name_leads_to_this_machine_is_turned_away(url: str, headers: dict[str, str], status: int) -> None:
    assert posted(url, **headers) == status


def test_what_is_no_message_is_refused_with_its_ids_over_http_too(url: str) -> None:
    bodies: tuple[tuple[str, list[object]], ...] = (
        ('{"jsonrpc": "2.0", "id": 7}', [7]),
        ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', [None]),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', [None]),
        ('{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"a": ' + "[" * 300 + "]" * 300 + "}}", [5]),
        ('[{"jsonrpc": "2.0", "id": 5, "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "ping"}]', [5, "b"]),
        ("{", [None]),
    )
    for body, ids in bodies:
        request = Request(url, body.encode(), JSON)  # noqa: S310 - http, and our own
        with pytest.raises(HTTPError) as refused, urlopen(request):  # noqa: S310
            pass
        with refused.value as answer:
            said = json.load(answer)
        assert answer.code == 400
        assert [each["id"] for each in (said if isinstance(said, list) else [said])] == ids


def test_half_a_character_in_an_argument_is_replaced_over_http_too(url: str) -> None:
    with urlopen(Request(url, json.dumps(HELLO).encode(), JSON)) as answer:  # noqa: S310 - http, and our own
        session = answer.headers["mcp-session-id"]
    arguments = '{"text": "half a unicorn \\ud83e"}'
    body = f'{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"remember","arguments":{arguments}}}}}'
    request = Request(url, body.encode(), {**JSON, "mcp-session-id": session})  # noqa: S310
    with urlopen(request) as answer:  # noqa: S310
        (said,) = (line for line in answer.read().decode().splitlines() if line.startswith("data: {"))
    result = json.loads(said.removeprefix("data: "))
    assert (result["id"], result["result"]["structuredContent"]["status"]) == (5, "created")


def test_sessions_are_few_and_end_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable_http, "MOST_SESSIONS", 2)
    monkeypatch.setattr(streamable_http, "SESSION_IDLE_S", 0.3)
    served = streamable_http.app_of(Server("of a test"), ("127.0.0.1",))
    with TestClient(served, base_url="http://127.0.0.1") as client:
        begun = [client.post("/mcp", json=HELLO, headers=JSON).status_code for _ in range(3)]
        assert begun == [200, 200, 503]
        deadline_s = time.monotonic() + 10
        while client.post("/mcp", json=HELLO, headers=JSON).status_code != 200:
            assert time.monotonic() < deadline_s


def test_a_page_of_this_very_address_may_call(url: str) -> None:
    assert posted(url, origin=url.removesuffix("/mcp")) == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order_with_a_client_there(server: subprocess.Popen[str], url: str, number: signal.Signals) -> None:
    async def talk(client: Client) -> int:
        await client.list_tools()
        server.send_signal(number)
        return await asyncio.to_thread(server.wait, 30)

    assert ask(url, talk) == 0
    assert server.stderr is not None
    assert server.stderr.read() == "ended\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.com", "::"])  # noqa: S104 - what is refused
def test_an_address_that_others_can_reach_is_refused_with_what_to_do_instead(host: str) -> None:
    done = CliRunner().invoke(app, ["mcp", "--project", "a", "--transport", "http", "--host", host, "--no-serve"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"error: {host} can be reached by other machines" in done.stderr
    assert "ssh -L" in done.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(app, ["mcp", "--project", "a", "--transport", "http", "--port", port, "--no-serve"])
    assert done.exit_code == 1
    assert f"error: 127.0.0.1:{port}: Address already in use" in done.stderr


NO_PAUSE = (0.0,)


@pytest.fixture
def _called(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setenv("HUMMOCK_TARGET", target)


@pytest.mark.usefixtures("_called")
@pytest.mark.parametrize("ending", ENDINGS)
async def test_all_but_the_cancelled_are_answered_over_a_pipe_and_the_process_ends(ending: str) -> None:
    rng = Random(ending)  # noqa: S311 - to be repeated, not to be secret
    assert await over_stdio(rng, 8, NO_PAUSE, ending) == []


@pytest.mark.usefixtures("_called")
async def test_all_but_the_cancelled_are_answered_over_http() -> None:
    rng = Random(6)  # noqa: S311 - to be repeated, not to be secret
    assert await over_http(rng, 12, NO_PAUSE) == []
