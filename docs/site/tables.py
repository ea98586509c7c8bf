"""Markdown that is written by the build: tables, and text that must not be read as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

WITHOUT_CONTENTS = "---\nhide: [toc]\n---\n\n"
"""Beginning of a page whose tables take the room of its table of contents."""

_CODE = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"([\\*\[\]<>{}|])")


def cell(text: str) -> str:
    """The text in one line that shows as it is written; code between backticks stays code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown as `cell` makes it, or code between backticks, in which a bar needs no escape."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: {"<": "&lt;", ">": "&gt;", "|": "&#124;"}.get(found[1], f"\\{found[1]}"), text)
