"""Sessions of an agent that starts what `hummock setup` wrote: the server over stdio and the hook."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from tests.mcp.conftest import Agent, agent, log, model, models_dir, project, target
from tests.service.running import free_port
from tests.setup.test_setting_up import home, read, server_in, setup

pytestmark = pytest.mark.long

__all__ = ["agent", "home", "log", "model", "models_dir", "project", "target"]


async def test_a_session_starts_from_what_was_written(
    home: Path, agent: Agent, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "shop/.git").mkdir(parents=True)
    assert setup("--agent", "claude-code", "--target", target, "--yes").exit_code == 0
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(home / "shop"))
    monkeypatch.delenv("HUMMOCK_PROJECT", raising=False)
    command = ("/usr/bin/env", "-u", "HUMMOCK_PROJECT", *server_in(home, "claude-code"))
    async with agent(command=command) as client:
        await client.call_tool("remember", {"text": "Indent with tabs, 用制表符缩进。"})
        assert "用制表符缩进" in str(await client.call_tool("search", {"query": "How do we indent, with tabs?"}))


@pytest.mark.timed
async def test_without_the_binary_an_agent_still_remembers_by_itself(
    home: Path, agent: Agent, models_dir: Path, model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Servers and hooks as written: the one starts the service, the other calls it over HTTP."""
    (home.parent / "my bin/hummock-hook").unlink()
    (home / "shop/.git").mkdir(parents=True)
    service = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("HUMMOCK_HTTP_PORT", str(free_port()))
    names = {"HUMMOCK_DATA": str(tmp_path / "data"), "HUMMOCK_MODELS": str(models_dir), "HUMMOCK_MODEL": model}
    for name, value in {**names, "CLAUDE_PROJECT_DIR": str(home / "shop"), "PATH": os.defpath}.items():
        monkeypatch.setenv(name, value)
    assert setup("--agent", "claude-code", "--target", service, "--yes").exit_code == 0
    monkeypatch.delenv("HUMMOCK_HTTP_PORT")
    (item,) = read(home / ".claude/settings.json")["hooks"]["UserPromptSubmit"]
    hook = shlex.split(item["hooks"][0]["command"])
    sent = {"session_id": "s", "cwd": str(home / "shop"), "transcript_path": None}

    def fire(name: str, **fields: str) -> str:
        event = json.dumps({"hook_event_name": name, **sent, **fields})
        done = subprocess.run(hook, input=event, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    command = ("/usr/bin/env", "-u", "HUMMOCK_PROJECT", *server_in(home, "claude-code"))
    try:
        async with agent(command=command) as client:
            await client.call_tool("remember", {"text": "Indent with tabs, 用制表符缩进。"})
            fire("SessionStart", source="startup")
            given = [fire("UserPromptSubmit", prompt="How do we indent, with tabs?") for _ in range(30)]
        # On busy cores an answer may be late. It is given once.
        assert sum("\\u7528\\u5236" in each for each in given) == 1
    finally:
        CliRunner().invoke(app, ["stop", "--data", str(tmp_path / "data")])
