"""SQLite databases of other tools, which are read and never written to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from hummock_tools.importing.fields import Fields

_HEAD: Final = b"SQLite format 3\x00"


class NotRead(Exception):
    """A file cannot be read at all; the message names it and says what to do."""


def is_database(path: Path) -> bool:
    """True for a file that begins as an SQLite database does."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEAD)) == _HEAD
    except OSError:
        return False


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A database, also one that another process writes to. Raises: NotRead."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            # Half a character in one cell must not end the run.
            database.text_factory = lambda data: data.decode(errors="replace")
            yield database
    except sqlite3.Error as error:
        raise NotRead(f"{path}: {error}; copy it together with its -wal file, and import the copy") from error


def tables(path: Path) -> frozenset[str]:
    """The names of a database's tables. Raises: NotRead."""
    with opened(path) as database:
        return frozenset(row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def columns(database: sqlite3.Connection, table: str) -> frozenset[str]:
    """The names of a table's columns; none if there is no such table."""
    return frozenset(row[0] for row in database.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def json_object(value: object) -> Fields | None:
    """The JSON object in a cell; None if it holds none."""
    if not isinstance(value, str | bytes):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_texts(value: object) -> list[str]:
    """The texts of a JSON list in a cell; the cell itself if it is no JSON."""
    if not isinstance(value, str) or not value.strip():
        return []
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return [value.strip()]
    return [one for one in found if isinstance(one, str) and one.strip()] if isinstance(found, list) else []
