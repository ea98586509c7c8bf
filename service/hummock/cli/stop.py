"""`hummock stop`: ends the service of a data directory, wherever and by whom it was started."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

from hummock_tools.cli.connection import CommandFailed, packages_of
from hummock_tools.cli.options import DataOption, data_dir_of
from hummock_tools.cli.output import note

LONGEST_STOP_S: Final = 30.0
"""Longest wait for the service to exit, in seconds; the service itself gives up much earlier."""
_PAUSE_S: Final = 0.05
_PROCESSES: Final = Path("/proc")


def stop(data: DataOption = None) -> None:
    """Stop the service of the data directory, and wait until it has: what it has accepted is answered and kept."""
    directory = data_dir_of(data)
    holder = _holder(directory)
    if holder is None:
        note(f"no service runs over {directory}")
        return
    _ask_to_end(holder, directory)
    until_s = time.monotonic() + LONGEST_STOP_S
    while _holder(directory) == holder:
        if time.monotonic() >= until_s:
            raise CommandFailed(
                f"process {holder} was asked to end and has not in {LONGEST_STOP_S:.0f} s; `kill -9 {holder}` ends it, "
                "and loses nothing that was acknowledged"
            )
        time.sleep(_PAUSE_S)
    note(f"stopped (process {holder}, over {directory})")


def _holder(directory: Path) -> str | None:
    """The process that has the directory; None where none has. Raises: CommandFailed."""
    with packages_of("server"):
        from hummock.store import require_free
        from hummock.store.errors import DirectoryInUse
    try:
        require_free(directory)
    except DirectoryInUse as held:
        if held.pid.isdecimal():
            return held.pid
        raise CommandFailed(f"{directory} is in use, and its file `lock` does not say by which process") from held
    return None


def _ask_to_end(pid: str, directory: Path) -> None:
    """Raises: CommandFailed, where it is another program's or another user's."""
    # In another container the number may be somebody else's here.
    if _PROCESSES.is_dir() and not _is_hummock(pid):
        raise CommandFailed(
            f"{directory} is in use by process {pid}, which is no hummock on this machine; stop it where it runs"
        )
    try:
        os.kill(int(pid), signal.SIGTERM)
    except ProcessLookupError:
        # It ended by itself.
        return
    except PermissionError as error:
        raise CommandFailed(f"process {pid} belongs to another user; stop it as that one, or as root") from error


def _is_hummock(pid: str) -> bool:
    try:
        words = (_PROCESSES / pid / "cmdline").read_bytes().split(b"\0")
    except OSError:
        # Gone, or not to be seen: the signal tells.
        return True
    return any(word == b"hummock" or word.endswith(b"/hummock") for word in words)
