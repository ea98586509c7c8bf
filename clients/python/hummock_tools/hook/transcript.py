"""The turns of a transcript that an agent keeps, and texts cut to what is stored of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat

from hummock_tools.changed_files import changed_in, failed_in
from hummock_tools.private_text import without_private

TYPE_CHECKING = False  # importing typing would take a tenth of the program's time
if TYPE_CHECKING:
    from typing import Any

LARGEST_TAIL = 16 << 20
"""Bytes of a transcript's end that are read. Turns that begin before it are left out."""
LONGEST_SIDE = 32 << 10
"""Bytes of each side of a turn that are stored: what comes behind is a listing more often than an answer."""
CUT_MARK = "\n… (cut)"

_NOISE = ("<local-command-", "<bash-", "<task-notification>", "[Request interrupted")
"""Beginnings of messages that the user did not write: output of commands, and notices."""
_TYPES = (b'"user"', b'"assistant"', b'"user.message"', b'"assistant.message"')
"""One of them stands in each line with a message; parsing the others would take most of the time."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


class Turn:
    """What the user said and what the agent said to it, and when, as the transcript has it; empty if it has no time.

    `files` are those that the agent's tools have changed, as they name them.
    """

    __slots__ = ("agent", "agent_time", "files", "id", "user", "user_time")

    def __init__(self, id: str, user: str, user_time: str = "") -> None:
        self.id = id
        self.user = user
        self.user_time = user_time
        self.agent = ""
        self.agent_time = ""
        self.files: list[str] = []

    def digest(self) -> str:
        """Tells two states of one turn apart."""
        return hash_of(self.user, self.agent, *dict.fromkeys(self.files))


def hash_of(*texts: str) -> str:
    """A name of 32 hexadecimal digits for these texts."""
    hashed = hashlib.sha256()
    for text in texts:
        hashed.update(text.encode() + b"\0")
    return hashed.hexdigest()[:32]


def read_turns(path: str, *, of_subagent: bool) -> list[Turn]:
    """The turns in the end of a transcript of Claude Code or Copilot CLI, oldest first; the last may lack an answer.

    None where the file is missing, is no regular file, or has another format. What subagents said in between is left
    out, unless the transcript is a subagent's own, and so is what is private. A prompt of that alone begins a turn
    without a prompt, so that its answer belongs to no other.
    """
    turns: list[Turn] = []
    edits: list[tuple[Turn, str, str]] = []
    failed: set[str] = set()
    for line in _tail_of(path).split(b"\n"):
        if not any(each in line for each in _TYPES):
            continue
        entry = loaded(line)
        if not isinstance(entry, dict):
            continue
        if entry.get("type") in ("user", "assistant"):
            id, said = _claude_code_message(entry, of_subagent)
            message = entry.get("message")
            if turns and isinstance(message, dict) and (of_subagent or not entry.get("isSidechain")):
                edits += [(turns[-1], call, path) for call, path in changed_in(message.get("content"))]
                failed |= failed_in(message.get("content"))
        else:
            id, said = _copilot_message(entry)
        if said and entry["type"] in ("user", "user.message"):
            turns.append(Turn(id, without_private(said), _time_in(entry)))
        elif said and turns:
            turns[-1].agent_time = turns[-1].agent_time if turns[-1].agent else _time_in(entry)
            turns[-1].agent = _joined(turns[-1].agent, without_private(said))
    for turn, call, path in edits:
        if call not in failed:
            turn.files.append(path)
    return turns


def past_time(text: str, now_s: float) -> str:
    """A time in RFC 3339 that has come; empty where the text is none, or is ahead."""
    from datetime import datetime  # only what is stored needs it

    if not _TIME.fullmatch(text):
        return ""
    try:
        at_s = datetime.fromisoformat(text).timestamp()
    except ValueError:
        return ""
    return text if 0 <= at_s <= now_s else ""


def loaded(text: bytes) -> Any:
    """A JSON value whose texts are valid UTF-8; None where it is none, or nested too deeply."""
    try:
        value = json.loads(text.decode("utf-8", "replace"))
        # Half a character, escaped, becomes U+FFFD.
        if b"\\ud" in text or b"\\uD" in text:
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
            value = json.loads(whole.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def with_end(text: str, last: str) -> str:
    """The text with what was said last, which a transcript may not have yet when its turn ends."""
    return text if text.endswith(last) else _joined(text, last)


def cut(text: str, longest_bytes: int) -> str:
    """The beginning of a text that is too long for the service, and a mark."""
    encoded = text.encode()
    if len(encoded) <= longest_bytes:
        return text
    return encoded[: longest_bytes - len(CUT_MARK.encode())].decode("utf-8", "ignore") + CUT_MARK


def _tail_of(path: str) -> bytes:
    try:
        # A named pipe would block whoever opens it.
        if not path or not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST_TAIL))
            return file.read(LARGEST_TAIL)
    except (OSError, ValueError):
        return b""


def _time_in(entry: dict[str, Any]) -> str:
    time = entry.get("timestamp")
    return time if isinstance(time, str) else ""


def _claude_code_message(entry: dict[str, Any], of_subagent: bool) -> tuple[str, str]:
    """A message's id and its prose; no prose where neither the user nor the agent said it."""
    id, message = entry.get("uuid", ""), entry.get("message")
    if not isinstance(id, str) or not isinstance(message, dict):
        return "", ""
    if entry.get("isMeta") or entry.get("isCompactSummary") or (entry.get("isSidechain") and not of_subagent):
        return "", ""
    said = _text_of(message.get("content"))
    return id, _own_words(said) if entry["type"] == "user" else said


def _copilot_message(entry: dict[str, Any]) -> tuple[str, str]:
    """An event's id and its prose, for Copilot CLI; no prose for subagents, skills and its own prompts to go on."""
    id, data = entry.get("id", ""), entry.get("data")
    if entry.get("type") not in ("user.message", "assistant.message") or not isinstance(data, dict):
        return "", ""
    if entry.get("agentId") or data.get("parentToolCallId") or data.get("isAutopilotContinuation"):
        return "", ""
    content = data.get("content")
    if data.get("source") not in (None, "", "user") or not isinstance(id, str) or not isinstance(content, str):
        return "", ""
    return id, content.strip()


def _text_of(content: object) -> str:
    """A message's content as text: all of it, or its blocks of text."""
    if isinstance(content, str):
        return content.strip()
    text = ""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            text = _joined(text, block["text"].strip())
    return text


def _own_words(text: str) -> str:
    """What the user typed of a message."""
    while "<system-reminder>" in text:
        before, _, rest = text.partition("<system-reminder>")
        text = (before + rest.partition("</system-reminder>")[2]).strip()
    if text.startswith("<command-"):
        name, arguments = (_between(text, f"<command-{part}>", f"</command-{part}>") for part in ("name", "args"))
        return f"{name} {arguments}".strip()
    return "" if text.startswith(_NOISE) else text


def _between(text: str, start: str, end: str) -> str:
    inner, is_closed, _ = text.partition(start)[2].partition(end)
    return inner if is_closed else ""


def _joined(text: str, more: str) -> str:
    return f"{text}\n\n{more}" if text and more else text + more
