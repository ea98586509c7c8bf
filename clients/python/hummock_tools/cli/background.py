"""The service as a child process for as long as a block of code runs, or in the background, and its console."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import IO, Annotated, Final

from typer import Option

from hummock.core.errors import HummockError
from hummock_client.channel import DEFAULT_TARGET
from hummock_tools import loopback
from hummock_tools.cli import options
from hummock_tools.cli.connection import CommandFailed, channel_to, packages_of, require_unix, resolved_target
from hummock_tools.cli.output import note, print_line

LOG_FILE: Final = "service.log"
_LONGEST_WAIT_S: Final = 45.0
"""Clients give a tool call a minute, as a rule."""
_PAUSE_S: Final = 0.1
_KEPT_LOG_BYTES: Final = 1 << 20
_CONNECT_S: Final = 1.0
_SERVE: Final = (sys.executable, "-P", "-m", "hummock", "serve")


class NotStarted(CommandFailed):
    """There is no service, and none could be started."""


class BackgroundService:
    """A local service at a target, with the default data directory of `hummock serve`.

    It is independent of the process that starts it: it has its own session and log file and continues when its starter
    ends, so that the next client finds it at once. Concurrent starts are safe: the lock of the data directory admits
    one service, and both clients connect to it.
    """

    def __init__(self, target: str, say: Callable[[str], None]) -> None:
        """Starts nothing yet; the resolved target is on this machine, and `say` takes a line for people."""
        self._target = target
        self._say = say
        self._one_at_a_time = asyncio.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        """The process started last, running or not."""

    async def start(self) -> bool:
        """Start the service unless it listens, and wait until it does. Returns whether a start was needed.

        Raises: NotStarted, with the service's output.
        """
        async with self._one_at_a_time:
            if listens(self._target):
                return False
            require_unix()
            data = _data_dir()
            if self.process is None or (self.process.poll() is not None and not _is_held(data)):
                self.process = _spawn(self._target, data)
                self._say(
                    f"no service at {self._target}: started one (process {self.process.pid}), which goes on when "
                    f"this ends; its log: {data / LOG_FILE}"
                )
            await self._until_it_listens(self.process, data)
            return True

    async def _until_it_listens(self, process: subprocess.Popen[bytes], data: Path) -> None:
        waited_s = 0.0
        while not listens(self._target):
            if process.poll() is not None and not _is_held(data):
                raise NotStarted(f"the service could not be started: {_last_line(data / LOG_FILE)}")
            if waited_s >= _LONGEST_WAIT_S:
                if process.poll() is not None:
                    raise NotStarted(f"{_last_line(data / LOG_FILE)}, and that one does not listen at {self._target}")
                # The first start of all fetches a model, and compiles.
                raise NotStarted(f"the service is still starting; its log is {data / LOG_FILE}. Try again in a minute")
            await asyncio.sleep(_PAUSE_S)
            waited_s += _PAUSE_S


def _spawn(target: str, data: Path) -> subprocess.Popen[bytes]:
    """`hummock serve`, detached, its output in the data directory. Raises: NotStarted."""
    command = [*_SERVE, "--data", str(data), *_place(target)]
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
                # Clients start us in the open repository, whose hummock.toml must not apply.
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
        from hummock.store import holder
    return bool(holder(data))


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
    """Return the last line of the service's output, the reason why it ended."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return said.removeprefix("error: ")


SERVING_ON = "serving on "
"""Begins the one line of the service's stdout, printed once calls are let in; the address follows."""

_HOST = "127.0.0.1"
_STOP_S = 20.0
_WAKE_S = 0.5
# Windows has no terminal that hangs up.
_ENDING_SIGNALS = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)


class Child:
    """A service that lets calls in at `target`."""

    def __init__(self, process: subprocess.Popen[str], target: str) -> None:
        self._process = process
        self.target = target

    def wait(self) -> int:
        """Block until it ends by itself; returns its exit status."""
        # Its stdout becomes readable when it ends, for it prints one line only. Polling: a signal just before a
        # blocking call would not be seen until the call returns.
        while not select.select([_stdout(self._process)], [], [], _WAKE_S)[0]:
            pass
        return self._process.wait()


@contextmanager
def running_service(data: Path, preferred_port: int) -> Iterator[Child]:
    """Start `hummock serve` on loopback and wait until it serves; it is always ended afterwards.

    Its output goes to this process's stderr. It takes another port if the preferred one is in use.
    Raises: CommandFailed, where it ended before it served.
    """
    require_unix()
    port = preferred_port if _is_free(preferred_port) else 0
    command = [*_SERVE, "--data", str(data), "--host", _HOST, "--port", str(port)]
    # A group of its own: Ctrl-C at the terminal reaches us alone, and we ask it to stop once, so that it drains.
    with (
        ending_signals_interrupt(),
        subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", process_group=0) as process,
    ):
        try:
            line = _stdout(process).readline()
            if not line.startswith(SERVING_ON):
                raise CommandFailed("the service did not start; what it said stands above")
            yield Child(process, line.removeprefix(SERVING_ON).strip())
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                process.kill()


def _stdout(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    return process.stdout


def _is_free(port: int) -> bool:
    try:
        socket.create_server((_HOST, port)).close()
    except OSError:
        return False
    return True


@contextmanager
def ending_signals_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal end the block as Ctrl-C does, so that its clean-up runs."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


CONSOLE_PORT = 7421
"""Default port of a console that runs alongside the service."""

CONSOLE_ON = "console on "
"""Begins the one line of stdout; the address follows."""


def console(
    target: options.Target = DEFAULT_TARGET,
    port: Annotated[
        int, Option("--port", min=0, max=65535, help="Port of loopback; 0 takes a free one.")
    ] = CONSOLE_PORT,
    opens: Annotated[bool, Option("--open", help="Open it in a browser.")] = False,
    until_stdin_ends: Annotated[bool, Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Look into a service in a browser: ask and see why, prompts, memories, sessions, learning. Ctrl-C ends it."""
    resolved = resolved_target(target)
    # Errors of the token are reported now, not on the first page.
    channel_to(resolved).close()
    with packages_of("console"):
        from hummock_tools.console.app import serve_console
    with listening(_HOST, port) as listener, ending_signals_interrupt():
        url = loopback.url_of(listener)
        print_line(f"{CONSOLE_ON}{url}")
        if opens:
            webbrowser.open(url)
        if until_stdin_ends:
            Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
        try:
            asyncio.run(serve_console(resolved, listener))
        except KeyboardInterrupt:
            if not until_stdin_ends:
                note("ended")


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on loopback. Raises: CommandFailed."""
    try:
        return loopback.listen(host, port)
    except loopback.NotLoopback as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        said = os.strerror(error.errno) if error.errno else error
        raise CommandFailed(f"{host}:{port}: {said}") from error


def _end_with_stdin() -> None:
    """End this process in order when its parent closes stdin or dies."""
    # Past Python's own buffer, whose lock a waiting thread would hold at the end of the process.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
