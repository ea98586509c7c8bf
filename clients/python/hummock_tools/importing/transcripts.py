"""Transcripts as files of JSON lines: where they are, their lines, and the turns that the lines add up to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_tools.importing import fields as read
from hummock_tools.importing.fields import BadRecord, Fields
from hummock_tools.importing.found import LONGEST_SIDE_BYTES, Conversation, Found, LeftOut, Part, Turn, Wrong, sides
from hummock_tools.importing.own_words import is_whole
from hummock_tools.private_text import without_private

_LONGEST_LINE_BYTES = 64 << 20
"""A longer line is not read: it holds pictures or output, and all of it would be in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something that was said: by the user, which begins a turn with an id, or by the model to the turn before it.

    What a user says while the model works, `is_aside`, has a turn of its own without an answer.
    """

    text: str
    time: Timestamp | None
    turn: str = ""
    is_aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Files that a tool call of the model was to change, as it names them."""

    files: list[str]


def transcripts(root: Path, wanted: Callable[[str], bool]) -> Iterator[Path | LeftOut | Wrong]:
    """The JSONL files of a folder in the order of their paths, or the file itself. Links are not followed.

    Files with other names than `wanted` are left out.
    """
    if not root.is_dir():
        yield root
        return
    failed: list[OSError] = []
    for folder, names, files in os.walk(root, onerror=failed.append):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if not name.endswith(".jsonl") or path.is_symlink():
                continue
            yield path if wanted(str(path.relative_to(root))) else LeftOut(reason="transcripts of subagents")
    yield from (Wrong(where=str(error.filename), reason=error.strerror or str(error)) for error in failed)


def parts_of_each(root: Path, wanted: Callable[[str], bool], parts: Callable[[Path], Iterator[Part]]) -> Iterator[Part]:
    """The `parts` of each of the `transcripts`, and what is left out or wrong, in their order."""
    for one in transcripts(root, wanted):
        if isinstance(one, Path):
            yield from parts(one)
        else:
            yield one


def json_lines(path: Path) -> Iterator[tuple[str, Fields] | Wrong]:
    """Where each line is, and its JSON object; lines that are none are wrong, empty ones are passed over."""
    try:
        with path.open("rb") as file:
            yield from _json_lines(path, iter(lambda: file.readline(_LONGEST_LINE_BYTES + 1), b""))
    except OSError as error:
        yield Wrong(where=str(path), reason=error.strerror or str(error))


def _json_lines(path: Path, lines: Iterator[bytes]) -> Iterator[tuple[str, Fields] | Wrong]:
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        if len(line) > _LONGEST_LINE_BYTES:
            while not line.endswith(b"\n") and (line := next(lines, b"\n")):
                pass
            yield Wrong(where=where, reason=f"is longer than {_LONGEST_LINE_BYTES >> 20} MiB")
            continue
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            # The last line of a session that is still going on may be half written.
            reason = "nested too deeply" if isinstance(error, RecursionError) else "no JSON"
            yield Wrong(where=where, reason=reason)
            continue
        yield (where, value) if isinstance(value, dict) else Wrong(where=where, reason="no JSON object")


def turns(said: Iterable[Said | Changed | LeftOut | Wrong], conversation: Callable[[], Conversation]) -> Iterator[Part]:
    """The memories of a conversation, turn by turn; `conversation` is asked once its first turn has been read.

    What is private is left out. A question of that alone ends the turn before it, and has no answer.
    """
    turn: Turn | None = None
    asides: list[Turn] = []
    for one in said:
        if isinstance(one, Changed):
            turn = turn and replace(turn, files=(*turn.files, *one.files))
            continue
        if not isinstance(one, Said):
            yield one
            continue
        text = without_private(one.text)
        if not is_whole(text):
            yield LeftOut(reason="texts with half a character")
            continue
        if not text:
            yield LeftOut(reason="what is private")
        asked = Turn(id=one.turn, user=text, user_time=one.time) if one.turn and text else None
        if one.turn and one.is_aside and turn is not None:
            asides += [asked] if asked else []
        elif one.turn:
            yield from _ended(turn, asides, conversation)
            turn, asides = asked, []
        elif turn is None:
            yield LeftOut(reason="answers without a question")
        elif text:
            turn = _answered(turn, text, one.time)
    yield from _ended(turn, asides, conversation)


def _ended(turn: Turn | None, asides: Iterable[Turn], conversation: Callable[[], Conversation]) -> Iterator[Found]:
    if turn is not None:
        for one in (turn, *asides):
            yield from sides(one, conversation())


def _answered(turn: Turn, text: str, time: Timestamp | None) -> Turn:
    if len(turn.agent) > LONGEST_SIDE_BYTES:
        # It is cut there: what follows cannot change it.
        return turn
    agent = f"{turn.agent}\n\n{text}" if turn.agent else text
    first = turn.agent_time if turn.agent else time
    return replace(turn, agent=agent, agent_time=first)


def time_of(fields: Fields, name: str) -> Timestamp | None:
    """A time, or None if there is none that can be read: what was said counts without it."""
    try:
        return read.time(fields, name)
    except BadRecord:
        return None


def text_in(fields: Fields, *names: str) -> str:
    """The first text under these names; "" if none is one."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def object_in(fields: Fields, *path: str) -> Fields:
    """The object at a path of names; an empty one if there is none."""
    for name in path:
        inner = fields.get(name)
        if not isinstance(inner, dict):
            return {}
        fields = inner
    return fields
