"""A server's processes: PostgreSQL puts each of its own into a session of its own, which no process group reaches."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import psutil

_GONE_S = 10
"""Seconds for a killed process to be gone; one that writes to a slow disk ends only after that."""


def family(*heads: int) -> list[psutil.Process]:
    """The processes that are there and all that they have started; whoever could start more comes first."""
    found: list[psutil.Process] = []
    for head in heads:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(head)
            found += [process, *process.children(recursive=True)]
    return found


def signal_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Sends a signal to those that are still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@contextmanager
def frozen(*heads: int) -> Iterator[None]:
    """The processes of families do nothing while it is entered."""
    processes = family(*heads)
    signal_all(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(processes, signal.SIGCONT)


def kill_all(processes: list[psutil.Process]) -> None:
    """Ends them as a power cut would, the first first, and returns when they are gone."""
    signal_all(processes, signal.SIGKILL)
    until = time.monotonic() + _GONE_S
    while any(map(_runs, processes)) and time.monotonic() < until:
        time.sleep(0.01)


def _runs(process: psutil.Process) -> bool:
    # An orphan may stay a zombie for ever: the first process of a container need not ask for it.
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
