"""From the files of a release to the first recalled memory, as a newcomer goes: an empty home and no clone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.cli.test_release import build, clone
from tests.service.running import free_port
from tests.shared import MINILM, install_minilm

pytestmark = pytest.mark.long

__all__ = ["clone"]

_ROOT = Path(__file__).parents[2]
_LOCK = _ROOT / "service" / "locks" / "installers.txt"
_INSTALLERS = _ROOT / ".toolchain" / "installers"
_HAS_KERNELS = sys.platform == "linux" and os.uname().machine == "x86_64"
_NETWORK = re.compile(r"UV_|PIP_|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|(https?|all|no)_proxy", re.IGNORECASE)
_UNREACHABLE = re.compile(r"Failed to fetch|error sending request|dns error|Failed to establish a new connection")
_LIMIT_S = 600
KNOWN = "A failed delivery is retried six times, then parked in dead_letter."


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a user gets the command `hummock`.

    Attributes:
        install: Commands, run in the home. In them and in `hummock`, WHEEL is the wheel's file with the extras that
            docs/setup.md names, and PYTHON this Python.
        hummock: The command, as the user starts it.
        is_cached: Whether it lies in a cache, which `hummock setup` says.
    """

    install: Sequence[str]
    hummock: str
    is_cached: bool = False


WAYS = {
    "uv tool install": Way(install=["uv tool install --quiet --python PYTHON WHEEL"], hummock="hummock"),
    "uvx": Way(install=[], hummock="uvx --quiet --python PYTHON --from WHEEL hummock", is_cached=True),
    "pipx": Way(install=["pipx install --quiet --python PYTHON WHEEL"], hummock="hummock"),
    "pip": Way(install=["PYTHON -m venv tools", "tools/bin/pip install --quiet WHEEL"], hummock="../tools/bin/hummock"),
}


class Walk:
    """A user without anything: an empty home, a repository, and an agent that was started once."""

    def __init__(self, folder: Path, models: Path, tools: Path, wheel: str) -> None:
        self._wheel = wheel
        self.home = folder / "home"
        self.repository = self.home / "shop"
        (self.repository / ".git").mkdir(parents=True)
        (self.home / ".claude").mkdir()
        network = {name: value for name, value in os.environ.items() if _NETWORK.match(name)}
        path = os.pathsep.join([str(self.home / ".local/bin"), str(tools), os.defpath])
        named = {"HUMMOCK_MODELS": str(models), "HUMMOCK_MODEL": MINILM, "HUMMOCK_HTTP_PORT": str(free_port())}
        self.environ = {**network, "HOME": str(self.home), "PATH": path, **named}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take the time of a block."""
        began_s = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began_s

    def run(self, command: str, *arguments: str, folder: Path | None = None) -> str:
        """What a command prints on both streams, run in the repository, or in a folder."""
        known = {"WHEEL": self._wheel, "PYTHON": sys.executable}
        words = [known.get(word, word) for word in command.split()]
        done = subprocess.run(
            [*words, *arguments],
            cwd=folder or self.repository,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0 and _UNREACHABLE.search(done.stderr):
            pytest.skip(f"the packages of the service cannot be fetched: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def server(self) -> StdioServerParameters:
        """The server as the agent's file names it, started where the agent starts it."""
        entry = json.loads((self.home / ".claude.json").read_text(encoding="utf-8"))["mcpServers"]["hummock"]
        environ = {**self.environ, "CLAUDE_PROJECT_DIR": str(self.repository)}
        return StdioServerParameters(
            command=entry["command"], args=entry["args"], env=environ, cwd=str(self.repository)
        )


@pytest.fixture(scope="module")
def installers() -> Path:
    """The folder of the locked uv and pipx, in an environment of their own; skips, aloud, if they cannot be fetched."""
    installed = _INSTALLERS / _LOCK.name
    if not installed.is_file() or installed.read_bytes() != _LOCK.read_bytes():
        venv.create(_INSTALLERS, clear=True, with_pip=False, symlinks=True)
        python = str(_INSTALLERS / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--require-hashes"]
        done = subprocess.run(
            [*pip, "--only-binary", ":all:", "--requirement", str(_LOCK)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"uv and pipx cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
        installed.write_bytes(_LOCK.read_bytes())
    return _INSTALLERS / "bin"


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The wheel of a release with the extras that docs/setup.md names, as installers take it."""
    (extras,) = re.findall(r"uv tool install '.*(\[[a-z,]+\])'", (_ROOT / "docs/setup.md").read_text(encoding="utf-8"))
    dist = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert build(clone, dist, monkeypatch, "kernels" if _HAS_KERNELS else "python") == 0
    (built,) = dist.glob("*.whl")
    return f"{built}{extras}"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    if not install_minilm(tmp_path / "models"):
        pytest.skip(f"the walk needs the model {MINILM}; `make model` fetches it")
    return tmp_path / "models"


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_from_built_files_to_the_first_recalled_memory(
    way: Way, wheel: str, installers: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk = Walk(tmp_path, models, installers, wheel)
    try:
        with walk.step("install"):
            for command in way.install:
                walk.run(command, folder=walk.home)
        with walk.step("hummock setup"):
            said = walk.run(way.hummock, "setup", "--yes", "--target", f"127.0.0.1:{free_port()}")
            assert "Claude Code: start a new session" in said
            assert ("lies in a cache" in said) is way.is_cached
        with walk.step("first session: start, remember"):
            async with Client(stdio_client(walk.server())) as agent:
                assert "search" in {tool.name for tool in (await agent.list_tools()).tools}
                assert not (await agent.call_tool("remember", {"text": KNOWN})).is_error
        with walk.step("second session: start, search"):
            async with Client(stdio_client(walk.server())) as agent:
                found = await agent.call_tool("search", {"query": "What happens when a delivery cannot be made?"})
        assert KNOWN in str(found)
        with walk.step("hummock recall"):
            target = next(word for word in walk.server().args if word.startswith("127.0.0.1:"))
            asked = ("recall", "--project", "shop", "--target", target, "what is parked in dead_letter?")
            assert "dead_letter" in walk.run(way.hummock, *asked)
    finally:
        with suppress(AssertionError, OSError):
            walk.run(way.hummock, "stop")
    with capsys.disabled():
        print()
        for name, seconds in walk.seconds.items():
            print(f"  {seconds:6.1f} s  {name}")
        print(f"  {sum(walk.seconds.values()):6.1f} s  in all")
