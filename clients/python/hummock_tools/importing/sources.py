"""The table of tools whose memories can be imported: how each is read, where its files are, how they are known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hummock_tools.importing import claude_code, codex, copilot, databases
from hummock_tools.importing.conversations import Finding, Wrong, json_lines, transcripts
from hummock_tools.importing.databases import NotRead, is_database, tables
from hummock_tools.importing.formats import openmemory_member, read_mem0

_LOOKED_AT_LINES = 20


class Source(StrEnum):
    """A tool that keeps memories or conversations."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CURSOR = "cursor"
    COPILOT = "copilot"
    MARKDOWN = "markdown"
    MEM0 = "mem0"
    OPENMEMORY = "openmemory"
    CLAUDE_MEM = "claude-mem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How a tool's files are read, and where they are unless a path is given; None if they are no matter where."""

    read: Callable[[Path], Iterator[Finding]]
    well_known: Callable[[], Path] | None = None


def _below_home(variable: str, folder: str, inside: str) -> Callable[[], Path]:
    """Finds what a tool keeps inside a folder of the home directory, or where an environment variable has moved it."""

    def find() -> Path:
        moved = os.environ.get(variable)
        return (Path(moved) if moved else Path.home() / folder) / inside

    return find


READERS: dict[Source, Reader] = {
    Source.CLAUDE_CODE: Reader(
        read=claude_code.read, well_known=_below_home("CLAUDE_CONFIG_DIR", ".claude", "projects")
    ),
    Source.CODEX: Reader(read=codex.read, well_known=_below_home("CODEX_HOME", ".codex", "sessions")),
    Source.CURSOR: Reader(read=databases.read_cursor, well_known=databases.cursor_database),
    # Chats of VS Code have to be named.
    Source.COPILOT: Reader(read=copilot.read, well_known=_below_home("COPILOT_HOME", ".copilot", "session-state")),
    Source.MEM0: Reader(read=read_mem0),
    Source.OPENMEMORY: Reader(read=read_mem0),
    Source.CLAUDE_MEM: Reader(
        read=databases.read_claude_mem, well_known=_below_home("CLAUDE_MEM_DATA_DIR", ".claude-mem", "claude-mem.db")
    ),
}
"""Readers of all sources but Markdown, which is indexed."""


def check_kind(path: Path, source: Source) -> None:
    """Raises: NotRead, if there is no such path, or what is there is evidently of another tool."""
    if not path.exists():
        raise NotRead(f"{path} does not exist; give the path of what {source} keeps")
    found = kind_of(path)
    is_alike = {found, source} <= {Source.MEM0, Source.OPENMEMORY}
    if found is not None and found is not source and not is_alike:
        raise NotRead(f"{path} is not of {source}; it looks like {found}: use --from {found}")
    if found is None and is_database(path):
        raise NotRead(f"{path} is an SQLite database without the tables of {Source.CURSOR} or {Source.CLAUDE_MEM}")


def kind_of(path: Path) -> Source | None:
    """The tool that a file or folder is evidently of; None if that cannot be told. Raises: NotRead."""
    if path.is_dir():
        return _kind_of_folder(path)
    if is_database(path):
        named = tables(path)
        if databases.CURSOR_TABLE in named:
            return Source.CURSOR
        return Source.CLAUDE_MEM if named >= databases.CLAUDE_MEM_TABLES else None
    if openmemory_member(path):
        return Source.OPENMEMORY
    if path.suffix.lower() in (".md", ".markdown"):
        return Source.MARKDOWN
    return _kind_of_lines(path)


def _kind_of_folder(path: Path) -> Source | None:
    database = databases.cursor_database_in(path)
    # VS Code has a database there as well, which holds no chats.
    if is_database(database) and databases.CURSOR_TABLE in tables(database):
        return Source.CURSOR
    if (path / ".obsidian").is_dir():
        return Source.MARKDOWN
    first = next((one for one in transcripts(path, lambda name: True) if isinstance(one, Path)), None)
    return None if first is None else _kind_of_lines(first)


def _kind_of_lines(path: Path) -> Source | None:
    for _, line in zip(range(_LOOKED_AT_LINES), json_lines(path), strict=False):
        if isinstance(line, Wrong):
            # The first line of a list is no whole value; what it is of is told by its reader.
            return None
        fields = line[1]
        if codex.is_line(fields):
            return Source.CODEX
        if copilot.is_line(fields):
            return Source.COPILOT
        if claude_code.is_line(fields):
            return Source.CLAUDE_CODE
        if isinstance(fields.get("memory"), str) or isinstance(fields.get("results"), list):
            return Source.MEM0
    return None
