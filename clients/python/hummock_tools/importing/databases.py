"""Reads tools that keep an SQLite database, which is never written to: the chats of Cursor, and claude-mem.

Cursor has one database for all, with a document for each chat and each message ("bubble"). Nobody documents the format.
Chats of before 2025, which each workspace had in a database of its own, are not read.

claude-mem keeps what it observed of an agent's work, and its summaries of sessions. Prompts are left out: the agent's
own transcripts have them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.importing.conversations import (
    SOURCE,
    SUBAGENTS,
    UNKNOWN,
    Conversation,
    Finding,
    Found,
    LeftOut,
    Said,
    Wrong,
    answer_words,
    folder_at,
    hash_of,
    made_id,
    message,
    object_in,
    text_in,
    time_of,
    title_of,
    turns,
)
from hummock_tools.importing.json_items import Fields, Value
from hummock_tools.private_text import without_private

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


CURSOR_TABLE = "cursorDiskKV"

_USER, _ASSISTANT = 1, 2
_PLACE = Path("globalStorage", "state.vscdb")
_CHATS = (
    "SELECT substr(key, 14) AS id, value FROM cursorDiskKV "
    "WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
)
_BUBBLE = "SELECT value FROM cursorDiskKV WHERE key = ?"
_BUBBLES = "SELECT value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid"
_HEADER = "SELECT value, isSubagent FROM composerHeaders WHERE composerId = ?"


def cursor_database() -> Path:
    """The database of this user."""
    if sys.platform == "darwin":
        user = Path.home() / "Library/Application Support/Cursor/User"
    elif sys.platform == "win32":
        user = Path(os.environ.get("APPDATA", Path.home())) / "Cursor/User"
    else:
        user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "Cursor/User"
    return user / _PLACE


def cursor_database_in(path: Path) -> Path:
    """The database in Cursor's folder `User`; the path itself if it is a file."""
    return path / _PLACE if path.is_dir() else path


def read_cursor(path: Path) -> Iterator[Finding]:
    """The memories of all chats. Raises: NotRead."""
    with opened(cursor_database_in(path)) as database:
        has_headers = {"value", "isSubagent"} <= columns(database, "composerHeaders")
        for row in database.execute(_CHATS):
            chat = json_object(row["value"])
            if chat is None:
                yield Wrong(where=f"{path}, chat {row['id']}", reason="no JSON object")
                continue
            header = database.execute(_HEADER, (row["id"],)).fetchone() if has_headers else None
            if header is not None and header["isSubagent"]:
                yield LeftOut(reason=SUBAGENTS)
                continue
            head = json_object(header["value"]) if header is not None else None
            yield from _Chat(database, path, row["id"], chat, head or {}).parts()


class _Chat:
    """A chat; the first of its messages may say which folder it was about."""

    def __init__(self, database: sqlite3.Connection, path: Path, id: str, chat: Fields, head: Fields) -> None:
        self._database = database
        self._where = f"{path}, chat {id}"
        self._id = id
        self._chat = chat
        self._folder = _folder(head) or _folder(chat)
        self._title = text_in(head, "name") or text_in(chat, "name")

    def parts(self) -> Iterator[Finding]:
        """The memories of the chat."""
        return turns(
            self._said(), lambda: Conversation(source="cursor", id=self._id, folder=self._folder, title=self._title)
        )

    def _said(self) -> Iterator[Said | LeftOut | Wrong]:
        for number, cell in enumerate(self._bubbles(), start=1):
            bubble = cell if isinstance(cell, dict) else json_object(cell)
            where = f"{self._where}, message {number}"
            if cell is None:
                yield LeftOut(reason="messages that Cursor has not kept")
            elif bubble is None:
                yield Wrong(where=where, reason="no JSON object")
            elif bubble.get("type") not in (_USER, _ASSISTANT):
                yield LeftOut(reason=UNKNOWN)
            else:
                yield from self._bubble(where, bubble)

    def _bubble(self, where: str, bubble: Fields) -> Iterator[Said | LeftOut | Wrong]:
        self._folder = self._folder or _first_folder(bubble.get("workspaceUris"))
        if isinstance(bubble.get("toolFormerData"), dict):
            yield LeftOut(reason="tool calls")
        if isinstance(bubble.get("thinking"), dict):
            yield LeftOut(reason="thoughts")
        given = [text] if (text := text_in(bubble, "text")).strip() else []
        time = time_of(bubble, "createdAt") or time_of(self._chat, "createdAt")
        is_user, turn = bubble.get("type") == _USER, text_in(bubble, "bubbleId")
        yield from message(where, given, time=time, is_user=is_user, turn=turn, named="bubbleId")

    def _bubbles(self) -> Iterator[Value | bytes]:
        """The messages in order, as documents or as cells; None for one that is named and not there."""
        inline = self._chat.get("conversation")
        order = self._chat.get("fullConversationHeadersOnly")
        if isinstance(order, list) and order:
            for header in order:
                name = text_in(header, "bubbleId") if isinstance(header, dict) else ""
                row = self._database.execute(_BUBBLE, (f"bubbleId:{self._id}:{name}",)).fetchone()
                yield None if row is None else row["value"]
        elif isinstance(inline, list) and inline:
            yield from inline
        else:
            keys = (f"bubbleId:{self._id}:", f"bubbleId:{self._id};")
            yield from (row["value"] for row in self._database.execute(_BUBBLES, keys))


def _folder(document: Fields) -> str:
    """The folder that a chat's document names; empty if it names none."""
    at = text_in(object_in(document, "workspaceIdentifier", "uri"), "fsPath")
    repositories = document.get("trackedGitRepos")
    first = repositories[0] if isinstance(repositories, list) and repositories else None
    return at or (text_in(first, "repoPath") if isinstance(first, dict) else "")


def _first_folder(uris: Value) -> str:
    return folder_at(uris[0]) if isinstance(uris, list) and uris else ""


CLAUDE_MEM = "claude-mem"
CLAUDE_MEM_TABLES = frozenset({"sdk_sessions", "observations"})

_SUMMARY: Final = {
    "investigated": "Investigated",
    "learned": "Learned",
    "completed": "Completed",
    "next_steps": "Next steps",
    "notes": "Notes",
}
_STATEMENTS: Final = {
    "sdk_sessions": "SELECT * FROM sdk_sessions",
    "observations": "SELECT * FROM observations ORDER BY id",
    "session_summaries": "SELECT * FROM session_summaries ORDER BY id",
}
_FILES: Final = ("files_read", "files_modified", "files_edited")
_MOST_TAGS, _LONGEST_TAG = 64, 128
_MOST_FILES, _LONGEST_FILE = 256, 1024
_LONGEST_QUESTION, _LONGEST_ANSWER_BYTES = 8192, 256 << 10


def read_claude_mem(path: Path) -> Iterator[Finding]:
    """The learning records of a database. Raises: NotRead."""
    with opened(path) as database:
        sessions = dict(_sessions(database))
        for row in _rows(database, "observations"):
            texts = (_text(row, name) for name in ("subtitle", "narrative", "text"))
            facts = "\n".join(f"- {fact}" for fact in json_texts(row.get("facts")))
            answer = "\n\n".join(filter(None, (*dict.fromkeys(texts), facts)))
            tags = [_text(row, "type"), *json_texts(row.get("concepts"))]
            yield _record(path, row, sessions, "observation", _text(row, "title"), answer, tags)
        for row in _rows(database, "session_summaries"):
            said = ((title, _text(row, name)) for name, title in _SUMMARY.items())
            answer = "\n\n".join(f"{title}: {text}" for title, text in said if text)
            yield _record(path, row, sessions, "summary", _text(row, "request"), answer, [])
        if columns(database, "user_prompts"):
            (count,) = database.execute("SELECT count(*) FROM user_prompts").fetchone()
            if count:
                yield LeftOut(reason="prompts, which the agent's own transcripts have", count=count)


def _sessions(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """The agent's own session ids by those that the other tables name."""
    for row in _rows(database, "sdk_sessions"):
        inner, outer = _inner(row), row.get("content_session_id") or row.get("claude_session_id")
        if inner and isinstance(outer, str):
            yield inner, outer


def _rows(database: sqlite3.Connection, table: str) -> Iterator[Mapping[str, object]]:
    if columns(database, table):
        for row in database.execute(_STATEMENTS[table]):
            yield dict(zip(row.keys(), row, strict=True))


def _inner(row: Mapping[str, object]) -> str:
    """The id of its session; before version 7 of claude-mem it had another name."""
    found = row.get("memory_session_id") or row.get("sdk_session_id")
    return found if isinstance(found, str) else ""


def _record(
    path: Path,
    row: Mapping[str, object],
    sessions: Mapping[str, str],
    kind: str,
    question: str,
    answer: str,
    tags: Iterable[str],
) -> Finding:
    where = f"{path}, {kind} {row.get('id')}"
    if not question or not answer:
        return Wrong(where=where, reason="has no text" if question else "has no title")
    if len(answer.encode()) > _LONGEST_ANSWER_BYTES:
        return Wrong(where=where, reason=f"is longer than {_LONGEST_ANSWER_BYTES >> 10} KiB")
    inner = _inner(row)
    session = sessions.get(inner, inner)
    time = time_of({"at": _number(row.get("created_at_epoch"))}, "at")
    named = dict.fromkeys(file for name in _FILES for file in json_texts(row.get(name)) if len(file) <= _LONGEST_FILE)
    memory = pb.Memory(
        id=made_id(CLAUDE_MEM, inner, kind, str(row.get("id"))),
        kind=pb.MEMORY_KIND_LEARNING_RECORD,
        origin=pb.ORIGIN_SUMMARY,
        title=title_of(question),
        tags=list(dict.fromkeys(tag for tag in tags if 0 < len(tag) <= _LONGEST_TAG and tag.isprintable()))[
            :_MOST_TAGS
        ],
        learning_record=pb.LearningRecord(
            question=question[:_LONGEST_QUESTION], answer=answer, source_files=list(named)[:_MOST_FILES]
        ),
        session_id=made_id(session) if session else "",
        event_time=time,
        create_time=time,
        metadata={SOURCE: CLAUDE_MEM},
    )
    memory.source_hash = hash_of(memory.SerializeToString(deterministic=True))
    return Found(memory=memory, project=_text(row, "merged_into_project") or _text(row, "project"))


def _text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return without_private(answer_words(value)) if isinstance(value, str) else ""


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) else None
