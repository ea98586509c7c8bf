"""The service in the background: started for a client that finds none, and left running for the next."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hummock.core.errors import HummockError
from hummock_client.channel import is_local
from hummock_tools.cli.connection import CommandFailed, packages_of

LOG_FILE: Final = "service.log"
_LONGEST_WAIT_S: Final = 45.0
"""Clients give a tool call a minute, as a rule."""
_PAUSE_S: Final = 0.1
_KEPT_LOG_BYTES: Final = 1 << 20
_CONNECT_S: Final = 1.0


class NotStarted(CommandFailed):
    """There is no service, and none could be started."""


class BackgroundService:
    """The service of this machine at a target, over the data directory that `hummock serve` would take.

    Who starts it does not own it: it has a session of its own, writes to a file of its own and goes on when its starter
    ends, so that the next client finds it at once. Two that start it at the same time do no harm: the lock of the data
    directory lets one service live, and both connect to that.
    """

    def __init__(self, target: str, say: Callable[[str], None]) -> None:
        """Starts nothing yet.

        Args:
            target: A resolved target on this machine.
            say: Takes a line for people.
        """
        self._target = target
        self._say = say
        self._one_at_a_time = asyncio.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        """The process started last, running or not."""

    async def start(self) -> bool:
        """Start the service unless it listens, and wait until it does; whether that was needed.

        Raises: NotStarted, with what the service said.
        """
        async with self._one_at_a_time:
            if listens(self._target):
                return False
            data = _data_dir()
            if self.process is None or (self.process.poll() is not None and not _is_held(data)):
                self.process = _spawn(self._target, data)
                self._say(
                    f"no service at {self._target}: started one (process {self.process.pid}), which goes on when "
                    f"this ends; its log: {data / LOG_FILE}"
                )
            await self._until_itlistens(self.process, data)
            return True

    async def _until_itlistens(self, process: subprocess.Popen[bytes], data: Path) -> None:
        waited_s = 0.0
        while not listens(self._target):
            if process.poll() is not None and not _is_held(data):
                raise NotStarted(f"the service could not be started: {_last_line(data / LOG_FILE)}")
            if waited_s >= _LONGEST_WAIT_S:
                raise NotStarted(self._not_yet(process, data))
            await asyncio.sleep(_PAUSE_S)
            waited_s += _PAUSE_S

    def _not_yet(self, process: subprocess.Popen[bytes], data: Path) -> str:
        if process.poll() is None:
            # The first start of all fetches a model, and compiles.
            return f"the service is still starting; its log is {data / LOG_FILE}. Try again in a minute"
        return f"{_last_line(data / LOG_FILE)}, and that one does not listen at {self._target}"


def can_be_started(target: str) -> bool:
    """True if a resolved target is a place where this machine's own service could listen."""
    return is_local(target)


def _spawn(target: str, data: Path) -> subprocess.Popen[bytes]:
    """`hummock serve`, detached, its output in the data directory. Raises: NotStarted."""
    command = [sys.executable, "-P", "-m", "hummock", "serve", "--data", str(data), *_place(target)]
    environ = dict(os.environ)
    if config := environ.get("HUMMOCK_CONFIG"):
        environ["HUMMOCK_CONFIG"] = str(Path(config).expanduser().absolute())
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = _opened_log(data / LOG_FILE)
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # Clients start us in whatever repository is open, whose hummock.toml is not to be obeyed.
                cwd=data,
                env=environ,
            )
        finally:
            os.close(log)
    except OSError as error:
        raise NotStarted(f"the service could not be started: {error}") from error


def _place(target: str) -> list[str]:
    """Options of `hummock serve` that make it listen on the target."""
    if target.startswith("unix:"):
        return ["--unix-socket", target.removeprefix("unix:")]
    host, _, port = target.rpartition(":")
    return ["--host", host.strip("[]"), "--port", port]


def _data_dir() -> Path:
    """The data directory of the environment and of HUMMOCK_CONFIG, else the platform's. Raises: NotStarted."""
    with packages_of("server"):
        from hummock.config import load_settings
    try:
        return load_settings(directory=Path("/")).data_dir
    except HummockError as error:
        raise NotStarted(f"the service could not be started: {error}") from error


def _is_held(data: Path) -> bool:
    """True if another service, which started faster, holds the data directory."""
    with packages_of("server"):
        from hummock.store import require_free
    try:
        require_free(data)
    except HummockError:
        return True
    return False


def listens(target: str) -> bool:
    """True if something accepts connections at the target, which is local and so answers at once."""
    if target.startswith("unix:"):
        place: tuple[str, int] | str = target.removeprefix("unix:")
        family = socket.AF_UNIX
    else:
        host, _, port = target.rpartition(":")
        place = ("127.0.0.1" if host == "localhost" else host.strip("[]"), int(port))
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_S)
        return probe.connect_ex(place) == 0


def _opened_log(path: Path) -> int:
    """A descriptor that appends; what grew large is set aside, once."""
    if path.exists() and path.stat().st_size > _KEPT_LOG_BYTES:
        path.replace(path.with_suffix(".log.old"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _last_line(path: Path) -> str:
    """Last line of the service's output, which tells why it ended."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return said.removeprefix("error: ")
