"""The project of a folder where nobody names one: MCP servers, hooks and commands of one folder share it."""

from __future__ import annotations

import os
import stat

LONGEST_NAME = 256
"""Characters."""


def open_folder() -> str:
    """The folder that an agent says is open (CLAUDE_PROJECT_DIR), else the current one. Raises: FileNotFoundError."""
    return os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()


def project_of(folder: str | os.PathLike[str]) -> str:
    """The name of the repository that holds the folder, else the folder's own; empty for the root of the file system.

    At most 256 characters.
    """
    name = os.path.basename(repository_of(folder) or os.path.abspath(folder))
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\ufffd", "?")[:LONGEST_NAME]


def repository_of(folder: str | os.PathLike[str]) -> str:
    """The path of the repository that holds the folder, for a worktree that of its repository; empty outside of any."""
    at = os.path.abspath(folder)
    while True:
        try:
            mode = os.lstat(os.path.join(at, ".git")).st_mode
        except (OSError, ValueError):
            above = os.path.dirname(at)
            if above == at:
                return ""
            at = above
            continue
        return _main_repository_of(at) if stat.S_ISREG(mode) else at


def _main_repository_of(worktree: str) -> str:
    """The repository of a worktree; the folder itself where its .git names none, as a submodule's does."""
    try:
        with open(os.path.join(worktree, ".git"), "rb") as file:
            text = file.read(4096).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return worktree
    before, is_worktree, _ = text.removeprefix("gitdir: ").partition("/.git/worktrees/")
    if not (text.startswith("gitdir: ") and is_worktree and os.path.isabs(before)):
        return worktree
    return before
