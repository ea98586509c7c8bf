"""Ensures that a data directory is used by one server, or one cluster, at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil


class DirectoryInUse(Exception):
    """Others run in the directory."""

    def __init__(self, directory: Path, process_ids: list[int]) -> None:
        by = f"process {', '.join(map(str, process_ids))}" if process_ids else "servers that are starting"
        super().__init__(f"{directory} is in use by {by}; stop that first, or name another directory")
        self.directory = directory
        self.process_ids = process_ids


@contextmanager
def locked(directory: Path) -> Iterator[IO[str]]:
    """A lock for servers to inherit: it is free when the last of them is gone, however it and its caller went.

    Raises:
        DirectoryInUse: Somebody has it.
    """
    with (directory / "lock").open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DirectoryInUse(directory, _servers_in(directory)) from None
        yield lock


def _servers_in(directory: Path) -> list[int]:
    """Process ids of servers that were started with a path in the directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command: list[str] = process.info["cmdline"] or [""]
        is_server = Path(command[0]).name in ("postgres", "etcd") or "patroni" in command
        if is_server and any(f"{directory}/" in argument for argument in command[1:]):
            found.append(process.pid)
    return found
