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


def is_failure(response: object) -> bool:
    """Whether a tool's response tells that its call failed: `error` of Gemini CLI, `success` of Claude Code, Codex."""
    return isinstance(response, dict) and (response.get("error") is not None or response.get("success") is False)


def changed_in(content: object) -> list[tuple[str, str]]:
    """Ids of the tool calls in a message of Claude Code, and the path of each file that they are to change."""
    found = []
    for call in _blocks_of(content, "tool_use"):
        found += [(_text(call.get("id")), path) for path in changed_by(_text(call.get("name")), call.get("input"))]
    return found


def failed_in(content: object) -> set[str]:
    """Ids of the tool calls that failed or that the user refused, by the results in a message of Claude Code."""
    failed = [result for result in _blocks_of(content, "tool_result") if result.get("is_error") is True]
    return {call for result in failed if (call := _text(result.get("tool_use_id")))}


def _blocks_of(content: object, kind: str) -> list[dict[str, object]]:
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


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
