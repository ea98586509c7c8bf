"""Reads the rollouts of Codex: a file of JSON lines for each session, in folders by day.

A line is an envelope of a type and a payload; before autumn 2025 it was the payload alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_tools.changed_files import changed_by, is_failure
from hummock_tools.importing.conversations import (
    INJECTED,
    SUBAGENTS,
    UNKNOWN,
    Changed,
    Conversation,
    Failed,
    Finding,
    LeftOut,
    Piece,
    Said,
    Wrong,
    answer_words,
    object_in,
    own_words,
    parts_of_each,
    text_in,
    text_of,
    time_of,
    turns_of_lines,
)
from hummock_tools.importing.json_items import Fields, Value

NAME = "codex"

_ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state")
_ITEMS = {
    "reasoning": "thoughts",
    "function_call": "tool calls",
    "local_shell_call": "tool calls",
    "custom_tool_call": "tool calls",
    "web_search_call": "tool calls",
    "tool_search_call": "tool calls",
    "image_generation_call": "tool calls",
    "function_call_output": "tool output",
    "custom_tool_call_output": "tool output",
    "tool_search_output": "tool output",
}
_TEXTS = ("input_text", "output_text", "text")
_FAILED = re.compile(
    r"\s*(apply_patch verification failed|aborted by user|patch rejected by user|Exit code: -?[1-9]"
    r'|\{"output":.*"exit_code":\s*-?[1-9])',
    re.DOTALL,
)
"""Output of a patch that changed nothing: it was refused, or its exit status, told as text or as JSON, is not 0."""


def is_line(fields: Fields) -> bool:
    """True for a line that Codex wrote."""
    if isinstance(fields.get("payload"), dict):
        return fields.get("type") in _ENVELOPES
    is_header = {"id", "timestamp", "instructions"} <= fields.keys()
    return is_header or fields.get("record_type") == "state"


def read(path: Path) -> Iterator[Finding]:
    """The memories of a rollout, or of all below a folder. Subagents' rollouts are left out."""
    return parts_of_each(path, lambda name: True, lambda one: _Rollout(one).parts())


class _Rollout:
    """A session's file; its first line says which session it is, and where it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = ""
        self._folder = ""
        self._start: Timestamp | None = None
        self._turn = ""
        self._used: set[str] = set()
        self._is_subagent = False

    def parts(self) -> Iterator[Finding]:
        """The memories of the session."""
        return turns_of_lines(
            self._path, self._said, lambda: Conversation(source=NAME, id=self._id(), folder=self._folder)
        )

    def _id(self) -> str:
        return self._session or self._path.stem

    def _said(self, where: str, fields: Fields) -> Iterator[Piece]:
        inside = fields.get("payload")
        payload = inside if isinstance(inside, dict) else fields
        kind = fields.get("type") if payload is not fields else _old_kind(fields)
        if self._is_subagent:
            yield LeftOut(reason=SUBAGENTS)
        elif kind == "session_meta":
            self._begin(payload)
        elif kind == "turn_context":
            self._turn = text_in(payload, "turn_id")
        elif kind == "response_item":
            yield from self._item(fields, payload)
        elif kind in _ENVELOPES:
            # The display log says again what the items say.
            yield LeftOut(reason="bookkeeping")
        elif isinstance(kind, str):
            yield LeftOut(reason=UNKNOWN)
        else:
            yield Wrong(where=where, reason="no line of Codex: it has no type")

    def _begin(self, meta: Fields) -> None:
        if self._session:
            # A fork begins with the lines of the session that it was made of, also with that one's first.
            return
        self._session = text_in(meta, "id", "session_id")
        self._folder = text_in(meta, "cwd")
        self._start = time_of(meta, "timestamp")
        self._is_subagent = bool(object_in(meta, "source").get("subagent"))

    def _item(self, fields: Fields, item: Fields) -> Iterator[Said | Changed | Failed | LeftOut]:
        kind, call = text_in(item, "type"), text_in(item, "call_id")
        if kind == "custom_tool_call" and (files := changed_by(text_in(item, "name"), item.get("input"))):
            yield Changed(call=call, files=files)
        if kind == "custom_tool_call_output" and call and _is_failure(item.get("output")):
            yield Failed(call=call)
        if kind != "message":
            yield LeftOut(reason=_ITEMS.get(kind, UNKNOWN))
            return
        role = item.get("role")
        if role not in ("user", "assistant"):
            yield LeftOut(reason=INJECTED)
            return
        clean = own_words if role == "user" else answer_words
        text = "\n\n".join(filter(None, map(clean, text_of(item.get("content"), _TEXTS))))
        if not text:
            yield LeftOut(reason=INJECTED)
            return
        time = time_of(fields, "timestamp") or self._start
        yield Said(text=text, time=time, turn=self._new_turn() if role == "user" else "")

    def _new_turn(self) -> str:
        """The id that Codex gives the turn, which older rollouts lack; another one for what is said in its midst."""
        base = self._turn or self._id()
        number, turn = 1, base if self._turn else f"{base}-1"
        while turn in self._used:
            number += 1
            turn = f"{base}-{number}"
        self._used.add(turn)
        return turn


def _is_failure(output: Value) -> bool:
    if isinstance(output, dict):
        return is_failure(output)
    return _FAILED.match("\n".join(text_of(output, _TEXTS))) is not None


def _old_kind(fields: Fields) -> str | None:
    """The envelope that a line without one would be in today; None if it is no line of Codex."""
    if fields.get("record_type"):
        return "world_state"
    kind = fields.get("type")
    if kind is None and {"id", "timestamp"} <= fields.keys():
        return "session_meta"
    return "response_item" if isinstance(kind, str) else None
