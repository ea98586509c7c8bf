"""The walk over a repository: every text file worth indexing, and a reason for each that is not."""

from collections.abc import Iterator
from pathlib import Path

from hummock.indexing.beneath import Refused, opened_root, read_file
from hummock.indexing.listing import list_paths
from hummock.indexing.skips import MAX_FILE_BYTES, OnSkip, SkipReason, content_reason, is_presentable, name_reason
from hummock.indexing.source import SourceFile


def walk(root: Path, on_skip: OnSkip) -> Iterator[SourceFile]:
    """Yield the text files below `root` that its ignore rules let through, sorted by path.

    Nothing outside the root is read and no symbolic link is followed, whatever changes on disk meanwhile.

    Args:
        root: A directory; inside a git work tree or not.
        on_skip: Called with path and reason for each file that is left out, and once for each directory that is
            not entered (its path ends with `/`). Ignored paths are not reported.

    Raises:
        FileNotFoundError, NotADirectoryError: `root` is not a directory.
    """
    with opened_root(root) as root_fd:
        for path in list_paths(root.resolve(strict=True), root_fd, on_skip):
            try:
                yield _source_file(root_fd, path)
            except Refused as refused:
                on_skip(path, refused.reason)


def _source_file(root_fd: int, path: str) -> SourceFile:
    if not is_presentable(path):
        raise Refused(SkipReason.BAD_NAME)
    reason = name_reason(path)
    if reason is not None:
        raise Refused(reason)
    data = read_file(root_fd, path, MAX_FILE_BYTES)
    reason = content_reason(data)
    if reason is not None:
        raise Refused(reason)
    return SourceFile(path=path, data=data)
