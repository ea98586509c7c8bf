"""Files of a data directory: locks, completeness of the data file, and faults of the disk.

The file `lock` names the one process that writes. LMDB maps its data file, and access to a mapped page beyond the
file's end kills the process (SIGBUS). So the file's size is compared with its meta pages before it is mapped, and with
its earlier size while it is used: LMDB's files never shrink.

Source of the format: `MDB_page`, `MDB_meta`, `MDB_db` and `MDB_node` of LMDB 0.9's `mdb.c`, for words of 64 bits.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

import lmdb

from hummock.core.errors import HummockError
from hummock.store.errors import DataFileCut, DirectoryInUse, DirectoryReplaced, DirectoryUnusable, DiskFault, DiskFull

LOCK_FILE = "lock"

_PID_BYTES = 20
_USED = b"used\n"  # Follows the process id once the directory has a database.

DATA_FILE = "data.mdb"
RESTORE = "restore it from a backup or choose another directory"

_MAGIC = 0xBEEFC0DE
_VERSION = 1
_PAGE_HEADER = struct.Struct("=QHHHH")
_LARGE_PAGE_HEADER = struct.Struct("=QHHI")
_TREE = struct.Struct("=IHHQQQQQ")
_META = struct.Struct(f"=II QQ {_TREE.size}s {_TREE.size}s QQ")
_NODE = struct.Struct("=HHHH")
_NUMBER = struct.Struct("=Q")
_BRANCH, _LEAF = 0x01, 0x02
_IS_BIG = 0x01
_NO_PAGE = 2**64 - 1
_DEEPEST = 32

_ANOTHER = "(unknown: its lock was removed)"
_KINDS = {"p": "a pipe", "d": "a directory", "s": "a socket"}

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

_ONE_WRITE_BYTES = 64 << 20  # More than LMDB writes in one system call.


_held: WeakSet[DirectoryLock | DataFile] = WeakSet()
"""Forked children close their copies of these files, which would keep others out after the parent's end."""

Identity = tuple[int, int]  # Device and inode.


def identity_of(descriptor: int) -> Identity:
    """Device and inode of an open file."""
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def is_at(path: Path, identity: Identity) -> bool:
    """True if the path names this file."""
    try:
        found = path.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == identity


class DirectoryLock:
    """Exclusive lock on a directory, held until it is released or the process ends in any way.

    The file itself remains; only the lock on it counts. LMDB alone would let a second process write, unnoticed by the
    views in this one's memory. `is_of_used_directory`: an earlier holder had a database in it.
    """

    def __init__(self, directory: Path) -> None:
        """Take the lock without waiting. Raises: DirectoryInUse; OSError: the file cannot be created."""
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
        _held.add(self)

    def note_use(self) -> None:
        """Record that there is a database: if it is missing later, it was lost."""
        if not self.is_of_used_directory:
            os.pwrite(self._descriptor, _USED, _PID_BYTES)
            os.fsync(self._descriptor)
            self.is_of_used_directory = True

    def require_path(self) -> None:
        """Check that the lock file is in place. Raises: DirectoryReplaced: it was removed or replaced."""
        if not is_at(self._directory / LOCK_FILE, self._identity):
            raise DirectoryReplaced(self._directory, LOCK_FILE)

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Lock a directory without an open database for a block; makes it. Raises: DirectoryInUse, DirectoryUnusable."""
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
    """True if a lock holder recorded that there is a database. Takes no lock. Raises: OSError."""
    try:
        return (directory / LOCK_FILE).read_bytes()[_PID_BYTES:] == _USED
    except FileNotFoundError:
        return False


def require_free(directory: Path) -> None:
    """Check that the directory is not locked; creates and holds nothing. Raises: DirectoryInUse."""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # It was never locked, or opening the store will report the error.
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DirectoryInUse(directory, _holder(descriptor)) from None
    finally:
        os.close(descriptor)


def holder(directory: Path) -> str:
    """The process that has the directory locked, "(unknown)" if it does not say; empty if none has."""
    try:
        require_free(directory)
    except DirectoryInUse as failure:
        return failure.pid
    return ""


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip() or "(unknown)"


def _let_go_in_child() -> None:
    for held in list(_held):
        held.release()


os.register_at_fork(after_in_child=_let_go_in_child)


class DataFile:
    """The open data file. A writer locks it as well, so that removing the lock file lets no second writer in."""

    def __init__(self, directory: Path, *, is_read_only: bool) -> None:
        """Open the file; without `is_read_only` also create it if missing, and lock it.

        Raises: DirectoryInUse; DirectoryUnusable: it is not a plain file, or cut short; OSError.
        """
        self._directory = directory
        self._path = directory / DATA_FILE
        require_file(directory)
        access = os.O_RDONLY if is_read_only else os.O_RDWR | os.O_CREAT
        self._descriptor = os.open(self._path, access | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            if not is_read_only:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _require_whole(directory, self._descriptor)
            self._identity = identity_of(self._descriptor)
            self._is_cut = False
            self._bytes = os.fstat(self._descriptor).st_size
        except BlockingIOError:
            self.release()
            raise DirectoryInUse(directory, _ANOTHER) from None
        except BaseException:
            self.release()
            raise
        _held.add(self)

    def require_size(self) -> None:
        """Check that the file has never shrunk. Raises: DataFileCut, also if it has grown again since."""
        # Read before the size: the file may grow meanwhile, and another thread records the larger size.
        known = self._bytes
        size = os.fstat(self._descriptor).st_size
        if size < known or self._is_cut:
            self._is_cut = True
            raise DataFileCut(self._directory, size, known)
        self._bytes = size

    def require_path(self) -> None:
        """Check that the file is in place. Raises: DirectoryReplaced: the path names another file, or none."""
        if not is_at(self._path, self._identity):
            raise DirectoryReplaced(self._directory, DATA_FILE)

    def release(self) -> None:
        """Close the file and release its lock. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def require_file(directory: Path) -> None:
    """Check that the data file is a plain file; opening a pipe would block. Raises: DirectoryUnusable."""
    try:
        mode = (directory / DATA_FILE).stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.filemode(mode)[0], "a device")
        raise DirectoryUnusable(directory, f"{DATA_FILE} is {kind} and no file", RESTORE)


def written_at(directory: Path) -> float | None:
    """Time of the last write to the file, Unix seconds by the clock at that time; None if there is no file."""
    try:
        return (directory / DATA_FILE).stat().st_mtime
    except OSError:
        return None


def require_whole(directory: Path) -> None:
    """Check the data file. Raises: DirectoryUnusable: not a plain file, or pages in use are missing; OSError."""
    require_file(directory)
    descriptor = os.open(directory / DATA_FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _require_whole(directory, descriptor)
    finally:
        os.close(descriptor)


def _require_whole(directory: Path, descriptor: int) -> None:
    """Check that no page in use is missing; a file without a readable meta page is left to LMDB, which refuses it."""
    size = os.fstat(descriptor).st_size
    meta = _newest_meta(descriptor)
    if meta is None:
        return
    page_bytes, last_page, free_root = meta
    first_missing = size // page_bytes
    if first_missing > last_page:
        return
    # Pages allocated and freed in one transaction are never written: an intact file may end before them.
    missing = set(range(first_missing, last_page + 1))
    with suppress(_NotThere):
        missing.difference_update(_free_pages(descriptor, page_bytes, free_root))
    if missing:
        raise DirectoryUnusable(
            directory, f"{DATA_FILE} is cut short: it has {size} bytes of {(last_page + 1) * page_bytes}", RESTORE
        )


def _newest_meta(descriptor: int) -> tuple[int, int, int] | None:
    """Page size in bytes, last page, and root of the tree of free pages, after the newest transaction."""
    first = _meta_at(descriptor, 0)
    if first is None:
        return None
    second = _meta_at(descriptor, first[1])
    newest = max(first, second or first)
    return newest[1:]


def _meta_at(descriptor: int, start: int) -> tuple[int, int, int, int] | None:
    """The transaction's number, followed by the result of `_newest_meta`."""
    page = os.pread(descriptor, _PAGE_HEADER.size + _META.size, start)
    if len(page) < _PAGE_HEADER.size + _META.size:
        return None
    magic, version, _, _, free, _, last_page, transaction = _META.unpack_from(page, _PAGE_HEADER.size)
    page_bytes, *_, root = _TREE.unpack(free)
    if magic != _MAGIC or version != _VERSION or not 512 <= page_bytes <= 65536:
        return None
    return transaction, page_bytes, last_page, root


class _NotThere(Exception):
    """A page of the tree is missing from the file, or is not a tree page."""


def _free_pages(descriptor: int, page_bytes: int, root: int, depth: int = 0) -> Iterator[int]:
    """Numbers of the free pages. Raises: _NotThere."""
    if root == _NO_PAGE:
        return
    page = _read(descriptor, root * page_bytes, page_bytes)
    _, _, flags, lower, _ = _PAGE_HEADER.unpack_from(page)
    if depth > _DEEPEST or not flags & (_BRANCH | _LEAF) or not _PAGE_HEADER.size <= lower <= page_bytes:
        raise _NotThere
    for (place,) in struct.iter_unpack("=H", page[_PAGE_HEADER.size : lower & ~1]):
        if place + _NODE.size > page_bytes:
            raise _NotThere
        low, high, node_flags, key_bytes = _NODE.unpack_from(page, place)
        if flags & _BRANCH:
            yield from _free_pages(descriptor, page_bytes, low | high << 16 | node_flags << 32, depth + 1)
            continue
        start, size = place + _NODE.size + key_bytes, low | high << 16
        pages = page[start : start + size]
        if node_flags & _IS_BIG:
            (large,) = _NUMBER.unpack_from(page, start)
            pages = _read(descriptor, large * page_bytes + _LARGE_PAGE_HEADER.size, size)
        # The first number is the count of those that follow.
        yield from (number for (number,) in struct.iter_unpack("=Q", pages[_NUMBER.size : len(pages) & ~7]))


def _read(descriptor: int, start: int, size: int) -> bytes:
    if start >= 2**63:
        raise _NotThere
    found = os.pread(descriptor, size, start)
    if len(found) < size:
        raise _NotThere
    return found


def code_of(error: BaseException) -> int:
    """The system's or LMDB's error number; 0 if the error has none."""
    if isinstance(error, OSError):
        return error.errno or 0
    if isinstance(error, lmdb.DiskError):
        return errno.ENOSPC
    return int(getattr(error, "code", 0))


def cause_of(error: BaseException) -> tuple[str, str] | None:
    """Cause and remedy of an error of the disk or the system, otherwise None."""
    code = code_of(error)
    if code in _NO_ROOM:
        return _NO_ROOM[code], "make room on the disk"
    return _FAULTS.get(code)


def fault_of(error: BaseException, directory: Path, free_bytes: int, used_bytes: int) -> HummockError | None:
    """The error for callers; None if the disk is not at fault. `free_bytes` of the disk are 0 if unknown."""
    code, cause = code_of(error), cause_of(error)
    if cause is None:
        return None
    # LMDB reports a write cut short by a full disk or a process limit as an I/O error.
    is_limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
    if code == errno.EIO and (free_bytes < _ONE_WRITE_BYTES or is_limited):
        code = errno.ENOSPC
    if code in _NO_ROOM:
        return DiskFull(_NO_ROOM[code], used_bytes)
    return DiskFault(directory, errno.errorcode[code], *cause)
