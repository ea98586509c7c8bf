"""Sections of a Markdown document, by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_HEADING_CHARACTERS = 120
LARGE_BYTES = 4096
"""A section above this is parted at its headings of the next level, down to the fourth: it speaks of several things."""

_EVERY_LEVEL = 2
"""Headings down to this level begin a section whatever its size."""

_DEEPEST_LEVEL = 4
_FENCE = re.compile(r"\s*+(`{3,}|~{3,})([^`]*+)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_HTML = re.compile(r"</?(?:a|b|br|code|em|font|i|img|kbd|p|span|strong|sub|sup)\b[^<>]{0,500}>", re.IGNORECASE)
"""Elements that a heading may have, of which a reader sees at most what is in them."""

WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#\n]{1,300})(?:#[^\[\]|\n]{0,300})?(?:\|([^\[\]\n]{1,300}))?\]\]")
"""A link of a vault: the note, then what is shown in its place; a heading between them is passed over."""

_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
NOT_PROSE = ("#", "|", "<", "```", "~~~", "---", "===", "***")
"""Beginnings of lines that are no prose."""

_NO_TITLE = (*NOT_PROSE, ">", "- ", "* ", "+ ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a document with a text of its own.

    Attributes:
        headings: Those above it and its own, the document's first.
        lines: What stands below its heading; headings of deeper levels are lines like others.
    """

    headings: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A heading and what stands below it up to the next one; level 0 has none."""

    level: int
    heading: str
    written: tuple[str, ...]
    lines: tuple[str, ...]


def sections(lines: Sequence[str], name: str, stem: str) -> Iterator[Section]:
    """Sections with a text of their own, in order; what stands before the first heading is named after the document.

    Each heading of the first two levels begins one. So does a deeper one, where the section that it stands in is large.

    Args:
        lines: The document without its front matter.
        name: Name of the document.
        stem: Stands for a heading without a text.
    """
    path: list[tuple[int, str]] = [(0, name)]
    for blocks in _parted(list(_blocks(lines)), _EVERY_LEVEL):
        first = blocks[0]
        if first.level:
            path = [
                (level, heading)
                for level, heading in path
                if 0 < level < first.level or (not level and first.level > 1)
            ]
            path.append((first.level, first.heading or stem))
        below = (line for block in blocks[1:] for line in (*block.written, *block.lines))
        held = (*first.lines, *below)
        if any(line.strip() for line in held):
            yield Section(headings=tuple(heading for _, heading in path), lines=held)


def _parted(blocks: Sequence[_Block], level: int) -> Iterator[Sequence[_Block]]:
    """Blocks by sections: parted before headings of this level and above, and large ones at the next level again."""
    begins = [place for place, block in enumerate(blocks) if not place or block.level <= level]
    for begin, end in zip(begins, [*begins[1:], len(blocks)], strict=True):
        part = blocks[begin:end]
        if level < _DEEPEST_LEVEL and len(part) > 1 and _size_bytes(part) > LARGE_BYTES:
            yield from _parted(part, level + 1)
        else:
            yield part


def _size_bytes(blocks: Sequence[_Block]) -> int:
    return sum(len(line.encode()) + 1 for block in blocks for line in block.lines)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """The document by its headings down to the deepest level that may begin a section."""
    level, heading = 0, ""
    written: tuple[str, ...] = ()
    held: list[str] = []
    for row, (line, is_verbatim, _) in enumerate(verbatim(lines)):
        found = None if is_verbatim else _heading(lines, row)
        if found is None or found[0] > _DEEPEST_LEVEL:
            held.append(line)
            continue
        above = written
        written = (line,)
        if _UNDERLINE.match(line):
            written = (held.pop(), line)  # the heading's text, which stood above its underline
        yield _Block(level=level, heading=heading, written=above, lines=tuple(held))
        level, heading = found
        held = []
    yield _Block(level=level, heading=heading, written=written, lines=tuple(held))


def shown(text: str) -> str:
    """The text with what links show in the place of the links."""
    return _LINK.sub(r"\1", WIKI_LINK.sub(lambda link: link[2] or link[1], text))


def verbatim(lines: Sequence[str]) -> Iterator[tuple[str, bool, bool]]:
    """Each line, whether it belongs to a fence or to a comment begun above it, and whether one is open after it."""
    fence, in_comment = "", False
    for line in lines:
        was_open = bool(fence) or in_comment
        fence = "" if in_comment else _fence_after(fence, line)
        in_comment = not fence and _in_comment_after(in_comment, line)
        yield line, was_open or bool(fence), in_comment


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after the line, or nothing."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    marks, info = match.groups()
    if not fence:
        return str(marks)
    closes = marks[0] == fence[0] and len(marks) >= len(fence) and not info.strip()
    return "" if closes else fence


def _in_comment_after(in_comment: bool, line: str) -> bool:
    opened, closed = line.rfind("<!--"), line.rfind("-->")
    return opened > closed if max(opened, closed) >= 0 else in_comment


def _heading(lines: Sequence[str], row: int) -> tuple[int, str] | None:
    """(level, text) where the row is a heading, or the underline of one."""
    line = lines[row]
    match = _HEADING.match(line)
    if match is not None:
        return len(match.group(1)), _heading_text(line[match.end() :])
    underline = _UNDERLINE.match(line)
    above = lines[row - 1] if row else ""
    is_lone = row < 2 or not lines[row - 2].strip()
    is_no_text = _HEADING.match(above) or above.startswith(("    ", "\t")) or not above.strip()
    if underline is None or not is_lone or is_no_text or above.lstrip().startswith(_NO_TITLE):
        return None
    return (1 if "=" in underline.group(1) else 2), _heading_text(above)


def _heading_text(raw: str) -> str:
    text = raw.strip()
    closed = text.rstrip("#")
    if closed != text and (not closed or closed[-1] in " \t"):
        text = closed.rstrip()
    return _HTML.sub("", shown(text)).replace("`", "").replace("**", "").strip()[:MAX_HEADING_CHARACTERS]
