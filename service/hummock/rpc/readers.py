"""Processes that answer recalls alongside this one: started, watched, restarted when one dies or hangs, stopped.

A living reader sends a heartbeat several times a second. A stopped or hanging one still has its share of the port's
connections: it is killed, so that the system gives new connections to the others.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread, Timer
from time import monotonic
from types import TracebackType
from typing import IO, Literal, Self

import structlog

from hummock.core.errors import StartError
from hummock.rpc.listening import Address

LISTENING_ON = "listening on "
"""Begins the one line that a reader writes, once it lets calls in; its address follows."""

BEAT_S = 0.25
"""Between two signs of life of a reader."""

_SILENT_BEATS = 6
"""Missed heartbeats in a row after which a reader is killed. Each is awaited separately, since this process may be
suspended as well."""

_START_S = 120.0
_STOP_S = 15.0
_PAUSES_S = (1.0, 30.0)
"""First and longest pause before a dead reader is restarted, in seconds; doubled each time it dies at once."""

_GONE = (OSError, ValueError)
"""Errors of a pipe if either end has been closed."""

_log = structlog.get_logger("hummock.rpc")


class Readers:
    """A number of readers, for as long as a block runs.

    A reader gets its settings and then its address by lines on stdin. It ends when stdin ends, so it never outlives
    this process, however that dies.
    """

    def __init__(self, count: int, command: Sequence[str], settings: str, ledgers: Sequence[int] = ()) -> None:
        """Prepare the readers.

        Args:
            count: How many.
            command: Starts one.
            settings: Their first line.
            ledgers: A descriptor for each, which it inherits, and which its second line names.
        """
        self._closing = Event()
        given: Sequence[int | None] = ledgers or [None] * count
        self._readers = [_Reader(command, settings, self._closing, ledger) for ledger in given]
        self._watching: list[Thread] = []

    def __enter__(self) -> Self:
        """Start the readers, which load their models and indexes in the background. Raises: StartError."""
        try:
            for reader in self._readers:
                reader.start()
        except OSError as error:
            self._end()
            raise StartError(f"a reader could not be started: {error.strerror}") from error
        return self

    def listen(self, address: Address, service: Address) -> None:
        """Make the readers listen, and wait until all of them do.

        Args:
            address: Shared with this process.
            service: Where this process answers all calls but recalls.

        Raises:
            StartError: A reader failed or took too long.
        """
        where = {"address": str(address), "service": str(service)}
        for reader in self._readers:
            reader.tell_where(where)
        if not all(reader.is_listening() for reader in self._readers):
            raise StartError("a reader did not start; what it said stands above")
        for reader in self._readers:
            thread = Thread(target=self._watch, args=(reader, where), name="reader", daemon=True)
            thread.start()
            self._watching.append(thread)

    def living(self) -> int:
        """Number of readers that run."""
        return sum(reader.is_running() for reader in self._readers)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the readers finish their calls, and end them."""
        self._end()

    def _end(self) -> None:
        self._closing.set()
        for reader in self._readers:
            reader.let_go()
        until = monotonic() + _STOP_S
        for thread in self._watching:
            thread.join(max(0.0, until - monotonic()))
        if any(thread.is_alive() for thread in self._watching):
            for reader in self._readers:
                reader.kill()
        for thread in self._watching:
            thread.join()
        for reader in self._readers:
            reader.end()

    def _watch(self, reader: _Reader, where: Mapping[str, str]) -> None:
        """Restart a reader whenever it dies, until the pool closes."""
        pause_s, longest_s = _PAUSES_S
        while True:
            status = reader.wait_for_end()
            if self._closing.is_set():
                return
            _log.error("reader_died", status=status, again_in_s=pause_s)
            if self._closing.wait(pause_s):
                return
            pause_s = _PAUSES_S[0] if self._begins_again(reader, where) else min(2 * pause_s, longest_s)

    def _begins_again(self, reader: _Reader, where: Mapping[str, str]) -> bool:
        try:
            reader.start()
        except OSError as error:
            _log.error("reader_not_started", error=error.strerror)
            return False
        reader.tell_where(where)
        return reader.is_listening()


@dataclass(slots=True, eq=False)
class _Reader:
    """One reader, through all restarts of its process."""

    command: Sequence[str]
    settings: str
    closing: Event
    ledger: int | None
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Raises: OSError: the system has no room for it."""
        self.end()
        # Its own process group: Ctrl-C at the terminal reaches only the service, which ends its readers in order.
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            process_group=0,
            pass_fds=() if self.ledger is None else (self.ledger,),
        )
        self.tell(self.settings)
        # A concurrent close has not seen this process yet.
        if self.closing.is_set():
            self.let_go()

    def tell(self, line: str) -> None:
        """Send a line to the process; ignored if it has died or is ending."""
        with suppress(*_GONE):
            stdin = _pipe(self.process, "stdin")
            stdin.write(f"{line}\n")
            stdin.flush()

    def tell_where(self, where: Mapping[str, str]) -> None:
        """Send the address to listen on and the descriptor of the counters."""
        ledger = {} if self.ledger is None else {"ledger": self.ledger}
        self.tell(json.dumps({**where, **ledger}))

    def is_listening(self) -> bool:
        """Waits until it listens, or has ended, as it must after a time."""
        too_late = Timer(_START_S, self.kill)
        too_late.start()
        try:
            with suppress(*_GONE):
                return _pipe(self.process, "stdout").readline().startswith(LISTENING_ON)
            return False
        finally:
            too_late.cancel()

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process is not None and self.process.poll() is None

    def wait_for_end(self) -> int | None:
        """Wait for the process to end, killing it if its heartbeat stops. Its exit status; None without a process."""
        if self.process is None:
            return None
        with suppress(*_GONE):
            if self._falls_silent(_pipe(self.process, "stdout").fileno()):
                _log.error("reader_silent", pid=self.process.pid, for_s=BEAT_S * _SILENT_BEATS)
                self.kill()
        return self.process.wait()

    def _falls_silent(self, stdout: int) -> bool:
        """Waits until it does, or ends."""
        # Not select, which knows no descriptor above 1023.
        waiting, missed = select.poll(), 0
        waiting.register(stdout, select.POLLIN)
        while missed < _SILENT_BEATS:
            if not waiting.poll(BEAT_S * 1000):
                # A reader that is ending sends no heartbeats and may take its time.
                missed += not self.closing.is_set()
            elif not os.read(stdout, 4096):
                return False
            else:
                missed = 0
        return True

    def let_go(self) -> None:
        """Tell the reader to end."""
        # Unwritten data is no longer needed.
        with suppress(*_GONE):
            _pipe(self.process, "stdin").close()

    def end(self) -> None:
        """Waits until it has ended, and makes it end if that takes long."""
        if self.process is None:
            return
        self.let_go()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        _pipe(self.process, "stdout").close()
        self.process = None

    def kill(self) -> None:
        """Ends it at once."""
        if self.process is not None:
            self.process.kill()


def _pipe(process: subprocess.Popen[str] | None, name: Literal["stdin", "stdout"]) -> IO[str]:
    """Raises: ValueError: there is no such process."""
    pipe: IO[str] | None = getattr(process, name, None)
    if pipe is None:
        raise ValueError(f"there is no {name}")
    return pipe
