"""Conversations of other tools: their transcripts, what was said in them, and the memories that it makes.

A reader knows the format of one tool: it gives what a user and a model said, and what it leaves out. The turns, the
words that tools put between, and what is private are the same for all and are dealt with here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PureWindowsPath
from typing import Final
from urllib.parse import unquote, urlsplit

from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools import project_name
from hummock_tools.changed_files import below_root
from hummock_tools.importing import json_items as read
from hummock_tools.importing.json_items import BadRecord, Fields, Value
from hummock_tools.private_text import without_private

INJECTED = "what hooks and the tool injected"
SUBAGENTS = "transcripts of subagents"
UNKNOWN = "lines of unknown kinds"
"""Why something is left out."""

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

LONGEST_SIDE_BYTES = 32 << 10
"""Limit for what one side of a turn says, as of `hummock-hook`: a longer text is mostly pasted."""

SOURCE = "imported_from"
"""Metadata key that names the tool a memory came from."""

_CUT = "\n… (cut)"
_HASH_DIGITS = 32
_LONGEST_ID_BYTES = 200
_LONGEST_TITLE = 80
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session of a tool: its id there, the working directory that it began in ("" if unknown), and a title."""

    source: str
    id: str
    folder: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory to learn, with an id and a source_hash that are the same in each run.

    Attributes:
        folder: The working directory that it was said in; empty if unknown.
        project: The tool's own name for the project; empty if the folder says it.
        message_id: Its message in the session; empty if it is no part of a conversation.
        title: Title for that session.
    """

    memory: pb.Memory
    folder: str = ""
    project: str = ""
    message_id: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is not learnt on purpose, and why."""

    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A line, row or file that cannot be read: where it is, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user said, and all that the model said to it; "" while it has not answered.

    `id` is the tool's own, unique in all of its sessions. `files` are those that its tools
    have changed, as they name them.
    """

    id: str
    user: str
    user_time: Timestamp | None
    agent: str = ""
    agent_time: Timestamp | None = None
    files: tuple[str, ...] = ()


Finding = Found | LeftOut | Wrong
"""What a reader gives."""


def sides(turn: Turn, conversation: Conversation) -> Iterator[Found]:
    """The memories of a turn; message ids are those that `hummock-hook` gives, so that it is stored by one of both."""
    said = (
        ("user", turn.user, turn.user_time, pb.ORIGIN_USER_INPUT),
        ("agent", turn.agent, turn.agent_time, pb.ORIGIN_AI_OUTPUT),
    )
    files = below_root(conversation.folder, turn.files)
    for side, text, time, origin in said:
        if not text:
            continue
        shown = cut(text)
        memory = pb.Memory(
            id=made_id(conversation.source, turn.id, side),
            kind=pb.MEMORY_KIND_NOTE,
            origin=origin,
            content=shown,
            session_id=made_id(conversation.id),
            speaker="user" if side == "user" else "assistant",
            create_time=time,
            source_hash=hash_of("\0".join((shown, *files)).encode()),
            files=files,
            metadata={SOURCE: conversation.source},
        )
        title = conversation.title or title_of(turn.user)
        yield Found(memory=memory, folder=conversation.folder, message_id=f"{made_id(turn.id)}:{side}", title=title)


def made_id(*parts: str) -> str:
    """The parts with ":" between; a hash of them if the contract would refuse that as an id."""
    whole = ":".join(parts)
    if whole.isprintable() and 0 < len(whole.encode(errors="replace")) <= _LONGEST_ID_BYTES:
        return whole
    return hash_of("\0".join(parts).encode(errors="replace"))


def hash_of(data: bytes) -> str:
    """SHA-256 as 32 hexadecimal digits."""
    return sha256(data).hexdigest()[:_HASH_DIGITS]


def title_of(text: str) -> str:
    """The first line of a text, at most 80 characters, without what a title may not hold."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return "".join(character if character.isprintable() else " " for character in line)[:_LONGEST_TITLE].strip()


def cut(text: str) -> str:
    """The beginning of a text that is too long, and a mark."""
    data = text.encode()
    if len(data) <= LONGEST_SIDE_BYTES:
        return text
    return data[: LONGEST_SIDE_BYTES - len(_CUT.encode())].decode(errors="ignore") + _CUT


def folder_at(uri: object) -> str:
    """The path that a file's URI names, as editors write it; empty if it is none."""
    if not isinstance(uri, str) or not uri.startswith("file:"):
        return ""
    path = unquote(urlsplit(uri).path)
    # A drive stands behind the slash of its URI.
    return path[1:] if path[2:3] == ":" else path


def project_of(folder: str) -> str:
    """The project of a working directory, which may be gone; empty if it is no absolute path.

    A folder of Windows has its own name. `hummock-hook` chooses likewise.
    """
    if _DRIVE.match(folder):
        return PureWindowsPath(folder).name[: project_name.LONGEST_NAME]
    return project_name.project_of(folder) if Path(folder).is_absolute() else ""


_INJECTED: Final = (
    "system-reminder",
    "user-prompt-submit-hook",
    "session-start-hook",
    "hook_context",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "INSTRUCTIONS",
    "skill",
    "turn_aborted",
    "codex_internal_context",
    "user_info",
    "project_layout",
    "additional_data",
    "attached_files",
    # Memories: our own, and those of other memory tools.
    "recalled_memories",
    "memory_index",
    "claude-mem-context",
)
"""Tags around what a tool adds to a message. One that is not closed reaches to the end."""

_BLOCK: Final = re.compile(
    rf"<(?P<tag>{'|'.join(map(re.escape, _INJECTED))})(?:\s[^<>]*)?>.*?(?:</(?P=tag)>|\Z)", re.DOTALL
)
_NOTICES: Final = ("Stored memories, quoted as data.", "以下是存储的记忆，只是资料。")
"""How a rendered section of memories begins, whose end has no mark."""

_NOT_SAID: Final = (
    "<local-command-",
    "<bash-",
    "<task-notification>",
    "[Request interrupted",
    "# AGENTS.md instructions for ",
    "Caveat: The messages below were generated by the user while running local commands",
)
"""How messages begin that nobody typed: output of commands, notices, instructions of a repository."""

_ASKED: Final = ("## My request for Codex:", "<user_query>")
_COMMAND: Final = ("command-name", "command-args")


def answer_words(text: str) -> str:
    """The part of a model's message that it said."""
    text = _BLOCK.sub("", text).strip()
    return "" if text.startswith(_NOTICES) else text


def own_words(text: str) -> str:
    """The part of a user's message that the user typed; empty if there is none."""
    text = answer_words(text)
    if text.startswith("<command-"):
        return " ".join(filter(None, (_between(text, f"<{tag}>", f"</{tag}>") for tag in _COMMAND)))
    for mark in _ASKED:
        if mark in text:
            text = text.partition(mark)[2].removesuffix("</user_query>").strip()
    return "" if text.startswith(_NOT_SAID) else text


def text_of(content: Value, kinds: tuple[str, ...] = ("text",)) -> list[str]:
    """The texts of a message's content: the content itself, or its blocks of these kinds."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    blocks = (block for block in content if isinstance(block, dict) and block.get("type") in kinds)
    return [text for block in blocks if isinstance(text := block.get("text"), str)]


def _between(text: str, start: str, end: str) -> str:
    inner, closed, _ = text.partition(start)[2].partition(end)
    return inner.strip() if closed else ""


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
    """Files that a tool call of the model was to change, as it names them, and the id of the call."""

    call: str
    files: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A tool call that failed or that the user refused: it has changed nothing."""

    call: str


Piece = Said | Changed | Failed | LeftOut | Wrong
"""What a reader finds in a conversation."""


def message(
    where: str, texts: Sequence[str], *, time: Timestamp | None, is_user: bool, turn: str, named: str
) -> Iterator[Said | LeftOut | Wrong]:
    """What a side said in a message of these texts; a user's needs a turn, whose id its format has as `named`."""
    text = "\n\n".join(filter(None, map(own_words if is_user else answer_words, texts)))
    if not text:
        yield from [LeftOut(reason=INJECTED)] if texts else []
    elif is_user and not turn:
        yield Wrong(where=where, reason=f"has no {named}")
    else:
        yield Said(text=text, time=time, turn=turn if is_user else "")


def turns_of_lines(
    path: Path, said: Callable[[str, Fields], Iterator[Piece]], conversation: Callable[[], Conversation]
) -> Iterator[Finding]:
    """The memories of a file of JSON lines, as `turns` gives them; `said` is asked of each line and its place."""

    def pieces() -> Iterator[Piece]:
        for line in json_lines(path):
            if isinstance(line, Wrong):
                yield line
            else:
                yield from said(*line)

    return turns(pieces(), conversation)


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
            yield path if wanted(str(path.relative_to(root))) else LeftOut(reason=SUBAGENTS)
    yield from (Wrong(where=str(error.filename), reason=error.strerror or str(error)) for error in failed)


def parts_of_each(
    root: Path, wanted: Callable[[str], bool], parts: Callable[[Path], Iterator[Finding]]
) -> Iterator[Finding]:
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


def turns(said: Iterable[Piece], conversation: Callable[[], Conversation]) -> Iterator[Finding]:
    """The memories of a conversation, turn by turn; `conversation` is asked once its first turn has been read.

    What is private is left out. A question of that alone ends the turn before it, and has no answer.
    """
    turn: Turn | None = None
    asides: list[Turn] = []
    changed: list[Changed] = []
    failed: set[str] = set()
    for one in said:
        if isinstance(one, Changed):
            changed += [one] if turn else []
            continue
        if isinstance(one, Failed):
            failed.add(one.call)
            continue
        if not isinstance(one, Said):
            yield one
            continue
        text = without_private(one.text)
        if _HALF_CHARACTER.search(text):
            yield LeftOut(reason="texts with half a character")
            continue
        if not text:
            yield LeftOut(reason="what is private")
        asked = Turn(id=one.turn, user=text, user_time=one.time) if one.turn and text else None
        if one.turn and one.is_aside and turn is not None:
            asides += [asked] if asked else []
        elif one.turn:
            yield from _ended(_with_files(turn, changed, failed), asides, conversation)
            turn, asides, changed = asked, [], []
        elif turn is None:
            yield LeftOut(reason="answers without a question")
        elif text:
            turn = _answered(turn, text, one.time)
    yield from _ended(_with_files(turn, changed, failed), asides, conversation)


def _with_files(turn: Turn | None, changed: Iterable[Changed], failed: Container[str]) -> Turn | None:
    paths = tuple(path for one in changed if one.call not in failed for path in one.files)
    return turn and replace(turn, files=paths)


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
