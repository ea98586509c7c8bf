"""Opening files beneath a directory, whatever their names, links and neighbours try.

Every path is opened part by part from the root's descriptor, following no symbolic link, so a directory that is swapped
for a link while the walk runs leads to an error and never out of the root.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hummock.indexing.skips import SkipReason

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a file that turned into a FIFO between the look and the opening must not hang us.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Refused(Exception):
    """A path beneath the root that is not read, and the reason."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextmanager
def opened_root(root: Path) -> Iterator[int]:
    """A descriptor of the directory `root`; a link given as the root itself is the caller's wish and followed.

    Raises:
        FileNotFoundError, NotADirectoryError: There is no such directory.
    """
    descriptor = os.open(root.resolve(strict=True), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_directory(root_fd: int, path: str) -> Iterator[int]:
    """A descriptor of the directory `path` beneath the root; the empty path is the root.

    Raises:
        Refused: It is not a directory, a link stands in the way, or the path leaves the root.
    """
    descriptor = os.dup(root_fd)
    try:
        for part in _parts(path):
            inner = _open(part, _DIRECTORY_FLAGS, descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(root_fd: int, path: str, limit_bytes: int) -> bytes:
    """The bytes of a regular file beneath the root.

    Raises:
        Refused: The file is not regular, is longer than `limit_bytes`, cannot be read, or lies outside.
    """
    parent, _, name = path.rpartition("/")
    if not _parts(name):
        raise Refused(SkipReason.OUTSIDE)
    with opened_directory(root_fd, parent) as directory_fd:
        # Looking first: merely opening some devices has effects.
        _require_regular(_look(name, directory_fd), limit_bytes)
        descriptor = _open(name, _FILE_FLAGS, directory_fd)
    with os.fdopen(descriptor, "rb") as file:
        _require_regular(os.fstat(descriptor), limit_bytes)
        try:
            data = file.read(limit_bytes + 1)
        except OSError as error:
            raise Refused(SkipReason.UNREADABLE) from error
    if len(data) > limit_bytes:
        raise Refused(SkipReason.TOO_LARGE)
    return data


def _parts(path: str) -> list[str]:
    parts = path.split("/") if path else []
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise Refused(SkipReason.OUTSIDE)
    return parts


def _look(name: str, directory_fd: int) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Refused(SkipReason.MISSING) from error
    except OSError as error:
        raise Refused(SkipReason.UNREADABLE) from error


def _require_regular(found: os.stat_result, limit_bytes: int) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise Refused(SkipReason.SYMLINK)
    if stat.S_ISDIR(found.st_mode):
        raise Refused(SkipReason.NESTED_REPOSITORY)  # only git lists a directory among files
    if not stat.S_ISREG(found.st_mode):
        raise Refused(SkipReason.NOT_REGULAR)
    if found.st_size > limit_bytes:
        raise Refused(SkipReason.TOO_LARGE)


def _open(name: str, flags: int, directory_fd: int) -> int:
    try:
        return os.open(name, flags, dir_fd=directory_fd)
    except FileNotFoundError as error:
        raise Refused(SkipReason.MISSING) from error
    except OSError as error:
        is_link = stat.S_ISLNK(_look(name, directory_fd).st_mode)
        raise Refused(SkipReason.SYMLINK if is_link else SkipReason.UNREADABLE) from error
