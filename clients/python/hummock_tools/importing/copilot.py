"""Reads what GitHub Copilot keeps: the event logs of Copilot CLI, and the chats of VS Code (`vscode_chat`).

A session of Copilot CLI is a file of JSON lines. GitHub documents its events, for the CLI's SDK, and not the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hummock_tools.importing import vscode_chat
from hummock_tools.importing.fields import Fields
from hummock_tools.importing.found import Conversation, LeftOut, Part, Wrong
from hummock_tools.importing.own_words import answer_words, own_words
from hummock_tools.importing.transcripts import Said, json_lines, object_in, text_in, time_of, turns

NAME = vscode_chat.NAME

_MESSAGES = ("user.message", "assistant.message")
_LOG = "events.jsonl"
_OLDER_FOLDER = "session-state"
_SESSION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_REASONS = (
    ("tool.execution_complete", "tool output"),
    ("tool.", "tool calls"),
    ("assistant.reasoning", "thoughts"),
    ("subagent.", "transcripts of subagents"),
    ("skill.", "what hooks and the tool injected"),
    ("system.", "what hooks and the tool injected"),
    ("session.", "bookkeeping"),
    ("hook.", "bookkeeping"),
    ("assistant.", "bookkeeping"),
    ("permission.", "bookkeeping"),
    ("abort", "bookkeeping"),
)
"""Why events are left out, by how their types begin."""


def well_known() -> Path:
    """The folder with all sessions of Copilot CLI of this user. VS Code's have to be named."""
    home = os.environ.get("COPILOT_HOME")
    return (Path(home) if home else Path.home() / ".copilot") / "session-state"


def is_line(fields: Fields) -> bool:
    """True for a line that Copilot CLI wrote, or VS Code for a chat."""
    kind = fields.get("type")
    is_event = isinstance(kind, str) and kind in (*_MESSAGES, "session.start") and isinstance(fields.get("data"), dict)
    return is_event or vscode_chat.is_line(fields)


def files(root: Path) -> Iterator[Path | Wrong]:
    """The logs and chats below a folder in the order of their paths, or the file itself. Links are not followed."""
    if not root.is_dir():
        yield root
        return
    failed: list[OSError] = []
    for folder, names, there in os.walk(root.absolute(), onerror=failed.append):
        names.sort()
        place = Path(folder)
        for path in (place / name for name in sorted(there)):
            is_log = path.name == _LOG or (
                place.name == _OLDER_FOLDER and path.suffix == ".jsonl" and _SESSION.fullmatch(path.stem)
            )
            if (is_log or vscode_chat.is_chat(path)) and not path.is_symlink():
                yield path
    yield from (Wrong(where=str(error.filename), reason=error.strerror or str(error)) for error in failed)


def read(path: Path) -> Iterator[Part]:
    """The memories of a session, or of all below a folder."""
    for one in files(path):
        if isinstance(one, Wrong):
            yield one
        elif vscode_chat.is_read(one):
            yield from vscode_chat.read(one)
        else:
            yield from _Session(one).parts()


class _Session:
    """A session's log; its first event says which session it is, and where it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.parent.name if path.name == _LOG else path.stem
        self._folder = ""

    def parts(self) -> Iterator[Part]:
        """The memories of the session."""
        return turns(self._said(), lambda: Conversation(source=NAME, id=self._session, folder=self._folder))

    def _said(self) -> Iterator[Said | LeftOut | Wrong]:
        for line in json_lines(self._path):
            if isinstance(line, Wrong):
                yield line
                continue
            where, event = line
            kind, data = text_in(event, "type"), object_in(event, "data")
            if kind == "session.start":
                self._session = text_in(data, "sessionId") or self._session
            # A session that is resumed may say it anew, from another folder.
            self._folder = self._folder or text_in(object_in(data, "context"), "cwd")
            if kind in _MESSAGES:
                yield from self._message(where, event, data, is_user=kind == "user.message")
            elif kind:
                reasons = (reason for begin, reason in _REASONS if kind.startswith(begin))
                yield LeftOut(reason=next(reasons, "lines of unknown kinds"))
            else:
                yield Wrong(where=where, reason="no event of Copilot: it has no type")

    def _message(self, where: str, event: Fields, data: Fields, *, is_user: bool) -> Iterator[Said | LeftOut | Wrong]:
        unsaid = _unsaid(event, data)
        given = text_in(data, "content")
        text = own_words(given) if is_user else answer_words(given)
        if unsaid or (given.strip() and not text):
            yield LeftOut(reason=unsaid or "what hooks and the tool injected")
            return
        if not text:
            # A message of tool calls alone.
            return
        turn = text_in(event, "id")
        if is_user and not turn:
            yield Wrong(where=where, reason="has no id")
            return
        yield Said(text=text, time=time_of(event, "timestamp"), turn=turn if is_user else "")


def _unsaid(event: Fields, data: Fields) -> str:
    """Why nobody said a message; empty if it was said. `hummock-hook` chooses likewise."""
    if event.get("agentId") or data.get("parentToolCallId"):
        return "transcripts of subagents"
    if data.get("isAutopilotContinuation") or data.get("source") not in (None, "", "user"):
        return "what hooks and the tool injected"
    return ""
