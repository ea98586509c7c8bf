"""Stored text as data: it can neither close nor forge what delimits it, nor what a language model obeys.

All escapes can be undone, line by line, so that a reader gets back exactly what was stored:

- markers of chat templates and tags of ours are disarmed everywhere (`markers`);
- `prose` puts a backslash before a line that reads as a heading, a rule, a label of ours or a speaker;
- `quoted` does so before a line that reads as an index entry or a speaker;
- `fenced` fences code with more backticks than the code holds in a run;
- `listed` indents every line but the first.

Lines of code are never taken for a speaker's. "user:" begins them in many languages; a line can end neither the fence
nor the entry in which it stands; and what a model copies from there has to be what was stored.
"""

from __future__ import annotations

import html
import json
import re
from typing import Final

from hummock.render.headings import ALL_LABELS
from hummock.render.markers import SPOKEN_LINE, beginning, escaped, inert

ENVELOPE: Final = "recalled_memories"
ENTRY: Final = "recalled_memory"
INDEX: Final = "memory_index"

# Everything that some reader takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Beside controls what is drawn as nothing: marks of direction, spaces without width, tag characters. A person does not
# see them, a model does, and a pattern that looks for the beginning of a line finds them in front of it.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_CONTROLS = re.compile(f"[{_UNSEEN}]")
# Scripts and emoji need what joins letters and what selects their shape. Behind ASCII, white space, a full-width sign
# or nothing it does nothing but hide a marker, a keycap excepted; behind a Chinese character it hides a label of ours,
# unless it selects the variant of an ideograph (U+E0100 and up), as names need it.
_JOINERS = "\u034f\u200c\u200d"
_SELECTORS = "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STRAY = re.compile(
    rf"(?:^|(?<=[\x00-\x7f\s\uff00-\uffef]))[{_JOINERS}{_SELECTORS}]+(?!\u20e3)|(?<=[\u3400-\u9fff])[{_JOINERS}\ufe00-\ufe0f]+"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
# Most texts have none of the four, which one search says.
_UNCLEAN = re.compile(f"[\r\v\f\u2028\u2029\ud800-\udfff{_UNSEEN}{_JOINERS}{_SELECTORS}]")

_BACKTICKS = re.compile("`+")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*$|(~{3,}))")
_FENCE_END = re.compile(r" {0,3}(`+|~+)[ \t]*$")
_LABELS = "|".join(re.escape(label) for label in ALL_LABELS)
_RULE = r"(?:-[ \t]*){3,}$|(?:=[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$"
# A comment in a block of code looks like a title and is left alone; "\# " is escaped so that both can be told apart.
_MARKS = rf"\s*\\*(?:#{{2,}}|{_RULE}|{_LABELS})|\s*\\+#\s"
_MARKED_CODE = re.compile(rf"^(?={_MARKS})(\s*)")
_MARKED = re.compile(rf"^(?={_MARKS}|{SPOKEN_LINE})(\s*)")
_TITLE = re.compile(r"^(?=\s*#\s)(\s*)")
_ENTRY_LINE = r"[^\S\n]*\\*(?:\d+\. \[ID:|> Summary:)"
_LISTED_CODE = beginning(_ENTRY_LINE)
_LISTED = beginning(f"{_ENTRY_LINE}|{SPOKEN_LINE}")
# Begins no heading, rule, title or block of code, and names no speaker and no label: most lines do not.
_PLAIN_LINE = re.compile(r"\s*(?:[^\s\\#\-=*_`~][^:：]*)?$")
_UNPLAIN_ID = re.compile(rf'[\]\\"<>&\s{_UNSEEN}\u2028\u2029\ud800-\udfff]|{_STRAY.pattern}')
_UNPLAIN = rf"\[\t\n\x0b-\x0d\u2028\u2029\ud800-\udfff{_UNSEEN}"
_UNPLAIN_ATTRIBUTE = re.compile(rf"[{_UNPLAIN}][{_JOINERS}{_SELECTORS}]*|{_STRAY.pattern}")
# Most attributes have none of what is escaped in one, which one search says.
_ESCAPED_ATTRIBUTE = re.compile(rf"[&<>\"'{_UNPLAIN}{_JOINERS}{_SELECTORS}]")


def clean(text: str) -> str:
    """The text without what cannot be seen; every kind of line end is a newline, a lone surrogate is U+FFFD."""
    if not _UNCLEAN.search(text):
        return text
    seen = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    return _SURROGATES.sub("\ufffd", _STRAY.sub("", seen))


def one_line(text: str) -> str:
    """The cleaned text with each run of white space one space."""
    return " ".join(clean(text).split())


def inline(text: str) -> str:
    """One line that stands behind something of ours."""
    return inert(one_line(text))


def heading(text: str) -> str:
    """One line that stands behind the "#" of a heading, which a speaker's name must not follow."""
    return escaped(inline(text))


def clip(text: str, limit_characters: int) -> str:
    """The beginning of a text as one line; an ellipsis ends what was cut, within the limit."""
    line = one_line(text)
    return line if len(line) <= limit_characters else line[: limit_characters - 1].rstrip() + "…"


def prose(text: str) -> str:
    """Cleaned text that stands below a heading; a code block that it leaves open is closed."""
    lines, fence = [], ""
    for line in inert(clean(text)).split("\n"):
        if _PLAIN_LINE.match(line):
            lines.append(line)
            continue
        fence = _fence_after(line, fence)
        if fence:
            lines.append(_MARKED_CODE.sub(r"\1\\", line))
            continue
        marked = _MARKED.sub(r"\1\\", line)
        lines.append(marked if marked != line else _TITLE.sub(r"\1\\", line))
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
    body = inert(clean(code).strip("\n"))
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(body)), default=0))
    return f"{fence}\n{body}\n{fence}"


def quoted(text: str, *, is_code: bool = False) -> str:
    """Cleaned text that stands between our tags."""
    return escaped(inert(clean(text)), _LISTED_CODE if is_code else _LISTED)


def disarmed(text: str, *, is_code: bool = False) -> str:
    """Cleaned text for lines whose beginnings are the caller's."""
    body = inert(clean(text))
    return body if is_code else escaped(body)


def listed(text: str, *, is_code: bool = False) -> str:
    """Cleaned text that stands behind the mark of a list; its other lines are indented."""
    return disarmed(text, is_code=is_code).strip("\n").replace("\n", "\n  ")


def attribute(text: str) -> str:
    """The text, every character of it, as an attribute's value with its quotes."""
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
    """A line of text between parentheses; those in it, and backslashes, have a backslash before them."""
    return "(" + re.sub(r"([\\()])", r"\\\1", inert(text)) + ")"


def listed_id(memory_id: str) -> str:
    """An id for the index: as it is, or as a JSON string where it holds what could be mistaken."""
    if not _UNPLAIN_ID.search(memory_id):
        return memory_id
    quoted_id = json.dumps(memory_id, ensure_ascii=not memory_id.isprintable())
    return quoted_id.replace("<", "\\u003c").replace("]", "\\u005d").replace("&", "\\u0026")
