"""Excerpts of a memory's texts: all, the lines that bear on the query, or a number of characters to the letter.

`quotas.text_characters` asks for the last, as the context form's document has it; then there is no id and no lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from hummock.core.memory import CodeFragment, DomainKnowledge, Memory, Origin
from hummock.render import escape
from hummock.render.passage import Passage, columns, passage_of
from hummock.render.section import Frame

WHOLE: Final = "in full"
"""The reason of a text that is not cut."""

_BEGINNING: Final = "cut to its beginning"
_BEARING: Final = "cut to the lines that bear on the query"

_PROSE_COLUMNS: Final = 1000
"""Columns of an excerpt of prose at the form's own budget: 500 Chinese characters, or twice as many letters."""
_CODE_COLUMNS: Final = 1800
_OPENING_COLUMNS: Final = 160
"""Longest first line of code that is shown before an excerpt from further down, since it names the symbol."""
_GAP: Final = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """An escaped text for a section, and the reason why it is cut."""

    text: str
    reason: str


def prose_excerpt(stored: str, memory: Memory, frame: Frame) -> Excerpt:
    """The excerpt of prose; a cut one ends with a mark and, unless cut to the letter, the id to read on by."""
    text = escape.clean(stored).lstrip("\n").rstrip()
    if frame.quotas.text_characters:
        return _to_the_letter(text, frame, mark_below=False, write=escape.prose)
    shown = passage_of(text, frame.words, int(_PROSE_COLUMNS * frame.passage_scale))
    if shown.is_whole:
        return Excerpt(text=escape.prose(text), reason=WHOLE)
    fence = escape.open_fence(text.split("\n")[: shown.first_line])
    body = "\n".join(part for part in (_GAP if shown.is_cut_before else "", fence, shown.text) if part)
    mark = f"{frame.wording.cut} {escape.bracketed_id(memory.id)}"
    return Excerpt(text=f"{escape.prose(body)}\n{mark}", reason=_reason(shown))


def code_excerpt(memory: Memory, frame: Frame) -> tuple[str, Excerpt]:
    """The location of a code fragment, and its excerpt between fences."""
    content = escape.clean(memory.payload.content if memory.payload else memory.index.summary).rstrip("\n")
    code = memory.payload.detail if memory.payload else None
    path = escape.inline(code.path if isinstance(code, CodeFragment) else memory.index.title)
    write = partial(escape.fenced, keeps_keys=escape.keeps_keys(memory))
    if frame.quotas.text_characters:
        return path, _to_the_letter(content.strip("\n"), frame, mark_below=True, write=write)
    shown = passage_of(content, frame.words, int(_CODE_COLUMNS * frame.passage_scale))
    opening = content.strip("\n").partition("\n")[0]
    has_opening = shown.is_cut_before and columns(opening) <= _OPENING_COLUMNS
    parts = (
        opening if has_opening else "",
        _GAP if shown.is_cut_before else "",
        shown.text.strip("\n"),
        frame.wording.cut if shown.is_cut_behind else "",
    )
    text = write("\n".join(part for part in parts if part))
    place = f"{path}{_place(code, content, shown)}" if isinstance(code, CodeFragment) else path
    return f"{place} {escape.bracketed_id(memory.id)}", Excerpt(text=text, reason=_reason(shown))


def domain_texts(memory: Memory, detail: DomainKnowledge) -> list[str]:
    """Return the summary, and the content if it adds to it; indexed content begins with its summary."""
    content = memory.payload.content.strip() if memory.payload else ""
    if not content:
        return [detail.summary]
    is_part = memory.origin is Origin.INDEXER or escape.one_line(detail.summary) in escape.one_line(content)
    return [content] if is_part else [detail.summary, content]


def _place(code: CodeFragment, content: str, shown: Passage) -> str:
    """Lines and symbol: the lines that are shown, or the fragment's where its content leaves some of them out."""
    symbol = f" · {escape.inline(code.symbol)}" if code.symbol else ""
    if not code.start_line:
        return symbol
    first, last = code.start_line, code.end_line or code.start_line
    if last - first == content.count("\n"):
        first, last = first + shown.first_line, first + shown.last_line
    return f":{first}-{last}{symbol}"


def _to_the_letter(text: str, frame: Frame, *, mark_below: bool, write: Callable[[str], str]) -> Excerpt:
    limit = frame.quotas.text_characters
    if len(text) <= limit:
        return Excerpt(text=write(text), reason=WHOLE)
    mark = ("\n" if mark_below else "") + frame.wording.cut
    return Excerpt(text=write(text[:limit] + mark), reason=f"cut at {limit} characters")


def _reason(shown: Passage) -> str:
    if shown.is_whole:
        return WHOLE
    return _BEARING if shown.is_found else _BEGINNING
