"""Cuts a source file into fragments: functions, classes, the code between them, or plain windows.

Split, then merge: a function or a small class is one fragment; a large class is its members and a skeleton without
their bodies; a long function is windows; the little that is left between symbols joins the fragment before it. Every
line that is not blank is in the content of some fragment.

Source of the idea: Zhang et al., "cAST: Enhancing Code Retrieval-Augmented Generation with Structural Chunking", 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from hummock_tools.indexing.languages import Symbol, language_of, outline

MAX_FRAGMENT_CHARACTERS = 1_500
# A member this short is shown in full in its class's skeleton.
_SHORT_MEMBER_CHARACTERS = 120
# Less than this between two symbols is no fragment of its own.
_SMALL_GAP_CHARACTERS = 120
_MAX_LANGUAGE_CHARACTERS = 20
_TEXT_WINDOW_LINES = 60
_TEXT_OVERLAP_LINES = 6
_TEXT_WINDOW_CHARACTERS = 4_000
_CLOSERS = (")", "]", "}", "end", "*/")
_ELLIPSIS = " …"
_LEFTOVER = "(top)"  # in parentheses, so that no symbol is called so
MAX_ID_BYTES = 256
_DIGEST_BYTES = 8
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A text file: its path relative to the root, with `/` between parts, and its text as UTF-8.

    For a notebook it is the text of its cells. `guessed` is the encoding guessed for the bytes on disk; empty if they
    are UTF-8 or declare their encoding.
    """

    path: str
    data: bytes
    guessed: str = ""

    def text(self) -> str:
        r"""The decoded text without byte order mark, every line end as `\n`.

        Raises:
            UnicodeDecodeError: The bytes are not UTF-8; the walk never yields such a file.
        """
        text = self.data.decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self) -> list[str]:
        r"""The lines of `text`; only `\n` parts them, so that numbers agree with the parser's rows."""
        return self.text().split("\n")

    @property
    def suffix(self) -> str:
        """The extension in lower case with its dot, empty when the name has none."""
        return suffix_of(self.path)


def suffix_of(path: str) -> str:
    """The extension of a path's name in lower case with its dot, empty when the name has none."""
    stem, dot, extension = path.rpartition("/")[2].rpartition(".")
    return f".{extension.lower()}" if dot and stem else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A run of lines of one file that is worth recalling on its own.

    `start_line` and `end_line` count from 1, both inclusive. A large class is one fragment that spans all its lines
    with the bodies of its members left out of the content; the members are fragments of their own. `title` is the
    symbol with a function's parameters, empty without a symbol.
    """

    id: str
    path: str
    language: str
    symbol: str
    title: str
    start_line: int
    end_line: int
    content: str

    def __post_init__(self) -> None:
        if not 1 <= self.start_line <= self.end_line:
            raise ValueError(f"{self.id}: lines {self.start_line} to {self.end_line} are no range")


def located_id(path: str, place: str) -> str:
    """The id of a place in a file: `path#place`, at most 256 bytes of UTF-8.

    Two places never share an id: `#` in a path is escaped, and an id that had to be cut ends in a digest of the whole.
    """
    whole = f"{escaped(path)}#{place}"
    raw = whole.encode()
    if len(raw) <= MAX_ID_BYTES:
        return whole
    digest = blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
    kept = raw[: MAX_ID_BYTES - len(digest) - 1].decode(errors="ignore")
    return f"{kept}~{digest}"


def escaped(path: str) -> str:
    """Escape a path for the beginning of an id."""
    return path.replace("%", "%25").replace("#", "%23")


def distinct(place: str, taken: set[str]) -> str:
    """`place`, or the first free one of `place~2`, `place~3` …; the answer is added to `taken`.

    Control characters and those that turn the direction of writing, which no id may hold, become `?`.
    """
    place = _CONTROL.sub("?", place)
    candidate, turn = place, 1
    while candidate in taken:
        turn += 1
        candidate = f"{place}~{turn}"
    taken.add(candidate)
    return candidate


@dataclass(frozen=True, slots=True, order=True)
class Rows:
    """Rows of a file, from 0, both inclusive."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """A fragment before it has an id; `content` is None if it is just the rows' text."""

    place: str
    symbol: str
    title: str
    rows: Rows
    content: str | None = None


def fragments(file: SourceFile) -> list[Fragment]:
    """The fragments of a text file in order of their first lines, ids distinct; a blank file has none."""
    lines = file.lines()
    language = language_of(file.suffix)
    symbols = None if language is None else outline("\n".join(lines).encode(), language)
    if symbols is None:
        drafts = [_Draft(f"L{rows.first + 1}", "", "", rows) for rows in _text_windows(lines)]
    else:
        drafts = _Cutter(lines).file(symbols)
    name = language.name if language is not None else _format(file.suffix)
    return list(_named(sorted(drafts, key=lambda draft: draft.rows), file.path, name, lines))


def _format(suffix: str) -> str:
    """Language name for a file in no known language: its suffix, such as `yaml` or `sql`, else `text`."""
    extension = suffix.removeprefix(".")
    return extension if extension.isalnum() and len(extension) <= _MAX_LANGUAGE_CHARACTERS else "text"


def _named(drafts: Sequence[_Draft], path: str, language: str, lines: Sequence[str]) -> Iterator[Fragment]:
    taken: set[str] = set()
    for draft in drafts:
        yield Fragment(
            id=located_id(path, distinct(draft.place, taken)),
            path=path,
            language=language,
            symbol=draft.symbol,
            title=draft.title,
            start_line=draft.rows.first + 1,
            end_line=draft.rows.last + 1,
            content=_text_of(lines, draft.rows) if draft.content is None else draft.content,
        )


@dataclass(frozen=True, slots=True)
class _Cutter:
    lines: Sequence[str]

    def file(self, symbols: Sequence[Symbol]) -> list[_Draft]:
        """Drafts of a whole file, given its outermost symbols in order."""
        drafts: list[_Draft] = []
        leftovers: list[Rows] = []
        for gap, symbol in self._gaps(symbols):
            own = [] if symbol is None else self._symbol(symbol)
            if gap is not None and not (self._joins(gap, drafts, -1) or (not drafts and self._joins(gap, own, 0))):
                leftovers.append(gap)
            drafts += own
        return drafts + self._leftovers(leftovers)

    def _gaps(self, symbols: Sequence[Symbol]) -> Iterator[tuple[Rows | None, Symbol | None]]:
        """Each symbol with the rows between it and the one before; last, the rows after them all."""
        first = 0
        for symbol in symbols:
            yield _trimmed(self.lines, Rows(first, symbol.first_row - 1)), symbol
            first = symbol.last_row + 1
        yield _trimmed(self.lines, Rows(first, len(self.lines) - 1)), None

    def _joins(self, gap: Rows, drafts: list[_Draft], at: int) -> bool:
        """Joins a small gap to that draft if the result is not too large; true if it did."""
        if not drafts or drafts[at].content is not None or characters(self.lines, gap) > _SMALL_GAP_CHARACTERS:
            return False
        rows = drafts[at].rows
        joined = Rows(min(rows.first, gap.first), max(rows.last, gap.last))
        if characters(self.lines, joined) > MAX_FRAGMENT_CHARACTERS:
            return False
        drafts[at] = replace(drafts[at], rows=joined)
        return True

    def _leftovers(self, gaps: Sequence[Rows]) -> list[_Draft]:
        windows = [rows for gap in gaps for rows in _code_windows(self.lines, gap, MAX_FRAGMENT_CHARACTERS)]
        return [_Draft(_numbered(_LEFTOVER, turn), "", "", rows) for turn, rows in enumerate(windows, start=1)]

    def _symbol(self, symbol: Symbol) -> list[_Draft]:
        rows = Rows(symbol.first_row, symbol.last_row)
        if characters(self.lines, rows) <= MAX_FRAGMENT_CHARACTERS or not symbol.members:
            windows = _code_windows(self.lines, rows, MAX_FRAGMENT_CHARACTERS)
            return [self._draft(symbol, turn, window) for turn, window in enumerate(windows, start=1)]
        spans = ((member, Rows(member.first_row, member.last_row)) for member in symbol.members)
        members = [member for member, span in spans if characters(self.lines, span) > _SHORT_MEMBER_CHARACTERS]
        inner = [draft for member in members for draft in self._symbol(member)]
        return self._skeleton(symbol, members) + inner

    def _skeleton(self, symbol: Symbol, members: Sequence[Symbol]) -> list[_Draft]:
        """A large class without the bodies of its long members, in as many fragments as it needs."""
        kept: list[tuple[int, str]] = []  # row, text
        row = symbol.first_row
        for member in members:
            kept += [(own, self.lines[own]) for own in range(row, member.first_row)]
            first = self.lines[member.first_row]
            kept.append((member.first_row, f"{first[: _indentation(first)]}{member.signature}{_ELLIPSIS}"))
            row = member.last_row + 1
        kept += [(own, self.lines[own]) for own in range(row, symbol.last_row + 1)]
        texts = [text for _, text in kept]
        windows = list(_code_windows(texts, Rows(0, len(texts) - 1), MAX_FRAGMENT_CHARACTERS))
        whole = Rows(symbol.first_row, symbol.last_row)
        return [
            replace(
                self._draft(symbol, turn, whole if len(windows) == 1 else Rows(kept[own.first][0], kept[own.last][0])),
                content=_text_of(texts, own),
            )
            for turn, own in enumerate(windows, start=1)
        ]

    def _draft(self, symbol: Symbol, turn: int, rows: Rows) -> _Draft:
        return _Draft(_numbered(symbol.path or _LEFTOVER, turn), symbol.path, symbol.title, rows)


def _numbered(place: str, turn: int) -> str:
    return place if turn == 1 else f"{place}@{turn}"


def _text_windows(lines: Sequence[str]) -> Iterator[Rows]:
    """Windows over prose and data: 60 lines or 4,000 characters, the last 6 lines again in the next."""
    first = 0
    while first < len(lines):
        last = _reach(lines, Rows(first, min(first + _TEXT_WINDOW_LINES, len(lines)) - 1), _TEXT_WINDOW_CHARACTERS)
        window = _trimmed(lines, Rows(first, last))
        if window is not None:
            yield window
        if last == len(lines) - 1:
            return
        first = max(first, last - _TEXT_OVERLAP_LINES) + 1


def _code_windows(lines: Sequence[str], rows: Rows, limit_characters: int) -> Iterator[Rows]:
    """Windows over code without overlap, cut where the indentation is least.

    Each holds at most `limit_characters`, or one line that is longer.
    """
    first = rows.first
    while first <= rows.last:
        last = _reach(lines, Rows(first, rows.last), limit_characters)
        if last < rows.last:
            # The last window gets a fair share: a tail of two lines is no use to anyone.
            left = characters(lines, Rows(first, rows.last)) - limit_characters // 4
            last = _reach(lines, Rows(first, last), min(limit_characters, left))
            last = _best_cut(lines, Rows(first, last)) - 1
        window = _trimmed(lines, Rows(first, last))
        if window is not None:
            yield window
        first = last + 1


def _reach(lines: Sequence[str], rows: Rows, limit_characters: int) -> int:
    """Return the last row up to which the text stays within the limit; at least the first."""
    reached = -1  # no line break before the first line
    for row in range(rows.first, rows.last + 1):
        reached += len(lines[row]) + 1
        if reached > limit_characters and row > rows.first:
            return row - 1
    return rows.last


def _best_cut(lines: Sequence[str], rows: Rows) -> int:
    """The row to begin the next window with: in the second half the least indented, the later of equals."""
    middle = (rows.first + rows.last) // 2 + 1
    candidates = [row for row in range(middle, rows.last + 2) if _may_begin(lines[row])]
    if not candidates:
        return rows.last + 1
    return min(candidates, key=lambda row: (_indentation(lines[row]), -row))


def _may_begin(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith(_CLOSERS)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _trimmed(lines: Sequence[str], rows: Rows) -> Rows | None:
    """The rows without blank ones at either end, or None where all are blank."""
    filled = [row for row in range(rows.first, rows.last + 1) if lines[row].strip()]
    return Rows(filled[0], filled[-1]) if filled else None


def _text_of(lines: Sequence[str], rows: Rows) -> str:
    r"""The rows' text, joined by `\n`."""
    return "\n".join(lines[rows.first : rows.last + 1])


def characters(lines: Sequence[str], rows: Rows) -> int:
    """The length of the rows' text; 0 for no rows."""
    return max(0, sum(len(line) + 1 for line in lines[rows.first : rows.last + 1]) - 1)
