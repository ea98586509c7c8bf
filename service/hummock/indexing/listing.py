"""The paths of a repository that its ignore rules let through.

git is asked where it can answer, since it knows the user's global rules too; elsewhere nested `.gitignore` files are
read here, with the same meaning. Ignored paths are nobody's business and are not reported as skipped.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hummock.indexing.beneath import Refused, opened_directory, read_file
from hummock.indexing.skips import OnSkip, SkipReason, directory_reason

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_GIT_TIMEOUT_S = 120
_IGNORE_FILE = ".gitignore"
_IGNORE_FILE_BYTES = 1_000_000
_VENV_MARK = "pyvenv.cfg"


class MissingExtra(RuntimeError):
    """A part of the installation that this needs is not there; `extra` names it."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"this needs an extra that is not installed: pip install 'hummock[{extra}]'")
        self.extra = extra


def list_paths(root: Path, root_fd: int, on_skip: OnSkip) -> list[str]:
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
    spec: "GitIgnoreSpec"


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
    with opened_directory(root_fd, folder.rstrip("/")) as descriptor:
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


def _ignore_spec(lines: Sequence[str]) -> "GitIgnoreSpec":
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
