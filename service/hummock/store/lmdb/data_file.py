"""LMDB's file as the file system has it: a file, whole, and still the one that its path names.

LMDB maps the file, and a page of the map that the file does not have ends the process without a word (SIGBUS). So its
size is compared with what its meta pages say before it is mapped, and with what it was while it is used: LMDB's files
never shrink.

Source of the format: `MDB_page`, `MDB_meta`, `MDB_db` and `MDB_node` of LMDB 0.9's `mdb.c`, for words of 64 bits.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hummock.store.errors import DataFileCut, DirectoryInUse, DirectoryReplaced, DirectoryUnusable
from hummock.store.lmdb.lock import identity_of, is_at, let_go_in_child

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


class DataFile:
    """The open data file. A writer locks it as well, so that a removed lock file lets no second writer in."""

    def __init__(self, directory: Path, *, is_read_only: bool) -> None:
        """Opens the file, which one who writes makes.

        Args:
            directory: Where it is.
            is_read_only: Whether another process writes.

        Raises: DirectoryInUse; DirectoryUnusable: it is no file, or cut short; OSError.
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
        let_go_in_child(self)

    def require_size(self) -> None:
        """Raises: DataFileCut: the file is smaller than it was, or has once been: what was lost stays lost."""
        # Read before the size is: while this thread asks for it, the file grows and another thread notes that.
        known = self._bytes
        size = os.fstat(self._descriptor).st_size
        if size < known or self._is_cut:
            self._is_cut = True
            raise DataFileCut(self._directory, size, known)
        self._bytes = size

    def require_path(self) -> None:
        """Raises: DirectoryReplaced: the path names another file, or none."""
        if not is_at(self._path, self._identity):
            raise DirectoryReplaced(self._directory, DATA_FILE)

    def release(self) -> None:
        """Lets others in. Doing it again does nothing."""
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
        raise DirectoryUnusable(directory, f"{DATA_FILE} is {_kind(mode)} and no file", RESTORE)


def written_at(directory: Path) -> float | None:
    """Time of the last write to the file, Unix seconds by the clock of then; None if there is no file."""
    try:
        return (directory / DATA_FILE).stat().st_mtime
    except OSError:
        return None


def require_whole(directory: Path) -> None:
    """Raises: DirectoryUnusable: the file is no file, or lacks pages that are in use; OSError."""
    require_file(directory)
    descriptor = os.open(directory / DATA_FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _require_whole(directory, descriptor)
    finally:
        os.close(descriptor)


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _require_whole(directory: Path, descriptor: int) -> None:
    """What has no meta page that can be read is left to LMDB, which refuses it."""
    size = os.fstat(descriptor).st_size
    meta = _newest_meta(descriptor)
    if meta is None:
        return
    page_bytes, last_page, free_root = meta
    first_missing = size // page_bytes
    if first_missing > last_page:
        return
    # Pages that were taken and given back in one transaction are never written: LMDB's own files end before them.
    missing = set(range(first_missing, last_page + 1))
    with suppress(_NotThere):
        missing.difference_update(_free_pages(descriptor, page_bytes, free_root))
    if missing:
        raise DirectoryUnusable(
            directory,
            f"{DATA_FILE} is cut short: it has {size} bytes of {(last_page + 1) * page_bytes}",
            RESTORE,
        )


def _newest_meta(descriptor: int) -> tuple[int, int, int] | None:
    """Bytes of a page, the last page, and the root of the tree of free pages, as the newest transaction left them."""
    first = _meta_at(descriptor, 0)
    if first is None:
        return None
    second = _meta_at(descriptor, first[1])
    newest = max(first, second or first)
    return newest[1:]


def _meta_at(descriptor: int, start: int) -> tuple[int, int, int, int] | None:
    """The transaction, and what `_newest_meta` says."""
    page = os.pread(descriptor, _PAGE_HEADER.size + _META.size, start)
    if len(page) < _PAGE_HEADER.size + _META.size:
        return None
    magic, version, _, _, free, _, last_page, transaction = _META.unpack_from(page, _PAGE_HEADER.size)
    page_bytes, *_, root = _TREE.unpack(free)
    if magic != _MAGIC or version != _VERSION or not 512 <= page_bytes <= 65536:
        return None
    return transaction, page_bytes, last_page, root


class _NotThere(Exception):
    """A page of the tree is not in the file, or is no page of a tree."""


def _free_pages(descriptor: int, page_bytes: int, root: int, depth: int = 0) -> Iterator[int]:
    """The pages that are in no use. Raises: _NotThere."""
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
        # The first number says how many follow.
        yield from (number for (number,) in struct.iter_unpack("=Q", pages[_NUMBER.size : len(pages) & ~7]))


def _read(descriptor: int, start: int, size: int) -> bytes:
    if start >= 2**63:
        raise _NotThere
    found = os.pread(descriptor, size, start)
    if len(found) < size:
        raise _NotThere
    return found
