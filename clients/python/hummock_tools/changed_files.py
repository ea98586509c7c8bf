"""Files that an agent's tool calls changed, as paths below the repository's root, by `hummock-hook`'s rules."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # importing typing would take a tenth of a hook's time
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_FILES = 256
"""Files of a turn that the contract takes."""
_LONGEST_PATH = 1024
_EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "write_file", "replace"})
"""Tools of Claude Code and of Gemini CLI that change the one file that they name."""
_NAMED = ("file_path", "notebook_path")
_PATCHES = ("command", "input", "patch")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


def changed_by(tool: str, given: object) -> list[str]:
    """Paths of the files that a call changes, as it names them; none for tools that change no file or are not known."""
    if tool == "apply_patch":
        fields = given if isinstance(given, dict) else {"patch": given}
        return [path for name in _PATCHES for path in _PATCHED.findall(_text(fields.get(name)))]
    if tool not in _EDITORS or not isinstance(given, dict):
        return []
    return [path for name in _NAMED if isinstance(path := given.get(name), str) and path]


def changed_in(content: object) -> list[str]:
    """Paths of the files that the tool calls in the content of a message change, in the blocks of Claude's messages."""
    blocks = content if isinstance(content, list) else []
    calls = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    return [path for call in calls for path in changed_by(str(call.get("name")), call.get("input"))]


def below_root(folder: str, paths: Iterable[str]) -> list[str]:
    """The paths below the root of the repository around the folder, or else below it; each once, at most 256.

    Relative ones begin at the folder. Those outside of the root, or longer than 1,024 characters, are left out.
    """
    if not os.path.isabs(folder):
        return []
    root = _root_of(folder)
    found: dict[str, None] = {}
    for path in paths:
        try:
            inside = os.path.relpath(os.path.join(folder, path), root).replace(os.sep, "/")
        except ValueError:
            continue  # it is on another drive
        if inside.partition("/")[0] in (".", "..") or "\\" in inside or not inside.isprintable():
            continue
        if len(inside) <= _LONGEST_PATH and inside[1:2] != ":":
            found[inside] = None
    return list(found)[:MOST_FILES]


def _root_of(folder: str) -> str:
    """The nearest folder above that holds `.git`, a worktree's own too; the folder itself without one."""
    at = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(at, ".git")):
        above = os.path.dirname(at)
        if above == at:
            return folder
        at = above
    return at


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""
