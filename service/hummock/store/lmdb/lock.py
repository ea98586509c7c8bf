"""Lock of the data directory: the file `lock` names the one process that writes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from hummock.store.errors import DirectoryInUse, DirectoryReplaced, DirectoryUnusable

LOCK_FILE = "lock"

_PID_BYTES = 20
_USED = b"used\n"
"""Follows the process, once the directory has a database."""


class LockFile(Protocol):
    """An open lock file, which keeps other processes out until it is closed."""

    def release(self) -> None:
        """Closes the file."""


_held: WeakSet[LockFile] = WeakSet()


def let_go_in_child(held: LockFile) -> None:
    """Has a forked child close its copy, which would keep others out after its parent's end."""
    _held.add(held)


Identity = tuple[int, int]
"""Device and inode."""


def identity_of(descriptor: int) -> Identity:
    """Device and inode of an open file."""
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def is_at(path: Path, identity: Identity) -> bool:
    """Whether the path names that file."""
    try:
        found = path.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == identity


class DirectoryLock:
    """Holds the directory until it is closed or the process ends, however it ends.

    The file stays behind; what counts is the lock on it. LMDB alone would let a second process write, unseen by what
    this one keeps in memory.

    Attributes:
        is_of_used_directory: Whether there was a database when it was held before.
    """

    def __init__(self, directory: Path) -> None:
        """Raises: DirectoryInUse at once when another holder lives; OSError when the file cannot be made."""
        self._directory = directory
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
        self.is_of_used_directory = os.pread(descriptor, len(_USED), _PID_BYTES) == _USED
        os.pwrite(descriptor, f"{os.getpid()}\n".rjust(_PID_BYTES).encode("ascii"), 0)
        self._identity = identity_of(descriptor)
        self._descriptor = descriptor
        let_go_in_child(self)

    def note_use(self) -> None:
        """Notes that there is a database now: without one the directory is not new but has lost it."""
        if not self.is_of_used_directory:
            os.pwrite(self._descriptor, _USED, _PID_BYTES)
            os.fsync(self._descriptor)
            self.is_of_used_directory = True

    def require_path(self) -> None:
        """Check that the lock file is in place. Raises: DirectoryReplaced: it was removed or replaced."""
        if not is_at(self._directory / LOCK_FILE, self._identity):
            raise DirectoryReplaced(self._directory, LOCK_FILE)

    def release(self) -> None:
        """Lets others in. Doing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Holds a directory that is not used for a database, and is made where it is not there.

    Raises: DirectoryInUse, DirectoryUnusable.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = DirectoryLock(directory)
    except OSError as error:
        raise DirectoryUnusable(directory, str(error), "choose another directory") from error
    try:
        yield
    finally:
        lock.release()


def was_used(directory: Path) -> bool:
    """Whether a lock holder noted that there is a database. Takes no lock. Raises: OSError."""
    try:
        return (directory / LOCK_FILE).read_bytes()[_PID_BYTES:] == _USED
    except FileNotFoundError:
        return False


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
    return os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip() or "(unknown)"


def _let_go_in_child() -> None:
    for held in list(_held):
        held.release()


os.register_at_fork(after_in_child=_let_go_in_child)
