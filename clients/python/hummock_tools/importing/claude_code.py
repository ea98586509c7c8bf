"""Reads the transcripts of Claude Code: a file of JSON lines for each session, in a folder for each project.

Its makers call the format internal; lines of kinds that are not known here are counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hummock_tools.changed_files import changed_in, failed_in
from hummock_tools.importing.conversations import (
    INJECTED,
    SUBAGENTS,
    UNKNOWN,
    UUID,
    Changed,
    Conversation,
    Failed,
    Finding,
    LeftOut,
    Piece,
    Said,
    Wrong,
    message,
    object_in,
    own_words,
    parts_of_each,
    text_in,
    text_of,
    time_of,
    turns_of_lines,
)
from hummock_tools.importing.json_items import Fields

NAME = "claude-code"

_KINDS = {
    "system": "notices of the tool",
    "attachment": INJECTED,
    "summary": "titles and summaries",
    "custom-title": "titles and summaries",
    "ai-title": "titles and summaries",
    "agent-name": "titles and summaries",
    "last-prompt": "bookkeeping",
    "mode": "bookkeeping",
    "permission-mode": "bookkeeping",
    "pr-link": "bookkeeping",
    "progress": "bookkeeping",
    "queue-operation": "bookkeeping",
    "file-history-snapshot": "bookkeeping",
    "file-history-delta": "bookkeeping",
}
_BLOCKS = {
    "tool_use": "tool calls",
    "tool_result": "tool output",
    "thinking": "thoughts",
    "redacted_thinking": "thoughts",
    "image": "pictures and documents",
    "document": "pictures and documents",
}


def is_line(fields: Fields) -> bool:
    """True for a line that Claude Code wrote."""
    return isinstance(fields.get("type"), str) and ("sessionId" in fields or "leafUuid" in fields)


def read(path: Path) -> Iterator[Finding]:
    """The memories of a transcript, or of all below a folder. Subagents' transcripts are left out."""
    return parts_of_each(
        path,
        lambda name: "subagents" not in Path(name).parts and "agent-" not in Path(name).name,
        lambda one: _Transcript(one).parts(),
    )


class _Transcript:
    """A session's file. Its name says which session it is, for a resumed one may begin with lines of another."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.stem if UUID.fullmatch(path.stem) else ""
        self._folder = ""

    def parts(self) -> Iterator[Finding]:
        """The memories of the session."""
        return turns_of_lines(
            self._path,
            self._said,
            lambda: Conversation(source=NAME, id=self._session or self._path.stem, folder=self._folder),
        )

    def _said(self, where: str, fields: Fields) -> Iterator[Piece]:
        self._session = self._session or text_in(fields, "sessionId")
        self._folder = self._folder or text_in(fields, "cwd")
        kind = fields.get("type")
        if kind in ("user", "assistant"):
            yield from self._message(where, fields, is_user=kind == "user")
        elif _is_queued(fields):
            yield from self._queued(fields)
        elif isinstance(kind, str):
            yield LeftOut(reason=_KINDS.get(kind, UNKNOWN))
        else:
            yield Wrong(where=where, reason="no line of Claude Code: it has no type")

    def _message(self, where: str, fields: Fields, *, is_user: bool) -> Iterator[Piece]:
        said = object_in(fields, "message")
        if not said:
            yield Wrong(where=where, reason="has no message")
            return
        unsaid = _unsaid(fields, said)
        if unsaid:
            yield LeftOut(reason=unsaid)
            return
        content = said.get("content")
        blocks = content if isinstance(content, list) else []
        kinds = [block.get("type") for block in blocks if isinstance(block, dict)]
        yield from (
            LeftOut(reason=_BLOCKS.get(str(kind), "blocks of unknown kinds")) for kind in kinds if kind != "text"
        )
        if is_user:
            yield from (Failed(call=call) for call in sorted(failed_in(blocks)))
        else:
            yield from (Changed(call=call, files=[path]) for call, path in changed_in(blocks))
        time, turn = time_of(fields, "timestamp"), text_in(fields, "uuid")
        yield from message(where, text_of(content), time=time, is_user=is_user, turn=turn, named="uuid")

    def _queued(self, fields: Fields) -> Iterator[Said | LeftOut]:
        """What the user typed while the model worked: it is no line of its own then."""
        given = text_of(object_in(fields, "attachment").get("prompt"))
        text, turn = "\n\n".join(filter(None, map(own_words, given))), text_in(fields, "uuid")
        if text and turn:
            yield Said(text=text, time=time_of(fields, "timestamp"), turn=turn, is_aside=True)
        else:
            yield LeftOut(reason=INJECTED)


def _is_queued(fields: Fields) -> bool:
    attachment = object_in(fields, "attachment")
    if fields.get("type") != "attachment" or attachment.get("type") != "queued_command":
        return False
    is_prompt = attachment.get("commandMode", "prompt") == "prompt" and not attachment.get("isMeta")
    return is_prompt and not fields.get("isSidechain") and _is_human(fields) and _is_human(attachment)


def _is_human(fields: Fields) -> bool:
    """False for a message that a task or another session sent."""
    return object_in(fields, "origin").get("kind", "human") == "human"


def _unsaid(fields: Fields, message: Fields) -> str:
    """Why nobody said a message; empty if it was said."""
    if fields.get("isSidechain"):
        return SUBAGENTS
    if fields.get("isMeta") or not _is_human(fields):
        return INJECTED
    if fields.get("isCompactSummary"):
        return "titles and summaries"
    if fields.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
        return "notices of the tool"
    return ""
