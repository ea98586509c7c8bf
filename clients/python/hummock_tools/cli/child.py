"""The service as a child process, for as long as a block of code runs."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from hummock_tools.cli.connection import CommandFailed

SERVING_ON = "serving on "
"""Begins the one line of the service's stdout, printed once calls are let in; the address follows."""

_HOST = "127.0.0.1"
_STOP_S = 20.0
_WAKE_S = 0.5
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Child:
    """A service that lets calls in at `target`."""

    def __init__(self, process: subprocess.Popen[str], target: str) -> None:
        self._process = process
        self.target = target

    def wait(self) -> int:
        """Block until it ends by itself; its exit status."""
        # Woken now and then: a signal that comes just before a blocking call would not be seen until the call returns.
        while not self._has_said_more(_WAKE_S):
            pass
        return self._process.wait()

    def _has_said_more(self, timeout_s: float) -> bool:
        """True if stdout becomes readable within that time: the child prints one line only, so it has ended then."""
        return bool(select.select([_stdout(self._process)], [], [], timeout_s)[0])


@contextmanager
def running_service(data: Path, preferred_port: int) -> Iterator[Child]:
    """Start `hummock serve` on loopback and wait until it serves; whatever happens, it is gone afterwards.

    What it says goes to this process's stderr. It takes another port when the preferred one is taken.

    Raises:
        CommandFailed: It ended before it served; it has said why.
    """
    port = preferred_port if _is_free(preferred_port) else 0
    command = [
        sys.executable,
        "-P",
        "-m",
        "hummock",
        "serve",
        "--data",
        str(data),
        "--host",
        _HOST,
        "--port",
        str(port),
    ]
    # A group of its own: Ctrl-C at the terminal reaches us alone, and we ask it to stop once, so that it drains.
    with (
        ending_signals_interrupt(),
        subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", process_group=0) as process,
    ):
        try:
            yield Child(process, _address(process))
        finally:
            _stop(process)


def _address(process: subprocess.Popen[str]) -> str:
    line = _stdout(process).readline()
    if not line.startswith(SERVING_ON):
        raise CommandFailed("the service did not start; what it said stands above")
    return line.removeprefix(SERVING_ON).strip()


def _stdout(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    return process.stdout


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
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
