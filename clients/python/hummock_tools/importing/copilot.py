"""Reads what GitHub Copilot keeps: the event logs of Copilot CLI, and the chats of VS Code.

A session of Copilot CLI is a file of JSON lines. GitHub documents its events, for the CLI's SDK, and not the file.

A chat of VS Code is a file below its workspace: one JSON object (`.json`), or, since VS Code 1.109, a log of changes to
that object (`.jsonl`). Microsoft documents neither; both follow VS Code's source.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from hummock_tools.importing.conversations import (
    INJECTED,
    SUBAGENTS,
    UNKNOWN,
    UUID,
    Conversation,
    Finding,
    LeftOut,
    Piece,
    Said,
    Wrong,
    answer_words,
    folder_at,
    json_lines,
    message,
    object_in,
    own_words,
    text_in,
    time_of,
    turns,
    turns_of_lines,
)
from hummock_tools.importing.json_items import Fields, Value

NAME = "copilot"

_MESSAGES = ("user.message", "assistant.message")
_LOG = "events.jsonl"
_OLDER_FOLDER = "session-state"
_REASONS = (
    ("tool.execution_complete", "tool output"),
    ("tool.", "tool calls"),
    ("assistant.reasoning", "thoughts"),
    ("subagent.", SUBAGENTS),
    ("skill.", INJECTED),
    ("system.", INJECTED),
    ("session.", "bookkeeping"),
    ("hook.", "bookkeeping"),
    ("assistant.", "bookkeeping"),
    ("permission.", "bookkeeping"),
    ("abort", "bookkeeping"),
)
"""Why events are left out, by how their types begin."""


def is_line(fields: Fields) -> bool:
    """True for a line that Copilot CLI wrote, or VS Code for a chat."""
    kind = fields.get("type")
    is_event = isinstance(kind, str) and kind in (*_MESSAGES, "session.start") and isinstance(fields.get("data"), dict)
    return is_event or _begins_chat_log(fields)


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
                place.name == _OLDER_FOLDER and path.suffix == ".jsonl" and UUID.fullmatch(path.stem)
            )
            if (is_log or _is_chat(path)) and not path.is_symlink():
                yield path
    yield from (Wrong(where=str(error.filename), reason=error.strerror or str(error)) for error in failed)


def read(path: Path) -> Iterator[Finding]:
    """The memories of a session, or of all below a folder."""
    for one in files(path):
        if isinstance(one, Wrong):
            yield one
        elif _is_chat_file(one):
            yield from _chat(one)
        else:
            yield from _Session(one).parts()


class _Session:
    """A session's log; its first event says which session it is, and where it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.parent.name if path.name == _LOG else path.stem
        self._folder = ""

    def parts(self) -> Iterator[Finding]:
        """The memories of the session."""
        return turns_of_lines(
            self._path, self._said, lambda: Conversation(source=NAME, id=self._session, folder=self._folder)
        )

    def _said(self, where: str, event: Fields) -> Iterator[Piece]:
        kind, data = text_in(event, "type"), object_in(event, "data")
        if kind == "session.start":
            self._session = text_in(data, "sessionId") or self._session
        # A session that is resumed may say it anew, from another folder.
        self._folder = self._folder or text_in(object_in(data, "context"), "cwd")
        if kind in _MESSAGES:
            yield from self._message(where, event, data, is_user=kind == "user.message")
        elif kind:
            reasons = (reason for begin, reason in _REASONS if kind.startswith(begin))
            yield LeftOut(reason=next(reasons, UNKNOWN))
        else:
            yield Wrong(where=where, reason="no event of Copilot: it has no type")

    def _message(self, where: str, event: Fields, data: Fields, *, is_user: bool) -> Iterator[Said | LeftOut | Wrong]:
        if unsaid := _unsaid(event, data):
            yield LeftOut(reason=unsaid)
            return
        # A message of tool calls alone has no text.
        given = [text] if (text := text_in(data, "content")).strip() else []
        time, turn = time_of(event, "timestamp"), text_in(event, "id")
        yield from message(where, given, time=time, is_user=is_user, turn=turn, named="id")


def _unsaid(event: Fields, data: Fields) -> str:
    """Why nobody said a message; empty if it was said. `hummock-hook` chooses likewise."""
    if event.get("agentId") or data.get("parentToolCallId"):
        return SUBAGENTS
    if data.get("isAutopilotContinuation") or data.get("source") not in (None, "", "user"):
        return INJECTED
    return ""


_FOLDERS = ("chatSessions", "emptyWindowChatSessions")
_LARGEST_CHAT_BYTES = 64 << 20
_INITIAL, _SET, _PUSH, _DELETE = range(4)
_INSIDE_TEXT = ("codeblockUri", "textEditGroup", "notebookEditGroup", "undoStop", "workspaceEdit")
"""Parts that stand within an answer's text, and end no paragraph."""
_PARTS = {"toolInvocationSerialized": "tool calls", "prepareToolInvocation": "tool calls", "thinking": "thoughts"}


class _NoChat(Exception):
    """A file holds no chat; the message says why."""


def _begins_chat_log(fields: Fields) -> bool:
    """True for the first line of a chat's log."""
    return fields.get("kind") == _INITIAL and "requests" in object_in(fields, "v")


def _is_chat(path: Path) -> bool:
    """True for a file that VS Code keeps a chat in. One with a log is read there."""
    if path.parent.name not in _FOLDERS or path.suffix not in (".json", ".jsonl"):
        return False
    return path.suffix == ".jsonl" or not path.with_suffix(".jsonl").exists()


def _is_chat_file(path: Path) -> bool:
    """True for a file with a chat: by its place, by its name, or by its first line."""
    if _is_chat(path) or path.suffix == ".json":
        return True
    first = next(json_lines(path), None)
    return isinstance(first, tuple) and _begins_chat_log(first[1])


def _chat(path: Path) -> Iterator[Finding]:
    """The memories of a chat."""
    try:
        chat = _replayed(path) if path.suffix == ".jsonl" else _whole(path)
    except _NoChat as error:
        yield Wrong(where=str(path), reason=str(error))
        return
    folder = _folder_of(path)
    id = text_in(chat, "sessionId") or path.stem
    title = text_in(chat, "customTitle")
    yield from turns(_said(path, id, chat), lambda: Conversation(source=NAME, id=id, folder=folder, title=title))


def _whole(path: Path) -> Fields:
    """Raises: _NoChat."""
    try:
        if path.stat().st_size > _LARGEST_CHAT_BYTES:
            raise _NoChat(f"is larger than {_LARGEST_CHAT_BYTES >> 20} MiB")
        return _checked(json.loads(path.read_bytes()))
    except OSError as error:
        raise _NoChat(error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _NoChat("no JSON") from error


def _replayed(path: Path) -> Fields:
    """The chat after all changes that can be read; a line that is half written ends a log. Raises: _NoChat."""
    chat: Value = None
    for line in json_lines(path):
        if isinstance(line, Wrong):
            break
        _, change = line
        keys = change.get("k")
        if change.get("kind") == _INITIAL:
            chat = change.get("v")
        elif isinstance(keys, list) and keys:
            _apply(chat, keys, change)
    return _checked(chat)


def _apply(chat: Value, keys: Sequence[Value], change: Fields) -> None:
    """Changes the value at a path of names and numbers; a path that leads nowhere changes nothing."""
    place: Value = chat
    for key in keys[:-1]:
        place = _at(place, key)
    last, value = keys[-1], change.get("v")
    if change.get("kind") == _PUSH:
        values = _at(place, last)
        start = change.get("i")
        kept = list(values) if isinstance(values, list) else []
        if isinstance(start, int) and start >= 0:
            kept = kept[:start]
        value = [*kept, *(value if isinstance(value, list) else [])]
    if isinstance(place, dict) and isinstance(last, str):
        if change.get("kind") == _DELETE:
            place.pop(last, None)
        else:
            place[last] = value
    elif isinstance(place, list) and isinstance(last, int) and 0 <= last < len(place):
        place[last] = value


def _at(place: Value, key: Value) -> Value:
    if isinstance(place, dict) and isinstance(key, str):
        return place.get(key)
    if isinstance(place, list) and isinstance(key, int) and 0 <= key < len(place):
        return place[key]
    return None


def _checked(chat: Value) -> Fields:
    """Raises: _NoChat."""
    if not isinstance(chat, dict) or not isinstance(chat.get("requests"), list):
        raise _NoChat("no chat of VS Code: it has no requests")
    return chat


def _said(path: Path, chat_id: str, chat: Fields) -> Iterator[Said | LeftOut | Wrong]:
    requests = chat["requests"]
    for number, request in enumerate(requests if isinstance(requests, list) else [], start=1):
        if not isinstance(request, dict):
            yield Wrong(where=f"{path}, request {number}", reason="no JSON object")
        elif request.get("isHidden") or request.get("shouldBeRemovedOnSend"):
            yield LeftOut(reason="turns that were undone")
        else:
            yield from _turn(request, f"{chat_id}-{number}")


def _turn(request: Fields, unnamed: str) -> Iterator[Said | LeftOut]:
    given = text_in(request, "message") or text_in(object_in(request, "message"), "text")
    asked = own_words(given)
    if not asked:
        yield LeftOut(reason=INJECTED)
        return
    time = time_of(request, "timestamp")
    yield Said(text=asked, time=time, turn=text_in(request, "requestId") or unnamed)
    response = request.get("response")
    parts = [part for part in (response if isinstance(response, list) else []) if isinstance(part, dict)]
    kinds = (text_in(part, "kind") for part in parts)
    yield from (LeftOut(reason=_PARTS[kind]) for kind in kinds if kind in _PARTS)
    if answer := answer_words(_answer(parts)):
        yield Said(text=answer, time=time_of(object_in(request, "modelState"), "completedAt") or time)


def _answer(parts: Sequence[Fields]) -> str:
    """An answer's text; other parts, such as tool calls, end a paragraph."""
    paragraphs = [""]
    for part in parts:
        text = _text_of(part)
        if text is not None:
            paragraphs[-1] += text
        elif part.get("kind") not in _INSIDE_TEXT and paragraphs[-1]:
            paragraphs.append("")
    return "\n\n".join(filter(None, (each.strip() for each in paragraphs)))


def _text_of(part: Fields) -> str | None:
    """A part's text: that of Markdown, or the name of a file or symbol that is referred to within it."""
    kind = part.get("kind")
    if kind is None:
        return text_in(part, "value") or None
    if kind in ("markdownContent", "markdownVuln"):
        return text_in(object_in(part, "content"), "value") or None
    if kind == "inlineReference":
        reference = object_in(part, "inlineReference")
        at = text_in(reference, "path") or text_in(object_in(reference, "location", "uri"), "path")
        return text_in(part, "name") or text_in(reference, "name") or PurePosixPath(at).name or None
    return None


def _folder_of(path: Path) -> str:
    """The folder of the workspace that a chat belongs to; empty if it has none, or several."""
    try:
        workspace = json.loads((path.parent.parent / "workspace.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    return folder_at(workspace.get("folder")) if isinstance(workspace, dict) else ""
