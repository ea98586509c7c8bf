"""The console as a child process of the service: it prints its address, and ends with the service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Final

from hummock.rpc.listening import Address
from hummock.wiring.parts import Say

_COMMAND: Final = (sys.executable, "-P", "-m", "hummock", "console", "--until-stdin-ends")
_STOP_S: Final = 5.0
"""Seconds that the process has to end by itself."""


class ConsoleProcess:
    """A console that calls the service. If it fails to start or ends, that is printed and the service continues."""

    def __init__(self, port: int, say: Say) -> None:
        """Starts nothing yet.

        Args:
            port: Of loopback; 0 takes a free one.
            say: Takes a line for people.
        """
        self._port = port
        self._say = say
        self._process: subprocess.Popen[str] | None = None
        self._is_closing = False

    def start(self, service: Address) -> None:
        """Starts it, for a service that answers at this address; returns at once."""
        try:
            # Its own process group: Ctrl-C at the terminal reaches only the service, which then ends the console.
            self._process = subprocess.Popen(
                (*_COMMAND, "--port", str(self._port), "--target", str(service)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                process_group=0,
                env={**os.environ, "HUMMOCK_TARGET": str(service)},
            )
        except OSError as error:
            self._say(f"the console could not be started ({error.strerror}); the service runs without it")
            return
        Thread(target=self._watch, args=(self._process,), name="console", daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        self._is_closing = True
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _watch(self, process: subprocess.Popen[str]) -> None:
        """Print its output, and its exit status if it was not stopped."""
        if process.stdout is not None:
            for line in process.stdout:
                self._say(line.rstrip())
        status = process.wait()
        if not self._is_closing:
            self._say(f"the console has ended with status {status}; the service runs without it")


@contextmanager
def console_beside(port: int | None, say: Say) -> Iterator[ConsoleProcess | None]:
    """The console of a service, for as long as the block runs; None where no port is given."""
    if port is None:
        yield None
        return
    console = ConsoleProcess(port, say)
    try:
        yield console
    finally:
        console.close()
