"""One process a data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from weakref import WeakSet

from hummock.store.errors import DirectoryInUse

LOCK_FILE = "lock"

_held: WeakSet[DirectoryLock] = WeakSet()


class DirectoryLock:
    """Holds the directory until it is released or the process ends, however it ends.

    The file stays behind; what counts is the lock on it. LMDB alone would let a second process write, unseen by what
    this one keeps in memory.
    """

    def __init__(self, directory: Path) -> None:
        """Raises: DirectoryInUse at once when another holder lives; OSError when the file cannot be made."""
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise DirectoryInUse(directory, holder) from None
        except OSError:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Lets others in. Doing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def require_free(directory: Path) -> None:
    """Raises: DirectoryInUse when the directory is held now. Makes and keeps nothing."""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # Nobody has held it so far, or opening it says what is wrong.
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DirectoryInUse(directory, _holder(descriptor)) from None
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "(unknown)"


def _let_go_in_child() -> None:
    # A child's copy of the descriptor would keep the directory locked after its parent's end.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go_in_child)
