"""Walking a folder in one go."""

from collections.abc import Iterator
from pathlib import Path

from hummock.indexing import SourceFile
from hummock.indexing.skips import OnSkip
from hummock.indexing.walk import Refused, list_paths, open_root, own_rules, source_file


def walk(root: Path, on_skip: OnSkip) -> Iterator[SourceFile]:
    """The files that are indexed, sorted by path; the others are told to `on_skip`."""
    with open_root(root) as root_fd:
        own = own_rules(root_fd)
        for path in list_paths(root, root_fd, own, on_skip):
            try:
                yield source_file(root_fd, path, own)
            except Refused as refused:
                on_skip(path, refused.reason)
