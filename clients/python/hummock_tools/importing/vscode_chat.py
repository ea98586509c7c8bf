"""Reads the chats of VS Code, which are those of GitHub Copilot: a file for each, below the workspace it belongs to.

The file is the chat as one JSON object (`.json`), or, since VS Code 1.109, a log of changes to that object (`.jsonl`).
Microsoft documents neither; both follow VS Code's source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from hummock_tools.importing.fields import Fields, Value
from hummock_tools.importing.found import Conversation, LeftOut, Part, Wrong, folder_at
from hummock_tools.importing.own_words import answer_words, own_words
from hummock_tools.importing.transcripts import Said, json_lines, object_in, text_in, time_of, turns

NAME = "copilot"

_FOLDERS = ("chatSessions", "emptyWindowChatSessions")
_LARGEST_CHAT_BYTES = 64 << 20
_INITIAL, _SET, _PUSH, _DELETE = range(4)
_INSIDE_TEXT = ("codeblockUri", "textEditGroup", "notebookEditGroup", "undoStop", "workspaceEdit")
"""Parts that stand within an answer's text, and end no paragraph."""
_PARTS = {"toolInvocationSerialized": "tool calls", "prepareToolInvocation": "tool calls", "thinking": "thoughts"}


class _NoChat(Exception):
    """A file holds no chat; the message says why."""


def is_line(fields: Fields) -> bool:
    """True for the first line of a chat's log."""
    return fields.get("kind") == _INITIAL and "requests" in object_in(fields, "v")


def is_chat(path: Path) -> bool:
    """True for a file that VS Code keeps a chat in. One with a log is read there."""
    if path.parent.name not in _FOLDERS or path.suffix not in (".json", ".jsonl"):
        return False
    return path.suffix == ".jsonl" or not path.with_suffix(".jsonl").exists()


def is_read(path: Path) -> bool:
    """True for a file that `read` takes: by its place, by its name, or by its first line."""
    if is_chat(path) or path.suffix == ".json":
        return True
    first = next(json_lines(path), None)
    return isinstance(first, tuple) and is_line(first[1])


def read(path: Path) -> Iterator[Part]:
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
        yield LeftOut(reason="what hooks and the tool injected")
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
