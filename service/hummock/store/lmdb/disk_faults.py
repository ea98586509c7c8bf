"""Maps faults of the disk or the system to the errors that callers get, with the remedy."""

from __future__ import annotations

import errno
import resource
from pathlib import Path

import lmdb

from hummock.core.errors import HummockError
from hummock.store.errors import DiskFault, DiskFull

_NO_ROOM = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota of its user is used up",
    errno.EFBIG: "the file has reached the size that this process may write",
}

_FAULTS = {
    errno.EIO: (
        "the device reports an input/output error",
        "look at the kernel's log and at the disk's health, and copy the directory to another disk",
    ),
    errno.EROFS: ("the file system is read-only", "look why it was mounted so, and mount it for writing"),
    errno.EACCES: ("access is denied", "give the service's user read and write access to it"),
    errno.EPERM: ("the operation is not permitted", "give the service's user read and write access to it"),
    errno.ENOENT: ("it is not there any more", "put it back, or restart the service with another directory"),
}

_ONE_WRITE_BYTES = 64 << 20
"""More than LMDB hands to the system at once."""


def code_of(error: BaseException) -> int:
    """The number of the system's error, or LMDB's own; 0 where it has none."""
    if isinstance(error, OSError):
        return error.errno or 0
    if isinstance(error, lmdb.DiskError):
        return errno.ENOSPC
    return int(getattr(error, "code", 0))


def cause_of(error: BaseException) -> tuple[str, str] | None:
    """What is wrong and what mends it, where the disk or the system is at fault."""
    code = code_of(error)
    if code in _NO_ROOM:
        return _NO_ROOM[code], "make room on the disk"
    return _FAULTS.get(code)


def fault_of(error: BaseException, directory: Path, free_bytes: int, used_bytes: int) -> HummockError | None:
    """The error that callers get; None where the disk is not at fault.

    Args:
        error: What LMDB or the system said.
        directory: Of the data.
        free_bytes: What the disk still takes, as far as that is known.
        used_bytes: What the store uses.
    """
    code, cause = code_of(error), cause_of(error)
    if cause is None:
        return None
    # What a full disk, or a limit of this process, cuts short is an I/O error to LMDB.
    if code == errno.EIO and (free_bytes < _ONE_WRITE_BYTES or _is_limited()):
        code = errno.ENOSPC
    if code in _NO_ROOM:
        return DiskFull(_NO_ROOM[code], used_bytes)
    return DiskFault(directory, errno.errorcode[code], *cause)


def _is_limited() -> bool:
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
