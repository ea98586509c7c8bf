"""Stored text as data: it can neither close nor forge what delimits it.

All escapes can be undone, line by line, so that a reader gets back exactly what was stored:

- `prose` puts a backslash before a line that reads as a heading, a rule or a label of ours;
- `quoted` writes "<" of our own tags as "&lt;" and puts a backslash before a line that reads as an index entry;
- `fenced` fences code with more backticks than the code holds in a run.
"""

from __future__ import annotations

import html
import json
import re
from typing import Final

from hummock.render.headings import ALL_LABELS

ENVELOPE: Final = "recalled_memories"
ENTRY: Final = "recalled_memory"
INDEX: Final = "memory_index"

# Everything that some reader takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")

_BACKTICKS = re.compile("`+")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*$|(~{3,}))")
_FENCE_END = re.compile(r" {0,3}(`+|~+)[ \t]*$")
_LABELS = "|".join(re.escape(label) for label in ALL_LABELS)
_RULE = r"(?:-[ \t]*){3,}$|(?:=[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$"
# A comment in a block of code looks like a title and is left alone; "\# " is escaped so that both can be told apart.
_MARKED = re.compile(rf"^(?=\s*\\*(?:#{{2,}}|{_RULE}|{_LABELS})|\s*\\+#\s)(\s*)")
_TITLE = re.compile(r"^(?=\s*#\s)(\s*)")
_LISTED = re.compile(r"^(?=[^\S\n]*\\*(?:\d+\. \[ID:|> Summary:))([^\S\n]*)", re.MULTILINE)
# The bounds keep the time linear, whatever stands behind a "<".
_OWN_TAG = re.compile(rf"(?:<|&(?:amp;)*lt;)(?=\s{{0,8}}/?\s{{0,8}}(?:{ENVELOPE}|{ENTRY}|{INDEX}))", re.IGNORECASE)
_UNPLAIN_ID = re.compile(r'[\]\\"<>\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_UNPLAIN_ATTRIBUTE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without control characters; every kind of line end is a newline, a lone surrogate is U+FFFD."""
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", _LINE_ENDS.sub("\n", text)))


def one_line(text: str) -> str:
    """The cleaned text with each run of white space one space."""
    return " ".join(clean(text).split())


def clip(text: str, limit_characters: int) -> str:
    """The beginning of a text as one line; an ellipsis ends what was cut, within the limit."""
    line = one_line(text)
    return line if len(line) <= limit_characters else line[: limit_characters - 1].rstrip() + "…"


def prose(text: str) -> str:
    """Cleaned text that stands below a heading; a code block that it leaves open is closed."""
    lines, fence = [], ""
    for line in clean(text).split("\n"):
        fence = _fence_after(line, fence)
        escaped = _MARKED.sub(r"\1\\", line)
        lines.append(escaped if fence or escaped != line else _TITLE.sub(r"\1\\", line))
    return "\n".join([*lines, fence] if fence else lines)


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line, given the one that was open before it; empty for none."""
    if fence:
        end = _FENCE_END.match(line)
        return "" if end and end[1].startswith(fence) else fence
    found = _FENCE.match(line)
    return (found[1] or found[2]) if found else ""


def opens_block(text: str) -> bool:
    """Whether the text begins with a code block."""
    return _FENCE.match(text.partition("\n")[0]) is not None


def fenced(code: str) -> str:
    """Cleaned code between fences that it cannot close."""
    body = clean(code).strip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(body)), default=0))
    return f"{fence}\n{body}\n{fence}"


def quoted(text: str) -> str:
    """Cleaned text that stands between our tags."""
    return _LISTED.sub(r"\1\\", untagged(clean(text)))


def untagged(text: str) -> str:
    """The text with our own tags escaped; what is escaped already is escaped once more."""
    return _OWN_TAG.sub(lambda found: "&lt;" if found[0] == "<" else "&amp;" + found[0][1:], text)


def attribute(text: str) -> str:
    """The text, every character of it, as an attribute's value with its quotes."""
    escaped = html.escape(text)
    return '"' + _UNPLAIN_ATTRIBUTE.sub(lambda found: f"&#{ord(found[0])};", escaped) + '"'


def string(text: str) -> str:
    """A line of text between double quotes; quotes and backslashes in it have a backslash before them."""
    escaped = untagged(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def listed_id(memory_id: str) -> str:
    """An id for the index: as it is, or as a JSON string where it holds what could be mistaken."""
    if not _UNPLAIN_ID.search(memory_id):
        return memory_id
    quoted_id = json.dumps(memory_id, ensure_ascii=not memory_id.isprintable())
    return quoted_id.replace("<", "\\u003c").replace("]", "\\u005d")
