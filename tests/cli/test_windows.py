"""The command line, the clients, MCP and hooks load and answer without what Windows lacks; there is no Windows here.

A child process takes those modules and names away before it loads the project, and says it is Windows.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.cancelling import INITIALIZED
from tests.mcp.conftest import HELLO

ROOT = Path(__file__).parents[2]
MODULES = (
    *("crypt", "curses", "fcntl", "grp", "nis", "ossaudiodev", "posix", "pty", "pwd", "readline", "resource"),
    *("spwd", "syslog", "termios", "tty"),
)
"""Modules of Python's library that Windows lacks."""
NAMES = {
    "os": (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "forkpty", "fchown", "chown", "getgid"),
        *("geteuid", "getgroups", "getloadavg", "getpgid", "getuid", "killpg", "mkfifo", "nice", "openpty", "pread"),
        *("pwrite", "sched_getaffinity", "sched_yield", "setsid", "sysconf", "statvfs", "uname", "wait3", "wait4"),
    ),
    "signal": (
        *("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGUSR1", "SIGUSR2"),
        *("alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer", "sigwait"),
    ),
    "socket": ("AF_UNIX", "send_fds", "recv_fds"),
    "time": ("tzset",),
}
"""Names that Windows lacks in modules that it has, without those that asyncio needs here."""
SOURCES = sorted(
    path
    for folder in ("clients/python/hummock_client", "clients/python/hummock_tools", "service/hummock/cli")
    for path in (ROOT / folder).rglob("*.py")
    if path.parent.name != "v1"
)
CLIENTS = [path for path in SOURCES if path.is_relative_to(ROOT / "clients")]
# What others wrote is loaded first, as it is on this system. The modules that they took from it stay whole for them.
WINDOWS = f"""
import asyncio, functools, importlib, os, pathlib, select, signal, socket, subprocess, sys, tempfile, time, webbrowser
import grpc, grpc.aio, grpc_status.rpc_status, mcp, mcp.server.lowlevel, mcp.server.stdio, rich.progress, typer, uvicorn
import importlib.metadata, starlette.applications, starlette.testclient, typer.testing
# Windows has pairs of sockets too, of loopback.
socket.socketpair = functools.partial(socket.socketpair, socket.AF_UNIX)
sys.modules.update(dict.fromkeys({MODULES!r}))
for module, names in {NAMES!r}.items():
    for name in names:
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)
sys.platform = "win32"
"""
HUMMOCK = "from hummock.cli.main import main\nsys.argv = ['hummock', *sys.argv[1:]]\nmain()"


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}


def windows(program: str, home: Path, *words: str, sent: str = "") -> subprocess.CompletedProcess[str]:
    """A Python program that finds itself on Windows."""
    return subprocess.run(
        [sys.executable, "-c", WINDOWS + program, *words],
        cwd=home,
        env=environ(home),
        input=sent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`hummock` on Windows."""
    return windows(HUMMOCK, home, *words)


@pytest.mark.parametrize("path", CLIENTS, ids=lambda path: str(path.relative_to(ROOT / "clients/python")))
def test_no_client_imports_a_module_that_windows_lacks(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported}.isdisjoint(MODULES)


@pytest.mark.long
def test_every_module_of_the_clients_and_of_the_command_line_loads(tmp_path: Path) -> None:
    names = [
        ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES
        for base in (ROOT / "clients/python", ROOT / "service")
        if path.is_relative_to(base) and "adapters" not in path.parts and path.name != "__main__.py"
    ]
    assert {"hummock_client.client", "hummock_tools.mcp.serving", "hummock_tools.hook.main"} <= set(names)
    loaded = windows("for name in sys.argv[1:]: importlib.import_module(name)", tmp_path, *names)
    assert loaded.returncode == 0, loaded.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [["serve"], ["serve", "--port", "0"], ["demo"], ["service", "install"], ["stop"], ["tokens", "ls"]],
    ids=lambda words: " ".join(words),
)
def test_the_service_says_where_it_runs(tmp_path: Path, words: list[str]) -> None:
    refused = command(tmp_path, *words)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith("error: the service runs on Linux and macOS; on Windows start it in WSL or in the image")


@pytest.mark.long
def test_setup_writes_what_windows_can_start(tmp_path: Path) -> None:
    hook = tmp_path / ".local/bin/hummock-hook"
    agents = [word for name in ("claude-code", "codex", "vscode", "zed") for word in ("--agent", name)]
    done = command(tmp_path, "setup", "--yes", "--json", *agents)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert any("start none: the service runs on Linux and macOS" in note for note in answer["notes"])
    assert not hook.exists()
    written = {str(Path(file["path"]).relative_to(tmp_path)) for file in answer["files"]}
    assert {"AppData/Roaming/Code/User/mcp.json", ".claude.json", ".codex/config.toml"} <= written
    server = json.loads((tmp_path / ".claude.json").read_text(encoding="utf-8"))["mcpServers"]["hummock"]
    assert server["command"] == sys.executable
    hooks = json.loads((tmp_path / ".claude/settings.json").read_text(encoding="utf-8"))["hooks"]
    assert "env " not in hooks["Stop"][0]["hooks"][0]["command"]
    assert command(tmp_path, "setup", "--undo", "--yes").returncode == 0
    assert not (tmp_path / ".claude.json").exists()


@pytest.mark.long
def test_an_agent_gets_the_tools_and_the_reason_why_none_answers(tmp_path: Path) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    called = {"name": "search", "arguments": {"query": "lamp"}}
    messages = [HELLO, INITIALIZED, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": called}]
    started = [sys.executable, "-c", WINDOWS + HUMMOCK, "mcp", "--folder", str(tmp_path / "shop")]
    pipe = subprocess.PIPE
    with subprocess.Popen(started, cwd=tmp_path, env=environ(tmp_path), stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for each in messages:
            print(json.dumps(each), file=server.stdin, flush=True)
        hello, answer = json.loads(server.stdout.readline()), json.loads(server.stdout.readline())
        server.stdin.close()
    assert server.returncode == 0
    assert hello["result"]["serverInfo"]["name"] == "hummock"
    assert answer["result"]["isError"]
    assert "on Windows start it in WSL" in str(answer["result"]["content"])


@pytest.mark.long
def test_a_hook_answers_an_event(tmp_path: Path) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(tmp_path), "prompt": "lamp?"}
    done = windows("from hummock_tools.hook.main import main\nmain()", tmp_path, sent=json.dumps(event))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (line,) = (tmp_path / ".local/state/hummock/hook/hook.log").read_text(encoding="utf-8").splitlines()
    assert " prompt " in line
    assert "UNAVAILABLE" in line


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["recall", "--project", "p", "lamp"], "is `hummock serve` running?"),
        (["recall", "--project", "p", "--target", "unix:/s", "lamp"], "a socket, which Windows has not"),
        (["index", ".", "--project", "p"], "on Windows do this in WSL"),
    ],
    ids=["no service", "a socket", "a folder"],
)
def test_commands_of_clients_end_with_a_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    done = command(tmp_path, *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_file_with_a_token_is_read_whatever_its_mode_says(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n", encoding="utf-8")
    (tmp_path / "token").chmod(0o644)
    program = """
os.environ["HUMMOCK_TOKEN_FILE"] = sys.argv[1]
from hummock_client.access import resolve_access
print(*resolve_access("127.0.0.1:7420").metadata)
"""
    done = windows(program, tmp_path, str(tmp_path / "token"))
    assert "Bearer secret" in done.stdout, done.stderr
