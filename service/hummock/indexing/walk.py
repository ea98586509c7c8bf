"""The walk over a repository: every text file worth indexing, opened safely, and a reason for each that is not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hummock.indexing.fragment import SourceFile
from hummock.indexing.skips import (
    MAX_FILE_BYTES,
    OnSkip,
    SkipReason,
    content_reason,
    directory_reason,
    is_presentable,
    name_reason,
)

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a file that turned into a FIFO between the look and the opening must not hang us.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GIT_TIMEOUT_S = 120
_IGNORE_FILE = ".gitignore"
_IGNORE_FILE_BYTES = 1_000_000
_VENV_MARK = "pyvenv.cfg"


class MissingExtra(RuntimeError):
    """A part of the installation that this needs is not there; `extra` names it."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"this needs an extra that is not installed: pip install 'hummock[{extra}]'")
        self.extra = extra


class Refused(Exception):
    """A path below the root that is not read, and the reason."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


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
    with open_root(root) as root_fd:
        for path in _list_paths(root.resolve(strict=True), root_fd, on_skip):
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


def _list_paths(root: Path, root_fd: int, on_skip: OnSkip) -> list[str]:
    """Paths of candidates relative to the root, sorted, each once; directories that are skipped are reported.

    Raises:
        MissingExtra: There are ignore rules that git cannot read for us, and the extra `code` is not installed.
    """
    # An empty answer means that a repository around the root ignores it, as with a package inside an environment.
    # The user has named this root, so it is walked all the same.
    listed = _listed_by_git(root)
    if listed:
        return _without_skipped_directories(listed, on_skip)
    return sorted(_walked(root_fd, on_skip))


def _listed_by_git(root: Path) -> list[str]:
    """What git lists below the root: tracked, or neither tracked nor ignored. Empty when git cannot say."""
    git = shutil.which("git")
    if git is None or not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return []
    # A repository's own settings can name programs to run; the two that listing would start are switched off.
    command = [git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", os.fspath(root)]
    command += ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return sorted({os.fsdecode(path) for path in done.stdout.split(b"\0") if path})


def _environment() -> dict[str, str]:
    """This process's environment without what would point git at another repository (a hook sets these)."""
    redirecting = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"}
    kept = {name: value for name, value in os.environ.items() if name not in redirecting}
    return kept | {"GIT_OPTIONAL_LOCKS": "0"}


def _without_skipped_directories(paths: Sequence[str], on_skip: OnSkip) -> list[str]:
    environments = {parent for parent, _, name in (path.rpartition("/") for path in paths) if name == _VENV_MARK}
    environments.discard("")
    kept: list[str] = []
    reported: set[str] = set()
    for path in paths:
        if path.endswith("/"):  # an untracked repository within this one
            on_skip(path, SkipReason.NESTED_REPOSITORY)
            continue
        skipped = _skipped_parent(path, environments)
        if skipped is None:
            kept.append(path)
        elif skipped[0] not in reported:
            reported.add(skipped[0])
            on_skip(*skipped)
    return kept


def _skipped_parent(path: str, environments: set[str]) -> tuple[str, SkipReason] | None:
    parts = path.split("/")
    for depth in range(1, len(parts)):
        folder = "/".join(parts[:depth])
        reason = SkipReason.VIRTUAL_ENVIRONMENT if folder in environments else directory_reason(folder)
        if reason is not None:
            return f"{folder}/", reason
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rules:
    """One `.gitignore`: its rules speak of paths below `prefix`."""

    prefix: str
    spec: GitIgnoreSpec


def _walked(root_fd: int, on_skip: OnSkip) -> Iterator[str]:
    """Paths below the root with nested `.gitignore` files applied; ignored directories are not entered."""
    pending: list[tuple[str, tuple[_Rules, ...]]] = [("", ())]
    while pending:
        folder, rules = pending.pop()
        try:
            entries = _entries(root_fd, folder)
        except Refused as refused:
            on_skip(folder, refused.reason)
            continue
        reason = _marked(entries) if folder else None
        if reason is not None:
            on_skip(folder, reason)
            continue
        if _IGNORE_FILE in entries:
            rules = (*rules, *_rules(root_fd, folder))
        for name, is_directory in sorted(entries.items()):
            path = f"{folder}{name}"
            if _is_ignored(rules, path, is_directory):
                continue
            if not is_directory:
                yield path
            elif (vendored := directory_reason(path)) is not None:
                on_skip(f"{path}/", vendored)
            else:
                pending.append((f"{path}/", rules))


def _entries(root_fd: int, folder: str) -> dict[str, bool]:
    """Names in a folder, and whether each is a directory; a link to one is none."""
    with open_directory(root_fd, folder.rstrip("/")) as descriptor:
        try:
            with os.scandir(descriptor) as found:
                return {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
        except OSError as error:
            raise Refused(SkipReason.UNREADABLE) from error


def _marked(entries: dict[str, bool]) -> SkipReason | None:
    if ".git" in entries:
        return SkipReason.NESTED_REPOSITORY
    return SkipReason.VIRTUAL_ENVIRONMENT if _VENV_MARK in entries else None


def _rules(root_fd: int, folder: str) -> Iterator[_Rules]:
    try:
        data = read_file(root_fd, f"{folder}{_IGNORE_FILE}", _IGNORE_FILE_BYTES)
        lines = data.decode("utf-8-sig", errors="replace").splitlines()
        yield _Rules(prefix=folder, spec=_ignore_spec(lines))
    except (Refused, ValueError):  # a link, or a pattern that is none: git ignores both too
        return


def _ignore_spec(lines: Sequence[str]) -> GitIgnoreSpec:
    try:
        from pathspec import GitIgnoreSpec
    except ImportError as error:
        raise MissingExtra("code") from error
    return GitIgnoreSpec.from_lines(lines)


def _is_ignored(rules: Sequence[_Rules], path: str, is_directory: bool) -> bool:
    """The nearest `.gitignore` that speaks of the path decides."""
    for rule in reversed(rules):
        relative = path.removeprefix(rule.prefix) + ("/" if is_directory else "")
        verdict = rule.spec.check_file(relative).include
        if verdict is not None:
            return bool(verdict)
    return False


@contextmanager
def open_root(root: Path) -> Iterator[int]:
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
def open_directory(root_fd: int, path: str) -> Iterator[int]:
    """A descriptor of the directory `path` below the root; the empty path is the root.

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
    """The bytes of a regular file below the root.

    Raises:
        Refused: The file is not regular, is longer than `limit_bytes`, cannot be read, or lies outside.
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
