"""`hummock mcp config`, and what `hummock mcp` says when it cannot start."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_client import DEFAULT_TARGET
from tests.mcp.conftest import Agent

COMMAND = [sys.executable, "-m", "hummock", "mcp", "--project", '还款 "2"']


def config(client: str, *more: str) -> str:
    done = CliRunner().invoke(app, ["mcp", "config", "--client", client, "--project", '还款 "2"', *more])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(autouse=True)
def default_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TARGET", DEFAULT_TARGET)


def entry_of(client: str, text: str) -> dict[str, Any]:
    if client == "codex":
        (servers,) = tomllib.loads(text).values()
    else:
        ((name, servers),) = json.loads(text).items()
        assert name == ("servers" if client == "vscode" else "mcpServers")
    assert list(servers) == ["hummock"]
    entry = servers["hummock"]
    assert isinstance(entry, dict)
    return entry


@pytest.mark.parametrize("client", ["claude", "cursor", "vscode", "codex"])
def test_the_snippet_starts_the_server(client: str) -> None:
    entry = entry_of(client, config(client))
    assert [entry["command"], *entry["args"]] == COMMAND
    assert entry.get("type") == ("stdio" if client == "vscode" else None)


def test_codex_reads_its_table_by_name() -> None:
    assert "mcp_servers" in tomllib.loads(config("codex"))


def test_a_target_of_its_own_is_part_of_the_snippet() -> None:
    assert entry_of("cursor", config("cursor", "--target", "localhost"))["args"][-2:] == ["--target", "localhost:7420"]


def test_an_agent_that_obeys_the_snippet_gets_the_tools(agent: Agent, target: str) -> None:
    entry = entry_of("claude", config("claude", "--target", target))

    async def session() -> bool:
        async with agent(command=(entry["command"], *entry["args"])) as client:
            return bool((await client.call_tool("search", {"query": "a"})).is_error)

    assert not asyncio.run(session())


def test_without_a_project_the_server_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUMMOCK_PROJECT", raising=False)
    done = CliRunner().invoke(app, ["mcp"])
    assert done.exit_code == 2
    assert "HUMMOCK_PROJECT" in done.stderr


def test_a_target_that_is_none_is_refused_at_once() -> None:
    done = CliRunner().invoke(app, ["mcp", "--project", "a", "--target", "host:port"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "host:port is no target" in done.stderr


def test_without_the_extra_the_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "mcp" or name.startswith(("mcp.", "hummock.mcp."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    done = CliRunner().invoke(app, ["mcp", "--project", "a"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "pip install 'hummock[mcp]'" in done.stderr


def test_ctrl_c_ends_the_server_at_once() -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
    }
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            print(json.dumps(hello), file=server.stdin, flush=True)
            assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "hummock"
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=30) == -signal.SIGINT
        finally:
            server.kill()
