"""Reads the chats of Cursor: one SQLite database for all, with a document for each chat and each message ("bubble").

Nobody documents the format. Chats of before 2025, which each workspace had in a database of its own, are not read.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_tools.importing.databases import columns, json_object, opened
from hummock_tools.importing.fields import Fields, Value
from hummock_tools.importing.found import Conversation, LeftOut, Part, Wrong, folder_at
from hummock_tools.importing.own_words import answer_words, own_words
from hummock_tools.importing.transcripts import Said, object_in, text_in, time_of, turns

NAME = "cursor"
TABLE = "cursorDiskKV"

_USER, _ASSISTANT = 1, 2
_PLACE = Path("globalStorage", "state.vscdb")
_CHATS = (
    "SELECT substr(key, 14) AS id, value FROM cursorDiskKV "
    "WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
)
_BUBBLE = "SELECT value FROM cursorDiskKV WHERE key = ?"
_BUBBLES = "SELECT value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid"
_HEADER = "SELECT value, isSubagent FROM composerHeaders WHERE composerId = ?"


def well_known() -> Path:
    """The database of this user."""
    if sys.platform == "darwin":
        user = Path.home() / "Library/Application Support/Cursor/User"
    elif sys.platform == "win32":
        user = Path(os.environ.get("APPDATA", Path.home())) / "Cursor/User"
    else:
        user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "Cursor/User"
    return user / _PLACE


def database_of(path: Path) -> Path:
    """The database in Cursor's folder `User`; the path itself if it is a file."""
    return path / _PLACE if path.is_dir() else path


def read(path: Path) -> Iterator[Part]:
    """The memories of all chats. Raises: NotRead."""
    with opened(database_of(path)) as database:
        has_headers = {"value", "isSubagent"} <= columns(database, "composerHeaders")
        for row in database.execute(_CHATS):
            chat = json_object(row["value"])
            if chat is None:
                yield Wrong(where=f"{path}, chat {row['id']}", reason="no JSON object")
                continue
            header = database.execute(_HEADER, (row["id"],)).fetchone() if has_headers else None
            if header is not None and header["isSubagent"]:
                yield LeftOut(reason="transcripts of subagents")
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

    def parts(self) -> Iterator[Part]:
        """The memories of the chat."""
        return turns(
            self._said(), lambda: Conversation(source=NAME, id=self._id, folder=self._folder, title=self._title)
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
                yield LeftOut(reason="lines of unknown kinds")
            else:
                yield from self._bubble(where, bubble)

    def _bubble(self, where: str, bubble: Fields) -> Iterator[Said | LeftOut | Wrong]:
        self._folder = self._folder or _first_folder(bubble.get("workspaceUris"))
        if isinstance(bubble.get("toolFormerData"), dict):
            yield LeftOut(reason="tool calls")
        if isinstance(bubble.get("thinking"), dict):
            yield LeftOut(reason="thoughts")
        is_user = bubble.get("type") == _USER
        given = text_in(bubble, "text")
        text = own_words(given) if is_user else answer_words(given)
        if given.strip() and not text:
            yield LeftOut(reason="what hooks and the tool injected")
        if not text:
            return
        turn = text_in(bubble, "bubbleId")
        if is_user and not turn:
            yield Wrong(where=where, reason="has no bubbleId")
            return
        yield Said(text=text, time=self._time(bubble), turn=turn if is_user else "")

    def _time(self, bubble: Fields) -> Timestamp | None:
        return time_of(bubble, "createdAt") or time_of(self._chat, "createdAt")

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
