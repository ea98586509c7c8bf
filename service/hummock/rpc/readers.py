"""Processes that answer recalls beside this one: started, watched, started anew when one dies, and stopped."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import IO, Self

import structlog

from hummock.core.errors import StartError
from hummock.rpc.address import Address

LISTENING_ON = "listening on "
"""Begins the one line that a reader writes, once it lets calls in; its address follows."""

_STOP_S = 15.0
_PAUSES_S = (1.0, 30.0)
"""Before one that died is started anew: the first, and the longest, as often as it dies at once."""

_log = structlog.get_logger("hummock.rpc")


class Readers:
    """A number of readers, for as long as a block runs.

    A reader is told its settings and then where it is by lines on its stdin, whose end ends it: it never outlives this
    process, however that dies.
    """

    def __init__(self, count: int, command: Sequence[str], settings: str) -> None:
        """So many, to be started with this command; `settings` is their first line."""
        self._closing = Event()
        self._starting = [_Reader(command, settings, self._closing) for _ in range(count)]
        self._watching: list[Thread] = []

    def __enter__(self) -> Self:
        """Starts them; they load what they need meanwhile."""
        for reader in self._starting:
            reader.start()
        return self

    def listen(self, address: Address, service: Address) -> None:
        """Has them listen, and returns when all of them do.

        Args:
            address: Where, together with this process.
            service: Where this process answers what they do not.

        Raises:
            StartError: One of them could not.
        """
        where = json.dumps({"address": str(address), "service": str(service)})
        for reader in self._starting:
            reader.tell(where)
        if not all(reader.is_listening() for reader in self._starting):
            raise StartError("a reader did not start; what it said stands above")
        for reader in self._starting:
            thread = Thread(target=self._watch, args=(reader, where), name="reader", daemon=True)
            thread.start()
            self._watching.append(thread)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets them finish what they do, and ends them."""
        self._closing.set()
        for reader in self._starting:
            reader.let_go()
        for reader in self._starting:
            reader.end()
        for thread in self._watching:
            thread.join()

    def _watch(self, reader: _Reader, where: str) -> None:
        pause_s, longest_s = _PAUSES_S
        while True:
            status = reader.wait()
            if self._closing.is_set():
                return
            _log.error("reader_died", status=status, again_in_s=pause_s)
            if self._closing.wait(pause_s):
                return
            reader.start()
            reader.tell(where)
            pause_s = _PAUSES_S[0] if reader.is_listening() else min(2 * pause_s, longest_s)


class _Reader:
    """One of them, whichever process it is at the moment."""

    def __init__(self, command: Sequence[str], settings: str, closing: Event) -> None:
        self._command = command
        self._settings = settings
        self._closing = closing
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.end()
        # A group of its own: Ctrl-C at the terminal reaches the service alone, which ends its readers in order.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", process_group=0
        )
        self.tell(self._settings)
        if self._closing.is_set():
            self.let_go()

    def tell(self, line: str) -> None:
        # One that has died meanwhile is found to be so by whoever waits for it.
        with suppress(OSError):
            stdin = _pipe(self._started.stdin)
            stdin.write(f"{line}\n")
            stdin.flush()

    def is_listening(self) -> bool:
        """Waits until it listens, or has ended."""
        return _pipe(self._started.stdout).readline().startswith(LISTENING_ON)

    def wait(self) -> int:
        """Its status, when it has ended."""
        return self._started.wait()

    def let_go(self) -> None:
        """Tells it to end."""
        if self._process is not None:
            # What is still unsaid need not be said.
            with suppress(OSError):
                _pipe(self._process.stdin).close()

    def end(self) -> None:
        """Waits until it has ended, and makes it end if that takes long."""
        if self._process is None:
            return
        self.let_go()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()

    @property
    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise RuntimeError("it has not been started")
        return self._process


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("it was started without a pipe")
    return pipe
