"""The walk over a repository: every text file worth indexing, opened safely, and a reason for each that is not.

Nothing outside the root is read and no symbolic link is followed, whatever changes on disk meanwhile.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

from hummock_tools.indexing.chunker import SourceFile, suffix_of
from hummock_tools.indexing.decoding import NOTEBOOK_SUFFIX, cells_as_text, decoded
from hummock_tools.indexing.skips import (
    GIT_RULES,
    MAX_FILE_BYTES,
    OWN_RULES,
    OnSkip,
    Rules,
    SkipReason,
    content_reason,
    directory_reason,
    is_ignored,
    is_presentable,
    may_be_brought_back,
    name_reason,
)


def _flags(*names: str) -> int:
    """Flags of `os.open`; Windows has none of them, and there `open_root` refuses."""
    return sum(getattr(os, name, 0) for name in names)


_DIRECTORY_FLAGS = _flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
# O_NONBLOCK: a file that turned into a FIFO between the look and the opening must not hang us.
_FILE_FLAGS = _flags("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")
_GIT_TIMEOUT_S = 120
# What would point git at another repository; a hook sets these.
_REDIRECTING = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"}
_IGNORE_FILE_BYTES = 1_000_000
_VENV_MARK = "pyvenv.cfg"


class Refused(Exception):
    """A path below the root that is not read, and the reason."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def walk(root: Path, on_skip: OnSkip) -> Iterator[SourceFile]:
    """Yield the files to index, sorted by path; others are reported to `on_skip`."""
    with open_root(root) as root_fd:
        own = own_rules(root_fd)
        for path in list_paths(root, root_fd, own, on_skip):
            try:
                yield source_file(root_fd, path, own)
            except Refused as refused:
                on_skip(path, refused.reason)


def own_rules(root_fd: int) -> Rules | None:
    """Rules of the root's `.hummockignore`, or None if there is no such file.

    It leaves out more than git does, and brings back (`!`) what git or this index would leave out. Raises: ValueError,
    where a line is no pattern; MissingExtra.
    """
    try:
        data = read_file(root_fd, OWN_RULES, _IGNORE_FILE_BYTES)
    except Refused:
        return None
    try:
        return Rules.read("", data)
    except ValueError as error:
        raise ValueError(f"{OWN_RULES}: {error}") from error


def source_file(root_fd: int, path: str, own: Rules | None) -> SourceFile:
    """The file at a path that `list_paths` gave. Raises: Refused, when it is not to be indexed."""
    if not is_presentable(path):
        raise Refused(SkipReason.BAD_NAME)
    is_wanted = _verdict(own, path) is False
    _refuse(name_reason(path), is_wanted)
    text = decoded(read_file(root_fd, path, MAX_FILE_BYTES))
    if isinstance(text, SkipReason):
        raise Refused(text)
    data = cells_as_text(text.data) if suffix_of(path) == NOTEBOOK_SUFFIX else text.data
    _refuse(content_reason(path, data), is_wanted)
    return SourceFile(path=path, data=data, guessed=text.guessed)


def _refuse(reason: SkipReason | None, is_wanted: bool) -> None:
    if reason is not None and not (is_wanted and may_be_brought_back(reason)):
        raise Refused(reason)


def _verdict(own: Rules | None, path: str) -> bool | None:
    return None if own is None else own.verdict(path)


def list_paths(root: Path, root_fd: int, own: Rules | None, on_skip: OnSkip) -> list[str]:
    """Paths of the files below `root` that its ignore rules let through, relative to it, sorted, each once.

    `on_skip` is called with path and reason for each file that a rule leaves out, and once for each directory that is
    not entered (its path ends with `/`), but not for what git ignores. Raises: MissingExtra, where there are ignore
    rules that git cannot read for us, and the extra `code` is not installed.
    """
    # An empty answer means that a repository around the root ignores it, as with a package inside an environment.
    # The user has named this root, so it is walked all the same.
    listed = _listed_by_git(root.resolve(strict=True), own)
    if listed:
        return _without_skipped(listed, own, on_skip)
    return sorted(_walked(root_fd, own, on_skip))


def _listed_by_git(root: Path, own: Rules | None) -> list[str]:
    """Return paths below the root that git tracks or does not ignore, and those included again; empty without git."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return []
    listed = _ls_files(root, "--cached", "--others", "--exclude-standard")
    if listed and own is not None and own.bring_back:
        ignored = _ls_files(root, "--others", "--ignored", "--exclude-standard", "--directory")
        wanted = [path for path in ignored if own.verdict(path) is False]
        if wanted:
            listed += _ls_files(root, "--others", "--", *wanted)
    return sorted(set(listed))


def _ls_files(root: Path, *arguments: str) -> list[str]:
    return [os.fsdecode(path) for path in git(root, "ls-files", "-z", *arguments).split(b"\0") if path]


def git(root: Path, *arguments: str) -> bytes:
    """Output of a git command in the folder `root`; empty if git is missing or fails."""
    program = shutil.which("git")
    if program is None:
        return b""
    # A repository's own settings can name programs to run; the two that listing would start are switched off.
    command = [program, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs"]
    kept = {name: value for name, value in os.environ.items() if name not in _REDIRECTING}
    try:
        done = subprocess.run(
            [*command, "-C", os.fspath(root), *arguments],
            env={**kept, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


def _without_skipped(paths: Sequence[str], own: Rules | None, on_skip: OnSkip) -> list[str]:
    environments = {parent for parent, _, name in (path.rpartition("/") for path in paths) if name == _VENV_MARK}
    environments.discard("")
    kept: list[str] = []
    reported: set[str] = set()
    for path in paths:
        if path.endswith("/"):  # an untracked repository within this one
            on_skip(path, SkipReason.NESTED_REPOSITORY)
            continue
        skipped = _skipped_parent(path, environments, own)
        if skipped is None and _verdict(own, path):
            skipped = path, SkipReason.EXCLUDED
        if skipped is None:
            kept.append(path)
        elif skipped[0] not in reported:
            reported.add(skipped[0])
            on_skip(*skipped)
    return kept


def _skipped_parent(path: str, environments: set[str], own: Rules | None) -> tuple[str, SkipReason] | None:
    for folder in accumulate(path.split("/")[:-1], "{}/{}".format):
        reason = SkipReason.VIRTUAL_ENVIRONMENT if folder in environments else folder_reason(folder, own)
        if reason is not None:
            return f"{folder}/", reason
    return None


def folder_reason(folder: str, own: Rules | None) -> SkipReason | None:
    """Why a folder of this path is not entered, or None."""
    verdict = _verdict(own, f"{folder}/")
    return SkipReason.EXCLUDED if verdict else directory_reason(folder, is_wanted=verdict is False)


def _walked(root_fd: int, own: Rules | None, on_skip: OnSkip) -> Iterator[str]:
    """Paths below the root with nested `.gitignore` files applied; ignored directories are not entered."""
    pending: list[tuple[str, tuple[Rules, ...]]] = [("", ())]
    while pending:
        folder, rules = pending.pop()
        try:
            entries = _entries(root_fd, folder)
        except Refused as refused:
            on_skip(folder, refused.reason)
            continue
        if folder and (".git" in entries or _VENV_MARK in entries):
            is_nested = ".git" in entries
            on_skip(folder, SkipReason.NESTED_REPOSITORY if is_nested else SkipReason.VIRTUAL_ENVIRONMENT)
            continue
        if GIT_RULES in entries:
            rules = (*rules, *_git_rules(root_fd, folder))
        for name, is_directory in sorted(entries.items()):
            path = f"{folder}{name}"
            shown = f"{path}/" if is_directory else path
            verdict = _verdict(own, shown)
            if verdict is None and is_ignored(rules, shown):
                continue
            reason = SkipReason.EXCLUDED if verdict else folder_reason(path, own) if is_directory else None
            if reason is not None:
                on_skip(shown, reason)
            elif is_directory:
                pending.append((shown, rules))
            else:
                yield path


def _entries(root_fd: int, folder: str) -> dict[str, bool]:
    """Names in a folder, and whether each is a directory; a link to one is none."""
    with open_directory(root_fd, folder.rstrip("/")) as descriptor:
        try:
            with os.scandir(descriptor) as found:
                return {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
        except OSError as error:
            raise Refused(SkipReason.UNREADABLE) from error


def _git_rules(root_fd: int, folder: str) -> Iterator[Rules]:
    try:
        yield Rules.read(folder, read_file(root_fd, f"{folder}{GIT_RULES}", _IGNORE_FILE_BYTES))
    except (Refused, ValueError):  # a link, or a pattern that is none: git ignores both too
        return


@contextmanager
def open_root(root: Path) -> Iterator[int]:
    """A descriptor of the directory `root`; a link given as the root itself is the caller's wish and followed.

    Raises: FileNotFoundError, NotADirectoryError; OSError on Windows, where a path cannot be kept below a directory.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "folders are read on Linux and macOS alone; on Windows do this in WSL", str(root))
    descriptor = os.open(root.resolve(strict=True), _flags("O_DIRECTORY", "O_CLOEXEC"))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_directory(root_fd: int, path: str) -> Iterator[int]:
    """A descriptor of the directory `path` below the root; the empty path is the root.

    Raises: Refused, where it is not a directory, a link stands in the way, or the path leaves the root.
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
    """The bytes of a regular file below the root.

    Raises: Refused, where it is not regular, is longer than `limit_bytes`, cannot be read, or lies outside.
    """
    parent, _, name = path.rpartition("/")
    if not _parts(name):
        raise Refused(SkipReason.OUTSIDE)
    with open_directory(root_fd, parent) as directory_fd:
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
