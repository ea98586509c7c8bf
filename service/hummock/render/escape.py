"""Escapes stored text, so that it can forge neither its delimiters nor markup that a language model obeys."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Final

from hummock.core.memory import Memory, MemoryKind, Origin
from hummock.core.render import MemoryMark
from hummock.render.section import ALL_LABELS
from hummock.text.markers import COLONS, has_marker, inert, is_spoken, unspoken, with_backslash
from hummock.text.normalise import JOINERS, SELECTORS, STRAY, UNSEEN
from hummock.text.normalise import clean as clean
from hummock.text.normalise import one_line as one_line

ENVELOPE: Final = "recalled_memories"
ENTRY: Final = "recalled_memory"
INDEX: Final = "memory_index"

_BACKTICKS = re.compile("`+")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*$|(~{3,}))")
_FENCE_END = re.compile(r" {0,3}(`+|~+)[ \t]*$")
_LABELS = "|".join(re.escape(label) for label in ALL_LABELS)
_RULE = r"(?:-[ \t]*){3,}$|(?:=[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$"
# A comment in a block of code looks like a title and is left alone; "\# " is escaped to distinguish both.
_MARKS = rf"\s*\\*(?:#{{2,}}|{_RULE}|{_LABELS})|\s*\\+#\s"
_MARKED = re.compile(rf"^(?={_MARKS})(\s*)")
_TITLE = re.compile(r"^(?=\s*#\s)(\s*)")
_ENTRY_LINE = re.compile(r"[^\S\n]*\\*(?:\d+\. \[ID:|> Summary:)")
_ENTRY_SIGNS = ("[ID:", "> Summary:")
# Begins no heading, rule, title or block of code, and names no speaker and no label: most lines do not.
_PLAIN_LINE = re.compile(rf"\s*(?:[^\s\\#\-=*_`~][^{COLONS}]*)?$")
_UNPLAIN_ID = re.compile(rf'[\]\\"<>&\s{UNSEEN}\u2028\u2029\ud800-\udfff]|{STRAY.pattern}')
# Brackets with their forms of compatibility.
_UNPLAIN = rf"\[［﹇\]］﹈＜﹤\t\n\x0b-\x0d\u2028\u2029\ud800-\udfff{UNSEEN}"
_UNPLAIN_ATTRIBUTE = re.compile(rf"[{_UNPLAIN}][{JOINERS}{SELECTORS}]*|{STRAY.pattern}")
# One search shows that most attributes need no escaping.
_ESCAPED_ATTRIBUTE = re.compile(rf"[&<>\"'{_UNPLAIN}{JOINERS}{SELECTORS}]")


def inline(text: str) -> str:
    """Escape a text as one line that follows markup of ours."""
    return inert(one_line(text))


def heading(text: str) -> str:
    """Escape a text as one line for a heading, where no speaker's name may follow the "#"."""
    return unspoken(inline(text))


def clip(text: str, limit_characters: int) -> str:
    """Return the beginning of a text as one line; if cut, it ends with an ellipsis within the limit."""
    line = one_line(text)
    return line if len(line) <= limit_characters else line[: limit_characters - 1].rstrip() + "…"


def prose(text: str) -> str:
    """Escape and clean a text below a heading; an open code block is closed."""
    lines, fence = [], ""
    for line in inert(clean(text)).split("\n"):
        if _PLAIN_LINE.match(line):
            lines.append(line)
            continue
        fence = _fence_after(line, fence)
        marked = with_backslash(line) if is_spoken(line) else _MARKED.sub(r"\1\\", line)
        lines.append(marked if marked != line or fence else _TITLE.sub(r"\1\\", line))
    return "\n".join([*lines, fence] if fence else lines)


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line, given the one that was open before it; empty for none."""
    if fence:
        end = _FENCE_END.match(line)
        return "" if end and end[1].startswith(fence) else fence
    found = _FENCE.match(line)
    return (found[1] or found[2]) if found else ""


def open_fence(lines: Sequence[str]) -> str:
    """The fence of the code block that is open after these lines; empty for none."""
    fence = ""
    for line in lines:
        fence = _fence_after(line, fence)
    return fence


def opens_block(text: str) -> bool:
    """Whether the text begins with a code block."""
    return _FENCE.match(text.partition("\n")[0]) is not None


def keeps_keys(memory: Memory) -> bool:
    """Whether lines such as "user: root" are keys of settings: only in verified code from the indexer.

    Any writer can declare a memory to be code, so the kind alone is not enough.
    """
    is_read = memory.kind is MemoryKind.CODE_FRAGMENT and memory.origin is Origin.INDEXER
    return is_read and not is_unverified(memory)


def fenced(code: str, *, keeps_keys: bool = False) -> str:
    """Cleaned code between fences that it cannot close; of `keeps_keys` see the function."""
    body = disarmed(code.strip("\n"), keeps_keys=keeps_keys)
    runs = _BACKTICKS.findall(body) if "`" in body else []
    fence = "`" * max(3, 1 + max(map(len, runs), default=0))
    return f"{fence}\n{body}\n{fence}"


def quoted(text: str, *, keeps_keys: bool = False) -> str:
    """Escape and clean a text between our tags."""
    body = disarmed(text, keeps_keys=keeps_keys)
    if not any(sign in body for sign in _ENTRY_SIGNS):
        return body
    return "\n".join(with_backslash(line) if _ENTRY_LINE.match(line) else line for line in body.split("\n"))


def disarmed(text: str, *, keeps_keys: bool = False) -> str:
    """Escape and clean a text for lines whose beginnings the caller writes."""
    return unspoken(inert(clean(text)), keeps_keys=keeps_keys)


def listed(text: str, *, keeps_keys: bool = False) -> str:
    """Escape and clean a text for a list item; lines after the first are indented."""
    return disarmed(text, keeps_keys=keeps_keys).strip("\n").replace("\n", "\n  ")


def beside_forms(text: str) -> str:
    """Escape and clean a text for a list item in front of any form; lines after the first are indented.

    It begins neither a heading, a label, a chat's line nor an entry of an index.
    """
    lines = prose(text).strip("\n").split("\n")
    return "\n  ".join([with_backslash(line) if _ENTRY_LINE.match(line) else line for line in lines])


def attribute(text: str) -> str:
    """Return the text as an attribute's value in quotes, without losing any character."""
    if not _ESCAPED_ATTRIBUTE.search(text):
        return f'"{text}"'
    return '"' + _UNPLAIN_ATTRIBUTE.sub(_entities, html.escape(text)) + '"'


def _entities(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(character)};" for character in found[0])


def string(text: str) -> str:
    """A line of text between double quotes; quotes and backslashes in it have a backslash before them."""
    escaped = inert(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parenthesised(text: str) -> str:
    """Return a line in parentheses; parentheses and backslashes in it are escaped with a backslash."""
    return "(" + re.sub(r"([\\()])", r"\\\1", inert(text)) + ")"


def listed_id(memory_id: str) -> str:
    """Return an id for the index: unchanged, or as a JSON string if it contains ambiguous characters."""
    is_marked = has_marker(memory_id)
    if not _UNPLAIN_ID.search(memory_id) and not is_marked:
        return memory_id
    quoted_id = json.dumps(memory_id, ensure_ascii=is_marked or not memory_id.isprintable())
    if is_marked:
        quoted_id = quoted_id.replace("[", "\\u005b")
    return quoted_id.replace("<", "\\u003c").replace("]", "\\u005d").replace("&", "\\u0026")


def bracketed_id(memory_id: str) -> str:
    """Return an id in brackets, as in the index."""
    return f"[ID: {listed_id(memory_id)}]"


_SAID_BY_ORIGIN: Final = frozenset(("", "user", "assistant"))
_SPEAKER_CHARACTERS: Final = 40
MODEL: Final = "assistant"
"""Name of a model without one."""


def speaker_of(memory: Memory) -> str:
    """The name of who said it, as one line; empty where there is none or the origin says as much."""
    return "" if memory.speaker.casefold() in _SAID_BY_ORIGIN else clip(memory.speaker, _SPEAKER_CHARACTERS)


def said_by(memory: Memory, model: str = "") -> str:
    """The name of who said it in parentheses, after a space; empty for none. Else nobody knows who "I" is.

    `model` stands for a model without a name where the form shows no origin.
    """
    if memory.speaker and (name := speaker_of(memory)):
        return f" {parenthesised(name)}"
    return f" ({model})" if model and memory.origin is Origin.AI_OUTPUT else ""


_STALE_DAYS: Final = 90
_VERIFIED_TRUST: Final = 0.5
_SECONDS_A_DAY: Final = 86_400.0

UNVERIFIED: Final = "[Unverified]"
_SHOWN: Final = {MemoryMark.STALE: "(Warning: Old)", MemoryMark.UNVERIFIED: UNVERIFIED}


def marks_of(memories: Sequence[Memory], as_of: float) -> list[tuple[MemoryMark, ...]]:
    """What each memory's record says about it; `as_of` is the "now" in Unix seconds."""
    stale_s = _STALE_DAYS * _SECONDS_A_DAY
    return [
        # An indexed memory is as new as its file.
        (MemoryMark.STALE,) * (memory.origin is not Origin.INDEXER and as_of - memory.update_time > stale_s)
        + (MemoryMark.UNVERIFIED,) * (memory.trust < _VERIFIED_TRUST)
        for memory in memories
    ]


def is_unverified(memory: Memory) -> bool:
    """Whether its author is unverified."""
    return memory.trust < _VERIFIED_TRUST


def shown_marks(memory: Memory, as_of: float) -> str:
    """Return the marks as shown in a text, each after a space; empty for none."""
    return "".join(f" {_SHOWN[mark]}" for mark in marks_of([memory], as_of)[0])
