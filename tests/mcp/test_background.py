"""The service that `hummock mcp` starts where none listens: it outlives who started it, and there is only one."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from hummock.store.lmdb.files import LOCK_FILE, DirectoryLock
from hummock_client.channel import is_local
from hummock_tools.cli import background
from hummock_tools.cli.background import LOG_FILE, BackgroundService, NotStarted
from tests.mcp.test_tools import answer, text_of
from tests.service.running import free_port

pytestmark = [pytest.mark.long, pytest.mark.timed]

STARTED = re.compile(r"started one \(process (\d+)\)")
COMMAND = (sys.executable, "-m", "hummock", "mcp", "--project", "p")


@pytest.fixture
def away() -> str:
    """A target where nothing listens yet."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data directory that is not there yet; what serves it at the end, or still starts to, is killed."""
    directory = tmp_path / "data"
    yield directory
    started = [int(pid) for log in tmp_path.glob("*.txt") for pid in STARTED.findall(log.read_text(encoding="utf-8"))]
    with suppress(FileNotFoundError, ValueError):
        started.append(pid_of_service(directory))
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pid_of_service(data: Path) -> int:
    return int((data / LOCK_FILE).read_text(encoding="ascii").split()[0])


@pytest.fixture
def environ(away: str, data: Path, models_dir: Path, model: str) -> dict[str, str]:
    names = {"HUMMOCK_DATA": str(data), "HUMMOCK_MODELS": str(models_dir), "HUMMOCK_MODEL": model}
    return {**os.environ, **names, "HUMMOCK_TARGET": away}


async def call(environ: Mapping[str, str], log: Path, cwd: Path | None = None) -> CallToolResult:
    """Result for one agent that starts the server, remembers something and ends."""
    parameters = StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=dict(environ), cwd=cwd)
    with log.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            return await client.call_tool("remember", {"text": "parseDate takes ISO 8601"})


def test_a_started_service_serves_the_next_agent(
    environ: dict[str, str], data: Path, away: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    created = answer(asyncio.run(call(environ, first)))
    pid = pid_of_service(data)
    known = answer(asyncio.run(call(environ, second)))
    assert (created["status"], known["status"], known["id"]) == ("created", "duplicate", created["id"])
    assert first.read_text(encoding="utf-8") == (
        f"no service at {away}: started one (process {pid}), which goes on when this ends; its log: {data / LOG_FILE}\n"
    )
    assert second.read_text(encoding="utf-8") == ""
    assert f"serving on {away}" in (data / LOG_FILE).read_text(encoding="utf-8")
    assert (data / LOG_FILE).stat().st_mode & 0o077 == 0


def test_agents_that_start_together_share_one_service(environ: dict[str, str], data: Path, tmp_path: Path) -> None:
    async def together() -> list[CallToolResult]:
        return await asyncio.gather(*(call(environ, tmp_path / f"{number}.txt") for number in range(3)))

    answers = [answer(result) for result in asyncio.run(together())]
    assert len({each["id"] for each in answers}) == 1
    assert sorted(each["status"] for each in answers) == ["created", "duplicate", "duplicate"]
    # However many were started, one held the directory, and it alone served.
    assert (data / LOG_FILE).read_text(encoding="utf-8").count("serving on ") == 1


def test_a_service_that_ended_is_started_by_the_next_call(environ: dict[str, str], data: Path, tmp_path: Path) -> None:
    async def twice() -> tuple[CallToolResult, CallToolResult]:
        parameters = StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=environ)
        with (tmp_path / "log.txt").open("w", encoding="utf-8") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                first = await client.call_tool("remember", {"text": "a"})
                os.kill(pid_of_service(data), signal.SIGKILL)
                return first, await client.call_tool("remember", {"text": "b"})

    assert [answer(each)["status"] for each in asyncio.run(twice())] == ["created", "created"]


def test_a_hummock_toml_of_the_repository_is_not_obeyed(environ: dict[str, str], tmp_path: Path) -> None:
    """A repository open in an editor is not trusted: its file could send learnt text to somebody's language model."""
    (tmp_path / "hummock.toml").write_text("model = 'evil'\n", encoding="utf-8")
    assert answer(asyncio.run(call(environ, tmp_path / "log.txt", cwd=tmp_path)))["status"] == "created"


def test_what_kept_the_service_from_starting_is_what_the_tool_says(environ: dict[str, str], tmp_path: Path) -> None:
    result = asyncio.run(call({**environ, "HUMMOCK_MODEL": "no-such-model"}, tmp_path / "log.txt"))
    assert result.is_error
    assert text_of(result).startswith("the service could not be started: ")
    assert "no-such-model" in text_of(result)


def test_a_directory_that_another_service_holds_elsewhere_is_named(
    environ: dict[str, str], data: Path, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HUMMOCK_DATA", "HUMMOCK_MODELS", "HUMMOCK_MODEL"):
        monkeypatch.setenv(name, environ[name])
    monkeypatch.setattr(background, "_LONGEST_WAIT_S", 0.0)
    data.mkdir()
    lock = DirectoryLock(data)
    said: list[str] = []
    service = BackgroundService(away, said.append)
    try:
        # The first waits for nobody; the process that it started says why it ended.
        with pytest.raises(NotStarted, match="still starting"):
            asyncio.run(service.start())
        assert service.process is not None
        service.process.wait()
        with pytest.raises(NotStarted, match=f"in use by process {os.getpid()}.*, and that one does not listen at"):
            asyncio.run(service.start())
    finally:
        lock.release()
        (data / LOCK_FILE).unlink()


@pytest.mark.parametrize(
    ("target", "is_ours"),
    [("127.0.0.1:7420", True), ("localhost:1", True), ("unix:/tmp/a.sock", True), ("10.0.0.1:7420", False)],
)
def test_only_a_target_of_this_machine_is_served(target: str, is_ours: bool) -> None:
    assert is_local(target) is is_ours


def test_a_log_that_grew_large_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / LOG_FILE
    log.write_bytes(b"x" * (background._KEPT_LOG_BYTES + 1))
    os.close(background._opened_log(log))
    assert log.stat().st_size == 0
    assert (tmp_path / "service.log.old").stat().st_size > background._KEPT_LOG_BYTES


def test_asking_for_help_or_without_leave_starts_nothing(environ: dict[str, str], data: Path) -> None:
    subprocess.run([*COMMAND, "--help"], env=environ, check=True, capture_output=True)
    assert not data.exists()

    async def no_serve() -> CallToolResult:
        parameters = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "--no-serve"], env=environ)
        async with Client(stdio_client(parameters)) as client:
            return await client.call_tool("remember", {"text": "a"})

    result = asyncio.run(no_serve())
    assert result.is_error
    assert "is `hummock serve` running?" in text_of(result)
    assert not data.exists()
