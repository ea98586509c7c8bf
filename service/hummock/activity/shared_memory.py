"""Memory that a service and its readers share, a block for each process. It goes with the last of them."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hummock.activity.ledger import LEDGER_BYTES


@contextmanager
def shared_blocks(count: int) -> Iterator[tuple[int, ...]]:
    """File descriptors of so many blocks of LEDGER_BYTES, all zeros, for as long as a block of code runs.

    They lie in memory and have no name, so that nothing is left of them however a process dies. None elsewhere than on
    Linux, where readers are.
    """
    descriptors: list[int] = []
    try:
        if sys.platform == "linux":
            for _ in range(count):
                descriptors.append(os.memfd_create("hummock-activity"))
                os.ftruncate(descriptors[-1], LEDGER_BYTES)
        yield tuple(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def mapped(descriptor: int) -> mmap.mmap:
    """A block as memory; the descriptor may be closed behind that."""
    return mmap.mmap(descriptor, LEDGER_BYTES)
