"""Markdown documents as domain knowledge: one entry for each section."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from hummock_tools.indexing.chunker import SourceFile, distinct, located_id

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
MAX_SUMMARY_CHARACTERS = 500
_MAX_KEY_FILES = 20
# A section longer than a memory may be is parted; the limit for text is 256 KiB.
_MAX_CONTENT_BYTES = 200_000
_MAX_ALIAS_CHARACTERS = 60
_MAX_NAME_CHARACTERS = 256
_TARGET = re.compile(r"\]\(<?([^()<>\n]{1,2000}?)>?\)")
_FIELD = re.compile(r"(title|tags?|alias(?:es)?|date|created)[ \t]*:[ \t]*(.*)$", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*-[ \t]+(.+)$")
_NO_TEXT = re.compile(r"`[^`\n]*`|<!--.*?-->")
_TAG = re.compile(r"(?<![^\s(（,，。])#([^\W\d][\w/-]*)")
"""A tag in a note's text. A number after the sign is an issue's."""

_COLOUR = re.compile(r"[0-9a-fA-F]{3,8}")
_MAX_TAGS = 60
_MAX_TAG_CHARACTERS = 128
_MAX_ALIASES = 32
# Chinese that was wrapped: the line break in it was no space.
_WRAP = re.compile(r"(?<=[\u2e80-\u9fff\uff00-\uffef]) (?=[\u2e80-\u9fff\uff00-\uffef])")
_SENTENCE_ENDS = "。！？.!?；;"
_NUMBERING = re.compile(r"^(?:\d{1,3}[.．、)]){1,6}(?:\d{1,3}(?=\s))?\s*|^[一二三四五六七八九十]{1,3}、\s*")
_ALIAS_PARTS = re.compile(r"[()（）|·、]|\s/\s")
# Letters, digits and `_` of any script, and what else stands in paths.
_PATH_LIKE = re.compile(r"[\w./@+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainEntry:
    """A section of a document on one subject.

    Attributes:
        domain: The heading; of one that other documents have too, the title, for "Choice" names nothing by itself.
        title: The headings above it and its own: "007 Sign bits > Choice".
        summary: The first words under it, 1 to 500 characters.
        tags: Those at the top of its document, then those in its own text.
        date: Its document's, in ISO 8601 with an offset; empty if it has none.
    """

    id: str
    domain: str
    title: str
    aliases: tuple[str, ...]
    summary: str
    content: str
    key_files: tuple[str, ...]
    tags: tuple[str, ...] = ()
    date: str = ""


class _FrontMatter(NamedTuple):
    """A document's head: the rows that it takes, and what it says of all of the document."""

    rows: int = 0
    title: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    date: str = ""


def domain_entries(file: SourceFile, known_paths: Set[str], shared_names: Set[str] = frozenset()) -> list[DomainEntry]:
    """The sections of a Markdown document that have a text, in order.

    Of all paths of the repository those that a section mentions are its key files; `shared_names` are the headings, as
    `names_of` gives them, that several documents have.
    """
    entries: list[DomainEntry] = []
    taken: set[str] = set()
    front, found = _read(file)
    for section in found:
        for turn, lines in enumerate(_parts(section.lines), start=1):
            place = "/".join(section.headings) + (f"@{turn}" if turn > 1 else "")
            identity = located_id(file.path, distinct(place, taken))
            is_shared = _name(section.headings[-1]) in shared_names
            entry = _entry(identity, section.headings, lines, file.path, known_paths, is_shared=is_shared)
            aliases = (*entry.aliases, *front.aliases) if len(section.headings) == 1 else entry.aliases
            tags = tuple(dict.fromkeys((*front.tags, *_tags_in(lines))))[:_MAX_TAGS]
            entries.append(replace(entry, aliases=aliases, tags=tags, date=front.date))
    return entries


def names_of(file: SourceFile) -> frozenset[str]:
    """The headings of its sections that have a text, folded, so that they can be compared with other documents'."""
    return frozenset(_name(section.headings[-1]) for section in _read(file)[1])


def _name(heading: str) -> str:
    return _NUMBERING.sub("", heading).casefold()


def _entry(
    identity: str, headings: tuple[str, ...], lines: Sequence[str], path: str, known_paths: Set[str], *, is_shared: bool
) -> DomainEntry:
    content = "\n".join(lines).strip()
    # The path tells apart documents that begin alike, such as a README in each folder.
    place = (path, *headings) if is_shared and len(headings) == 1 else headings
    title = " > ".join(place)
    return DomainEntry(
        id=identity,
        domain=title[-_MAX_NAME_CHARACTERS:] if is_shared else headings[-1],
        title=title,
        aliases=() if is_shared else _aliases(headings[-1]),
        summary=_summary(lines),
        content=content,
        key_files=_mentioned_files(content, path, known_paths),
    )


def _aliases(heading: str) -> tuple[str, ...]:
    """Other names of a heading: either part of `还款 (Repayment)`, or `3. Storage` without its number."""
    whole = _NUMBERING.sub("", heading)
    parts = [whole, *_ALIAS_PARTS.split(whole)] if _ALIAS_PARTS.search(whole) else [whole]
    named = (part.strip() for part in parts)
    return tuple(dict.fromkeys(part for part in named if 1 < len(part) <= _MAX_ALIAS_CHARACTERS and part != heading))


def _read(file: SourceFile) -> tuple[_FrontMatter, Iterator[_Section]]:
    lines = file.lines()
    front = _front_matter(lines)
    stem = file.path.rpartition("/")[2].rpartition(".")[0]
    return front, _sections(lines[front.rows :], front.title or stem, stem)


def _front_matter(lines: Sequence[str]) -> _FrontMatter:
    """What a YAML block at the top says; only flat values and lists of them are read."""
    if not lines or lines[0].rstrip() != "---":
        return _FrontMatter()
    values: dict[str, list[str]] = {}
    name = ""
    for row, line in enumerate(lines[1:], start=1):
        if line.rstrip() in {"---", "..."}:
            return _made_front_matter(row + 1, values)
        field, item = _FIELD.match(line), _ITEM.match(line)
        if field is not None:
            name = field[1].lower()
            values[name] = [field[2].strip()] if field[2].strip() else []
        elif item is not None and name:
            values[name].append(item[1].strip())
        elif line.strip():
            name = ""
    return _FrontMatter()


def _made_front_matter(rows: int, values: Mapping[str, Sequence[str]]) -> _FrontMatter:
    tags = (tag.lstrip("#") for tag in _listed(values, "tags", "tag", parted_by=r"[,\s]+"))
    aliases = (alias for alias in _listed(values, "aliases", "alias", parted_by=",") if len(alias) > 1)
    dates = (_date(value) for value in _listed(values, "date", "created", parted_by=","))
    return _FrontMatter(
        rows=rows,
        title=_unquoted(" ".join(values.get("title", ())))[:_MAX_HEADING_CHARACTERS],
        tags=tuple(dict.fromkeys(tag for tag in tags if tag and _is_label(tag, _MAX_TAG_CHARACTERS)))[:_MAX_TAGS],
        aliases=tuple(dict.fromkeys(one for one in aliases if _is_label(one, _MAX_NAME_CHARACTERS)))[:_MAX_ALIASES],
        date=next(filter(None, dates), ""),
    )


def _listed(values: Mapping[str, Sequence[str]], *names: str, parted_by: str) -> list[str]:
    """The values of fields; one that stands alone may be a list in brackets or in one text."""
    found: list[str] = []
    for name in names:
        given = values.get(name, ())
        parts = re.split(parted_by, given[0].removeprefix("[").removesuffix("]")) if len(given) == 1 else given
        found += filter(None, map(_unquoted, parts))
    return found


def _tags_in(lines: Sequence[str]) -> Iterator[str]:
    """The tags of a text, outside of code."""
    for line, is_verbatim, in_comment in _verbatim(lines):
        found = [] if is_verbatim or in_comment or "#" not in line else _TAG.findall(_NO_TEXT.sub("", line))
        yield from (tag for tag in found if len(tag) <= _MAX_TAG_CHARACTERS and not _COLOUR.fullmatch(tag))


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _is_label(text: str, most: int) -> bool:
    return len(text) <= most and text.isprintable()


def _date(text: str) -> str:
    """A day or time in ISO 8601 with an offset, which is UTC if none is given; empty for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return ""
    # In UTC it must still lie in the years 1 to 9999.
    is_time = 1 < moment.year < 9999
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat() if is_time else ""


def _parts(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines in as few parts as each may be long."""
    part: list[str] = []
    part_bytes = 0
    for line in lines:
        line_bytes = len(line.encode()) + 1
        if part and part_bytes + line_bytes > _MAX_CONTENT_BYTES:
            yield part
            part, part_bytes = [], 0
        part.append(line)
        part_bytes += line_bytes
    yield part


def _summary(lines: Sequence[str]) -> str:
    """The first paragraphs that fit; the beginning of the first where none does, of the text where it has no prose."""
    summary = ""
    for paragraph in _paragraphs(lines):
        joined = f"{summary}\n{paragraph}" if summary else paragraph
        if len(joined) > MAX_SUMMARY_CHARACTERS:
            return summary or _cut(paragraph)
        summary = joined
    return summary or _cut("\n".join(lines).strip())


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Runs of prose without their links' targets; code, tables, HTML, pictures and comments are passed over."""
    held: list[str] = []
    for line, is_verbatim, in_comment in _verbatim((*lines, "")):
        text = _prose(line)
        if text and not (is_verbatim or in_comment):
            held.append(text)
        elif held:
            yield _WRAP.sub("", " ".join(held))
            held = []


def _prose(line: str) -> str:
    stripped = line.strip()
    if stripped.startswith(_NOT_PROSE) or stripped.startswith(("![", "[![")):
        return ""
    return _shown(stripped)


def _cut(paragraph: str) -> str:
    """The first 500 characters at most, up to the end of a sentence where one ends in the second half."""
    if len(paragraph) <= MAX_SUMMARY_CHARACTERS:
        return paragraph
    head = paragraph[:MAX_SUMMARY_CHARACTERS]
    end = max(head.rfind(mark) for mark in _SENTENCE_ENDS) + 1
    return head[:end] if end > MAX_SUMMARY_CHARACTERS // 2 else f"{head[:-1]}…"


def _mentioned_files(text: str, document_path: str, known_paths: Set[str]) -> tuple[str, ...]:
    """Known paths that the text mentions, in order of first mention, at most 20.

    A mention is the path from the root, the path from the document's folder, or the file's bare name where one file
    alone has it. A link may have spaces in it; one of a vault leaves out the ending of a note.
    """
    folder = posixpath.dirname(document_path)
    names = _unique_names(frozenset(known_paths))
    found: dict[str, None] = {}
    for word in dict.fromkeys((*_PATH_LIKE.findall(text), *_linked(text))):
        path = _resolved(word.rstrip(".").removeprefix("./"), folder, known_paths, names)
        if path is not None and path != document_path:
            found[path] = None
        if len(found) == _MAX_KEY_FILES:
            break
    return tuple(found)


def _linked(text: str) -> Iterator[str]:
    for link in _WIKI_LINK.finditer(text):
        name = link[1].strip()
        yield name if "." in posixpath.basename(name) else f"{name}.md"
    yield from (unquote(link[1]).partition("#")[0] for link in _TARGET.finditer(text))


def _resolved(word: str, folder: str, known_paths: Set[str], names: dict[str, str]) -> str | None:
    beside = posixpath.normpath(posixpath.join(folder, word))
    # `README` without an extension is more often a word than a file.
    named = names.get(word) if "." in word else None
    return next((candidate for candidate in (beside, word) if candidate in known_paths), named)


@lru_cache(maxsize=4)
def _unique_names(known_paths: frozenset[str]) -> dict[str, str]:
    names = {path: posixpath.basename(path) for path in known_paths}
    counts = Counter(names.values())
    return {name: path for path, name in names.items() if counts[name] == 1}


_MAX_HEADING_CHARACTERS = 120
_LARGE_BYTES = 4096
"""A section above this is parted at its headings of the next level, down to the fourth: it speaks of several things."""

_EVERY_LEVEL = 2
"""Headings down to this level begin a section whatever its size."""

_DEEPEST_LEVEL = 4
_FENCE = re.compile(r"\s*+(`{3,}|~{3,})([^`]*+)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_HTML = re.compile(r"</?(?:a|b|br|code|em|font|i|img|kbd|p|span|strong|sub|sup)\b[^<>]{0,500}>", re.IGNORECASE)
"""Elements that a heading may have, of which a reader sees at most what is in them."""

_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#\n]{1,300})(?:#[^\[\]|\n]{0,300})?(?:\|([^\[\]\n]{1,300}))?\]\]")
"""A link of a vault: the note, then what is shown in its place; a heading between them is passed over."""

_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_NOT_PROSE = ("#", "|", "<", "```", "~~~", "---", "===", "***")
"""Beginnings of lines that are no prose."""

_NO_TITLE = (*_NOT_PROSE, ">", "- ", "* ", "+ ")


class _Section(NamedTuple):
    """A part of a document with a text of its own, in which headings of deeper levels are lines like others.

    `headings` are those above it and its own, the document's first.
    """

    headings: tuple[str, ...]
    lines: tuple[str, ...]


class _Block(NamedTuple):
    """A heading and what stands below it up to the next one; level 0 has none."""

    level: int
    heading: str
    written: tuple[str, ...]
    lines: tuple[str, ...]


def _sections(lines: Sequence[str], name: str, stem: str) -> Iterator[_Section]:
    """Sections with a text of their own, in order; what stands before the first heading is named after the document.

    Each heading of the first two levels begins one. So does a deeper one, where the section that it stands in is large.
    `name` is that of the document, `stem` stands for a heading without a text.
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
            yield _Section(headings=tuple(heading for _, heading in path), lines=held)


def _parted(blocks: Sequence[_Block], level: int) -> Iterator[Sequence[_Block]]:
    """Blocks by sections: parted before headings of this level and above, and large ones at the next level again."""
    begins = [place for place, block in enumerate(blocks) if not place or block.level <= level]
    for begin, end in zip(begins, [*begins[1:], len(blocks)], strict=True):
        part = blocks[begin:end]
        size_bytes = sum(len(line.encode()) + 1 for block in part for line in block.lines)
        if level < _DEEPEST_LEVEL and len(part) > 1 and size_bytes > _LARGE_BYTES:
            yield from _parted(part, level + 1)
        else:
            yield part


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """The document by its headings down to the deepest level that may begin a section."""
    level, heading = 0, ""
    written: tuple[str, ...] = ()
    held: list[str] = []
    for row, (line, is_verbatim, _) in enumerate(_verbatim(lines)):
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


def _shown(text: str) -> str:
    """The text with what links show in the place of the links."""
    return _LINK.sub(r"\1", _WIKI_LINK.sub(lambda link: link[2] or link[1], text))


def _verbatim(lines: Sequence[str]) -> Iterator[tuple[str, bool, bool]]:
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
    return _HTML.sub("", _shown(text)).replace("`", "").replace("**", "").strip()[:_MAX_HEADING_CHARACTERS]
