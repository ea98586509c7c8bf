"""Output of `hummock mcp install`, and of `hummock mcp` when it cannot start."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_client import DEFAULT_TARGET
from hummock_tools.setup.agents import AGENTS
from tests.mcp.conftest import HELLO, Agent

pytestmark = [pytest.mark.long, pytest.mark.timed]

COMMAND = [sys.executable, "-P", "-m", "hummock", "mcp", "--project", '还款 "2"']


def printed(client: str, *more: str) -> str:
    done = CliRunner().invoke(app, ["mcp", "install", "--print", "--client", client, "--project", '还款 "2"', *more])
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
        assert name == {"vscode": "servers", "zed": "context_servers", "opencode": "mcp"}.get(client, "mcpServers")
        servers = servers["servers"] if client == "opencode" else servers
    assert list(servers) == ["hummock"]
    entry = servers["hummock"]
    assert isinstance(entry, dict)
    return entry


@pytest.mark.parametrize("client", list(AGENTS))
def test_the_snippet_starts_the_server(client: str) -> None:
    entry = entry_of(client, printed(client))
    assert (entry["command"] if client == "opencode" else [entry["command"], *entry["args"]]) == COMMAND
    # VS Code passes over entries without a type in silence.
    assert "type" in entry or client != "vscode"


def test_codex_is_told_to_wait_longer_than_it_would() -> None:
    assert tomllib.loads(printed("codex"))["mcp_servers"]["hummock"]["startup_timeout_sec"] == 60


def test_a_repository_to_follow_is_in_the_snippet_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert entry_of("claude", printed("claude", "--index", "."))["args"][-2:] == ["--index", str(tmp_path.resolve())]


def test_a_target_of_its_own_is_part_of_the_snippet() -> None:
    assert entry_of("cursor", printed("cursor", "--target", "localhost"))["args"][-2:] == ["--target", "localhost:7420"]


async def test_an_agent_that_obeys_the_snippet_gets_the_tools(agent: Agent, target: str) -> None:
    entry = entry_of("claude", printed("claude", "--target", target))
    async with agent(command=(entry["command"], *entry["args"])) as client:
        assert not bool((await client.call_tool("search", {"query": "a"})).is_error)


@pytest.mark.parametrize("folder", [None, "/", "absent", "${workspaceFolder}"])
def test_outside_of_a_folder_the_server_says_how_to_name_a_project(
    folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HUMMOCK_PROJECT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["mcp", *(("--folder", folder) if folder else ())])
    assert done.exit_code == 2
    assert "HUMMOCK_PROJECT" in done.stderr


async def test_without_a_project_the_server_works_on_that_of_the_repository(
    agent: Agent, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    (tmp_path / "shop/src").mkdir()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tmp_path / "shop/src"))
    command = [*COMMAND[:-2], "--no-serve", "--target", target]
    async with agent(command=("env", "-u", "HUMMOCK_PROJECT", *command)) as client:
        await client.call_tool("remember", {"text": "Indent with tabs, 用制表符缩进。"})
    async with agent(command=(*command, "--project", "shop")) as client:
        assert "用制表符缩进" in str(await client.call_tool("search", {"query": "How do we indent, with tabs?"}))


async def test_in_the_repository_the_commands_answer_with_what_the_agent_remembered(
    agent: Agent, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "harbour/.git").mkdir(parents=True)
    (tmp_path / "harbour/src").mkdir()
    for name in ("HUMMOCK_PROJECT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HUMMOCK_TARGET", target)
    monkeypatch.chdir(tmp_path / "harbour/src")
    command = ("env", "-u", "HUMMOCK_PROJECT", *COMMAND[:-2], "--no-serve", "--target", target)
    async with agent(command=command) as client:
        await client.call_tool("remember", {"text": "A failed delivery is retried six times."})
    for question in (("recall", "failed delivery"), ("search", "failed delivery"), ("render", "failed delivery")):
        found = CliRunner().invoke(app, [*question, "--json"])
        assert "retried six times" in found.stdout, found.stderr
        empty = CliRunner().invoke(app, [*question, "--tag", "none"])
        assert empty.exit_code == 0
        assert "in project harbour\n" in empty.stderr


def test_a_target_that_is_none_is_refused_at_once() -> None:
    done = CliRunner().invoke(app, ["mcp", "--project", "a", "--target", "host:port"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "host:port is no target" in done.stderr


def test_without_the_extra_the_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "mcp" or name.startswith(("mcp.", "hummock_tools.mcp."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("hummock_tools.mcp.serving", raising=False)  # an earlier test may have loaded it
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    done = CliRunner().invoke(app, ["mcp", "--project", "a"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "pip install 'hummock[mcp]'" in done.stderr


def test_ctrl_c_ends_the_server_at_once() -> None:
    with subprocess.Popen([*COMMAND, "--no-serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            print(json.dumps(HELLO), file=server.stdin, flush=True)
            assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "hummock"
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=30) == -signal.SIGINT
        finally:
            server.kill()


def test_a_server_that_follows_a_repository_says_so_on_stderr(target: str, project: str, tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("def g():\n    return 2\n", encoding="utf-8")
    command = [*COMMAND[:-1], project, "--target", target, "--index", str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            assert server.stderr.readline().startswith("1 files: 1 code fragments, 0 domain entries; 1 sent")
            (tmp_path / "b.py").rename(root / "b.py")
            assert server.stderr.readline() == "1 file changed: 1 sent, 0 deleted, 1 unchanged\n"
            print(json.dumps(HELLO), file=server.stdin, flush=True)
            assert json.loads(server.stdout.readline())["id"] == 1
            server.stdin.close()
            assert (server.wait(timeout=30), server.stdout.read()) == (0, "")
        finally:
            server.kill()


def test_a_folder_to_follow_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    done = CliRunner().invoke(app, ["mcp", "--project", "a", "--index", str(tmp_path / "absent")])
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{tmp_path / 'absent'}: there is no such folder" in done.stderr
