"""Priorities of threads."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

_NICENESS = 10
"""Linux schedules by thread: with this niceness a call gets nine tenths of a core shared with a worker, and a worker
still progresses while other programs keep all cores busy."""


def give_way() -> None:
    """Lower this thread's priority, if the system has priorities of threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
