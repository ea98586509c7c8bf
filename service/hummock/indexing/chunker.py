"""Cutting a source file into fragments: functions, classes, what is left between them, or plain windows.

Split, then merge: a function or a small class is one fragment; a large class is its members and a skeleton without
their bodies; a long function is windows; the little that is left between symbols joins the fragment before it. Every
line that is not blank is in the content of some fragment.

Source of the idea: Zhang et al., "cAST: Enhancing Code Retrieval-Augmented Generation with Structural Chunking", 2025.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hummock.indexing.fragment import Fragment, distinct, located_id
from hummock.indexing.languages import language_of
from hummock.indexing.outline import Symbol, outline
from hummock.indexing.source import SourceFile
from hummock.indexing.windows import Rows, characters, code_windows, text_of, text_windows, trimmed

MAX_FRAGMENT_CHARACTERS = 1_500
# A member this short is told whole in its class's skeleton.
_SHORT_MEMBER_CHARACTERS = 120
# Less than this between two symbols is no fragment of its own.
_SMALL_GAP_CHARACTERS = 120
_MAX_LANGUAGE_CHARACTERS = 20
_ELLIPSIS = " …"
_LEFTOVER = "(top)"  # in parentheses, so that no symbol is called so


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A fragment before it has its id; `content` is None where it is simply the rows' text."""

    place: str
    symbol: str
    signature: str
    rows: Rows
    content: str | None = None


def fragments(file: SourceFile) -> list[Fragment]:
    """The fragments of a text file in order of their first lines, ids distinct; a blank file has none."""
    lines = file.lines()
    language = language_of(file.suffix)
    symbols = None if language is None else outline("\n".join(lines).encode(), language)
    drafts = _windows(lines) if symbols is None else _Cutter(lines).file(symbols)
    name = language.name if language is not None else _format(file.suffix)
    return list(_named(sorted(drafts, key=lambda draft: draft.rows), file.path, name, lines))


def _format(suffix: str) -> str:
    """What to call a file's language when it is none of ours: `yaml`, `sql`."""
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
            signature=draft.signature,
            start_line=draft.rows.first + 1,
            end_line=draft.rows.last + 1,
            content=text_of(lines, draft.rows) if draft.content is None else draft.content,
        )


def _windows(lines: Sequence[str]) -> list[_Draft]:
    return [_Draft(place=f"L{rows.first + 1}", symbol="", signature="", rows=rows) for rows in text_windows(lines)]


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
            yield trimmed(self.lines, Rows(first, symbol.first_row - 1)), symbol
            first = symbol.last_row + 1
        yield trimmed(self.lines, Rows(first, len(self.lines) - 1)), None

    def _joins(self, gap: Rows, drafts: list[_Draft], at: int) -> bool:
        """Whether a gap is small enough to join that draft, which it then has."""
        if not drafts or drafts[at].content is not None or characters(self.lines, gap) > _SMALL_GAP_CHARACTERS:
            return False
        rows = drafts[at].rows
        joined = Rows(min(rows.first, gap.first), max(rows.last, gap.last))
        if characters(self.lines, joined) > MAX_FRAGMENT_CHARACTERS:
            return False
        drafts[at] = replace(drafts[at], rows=joined)
        return True

    def _leftovers(self, gaps: Sequence[Rows]) -> list[_Draft]:
        windows = [rows for gap in gaps for rows in code_windows(self.lines, gap, MAX_FRAGMENT_CHARACTERS)]
        return [
            _Draft(place=_numbered(_LEFTOVER, turn), symbol="", signature="", rows=rows)
            for turn, rows in enumerate(windows, start=1)
        ]

    def _symbol(self, symbol: Symbol) -> list[_Draft]:
        rows = Rows(symbol.first_row, symbol.last_row)
        if characters(self.lines, rows) <= MAX_FRAGMENT_CHARACTERS or not symbol.members:
            windows = code_windows(self.lines, rows, MAX_FRAGMENT_CHARACTERS)
            return [self._draft(symbol, turn, window) for turn, window in enumerate(windows, start=1)]
        members = [member for member in symbol.members if self._is_long(member)]
        inner = [draft for member in members for draft in self._symbol(member)]
        return self._skeleton(symbol, members) + inner

    def _is_long(self, member: Symbol) -> bool:
        return characters(self.lines, Rows(member.first_row, member.last_row)) > _SHORT_MEMBER_CHARACTERS

    def _skeleton(self, symbol: Symbol, members: Sequence[Symbol]) -> list[_Draft]:
        """A large class without the bodies of its long members, in as many fragments as it needs."""
        kept: list[tuple[int, str]] = []  # row, text
        row = symbol.first_row
        for member in members:
            kept += [(own, self.lines[own]) for own in range(row, member.first_row)]
            indentation = self.lines[member.first_row]
            indentation = indentation[: len(indentation) - len(indentation.lstrip())]
            kept.append((member.first_row, f"{indentation}{member.signature}{_ELLIPSIS}"))
            row = member.last_row + 1
        kept += [(own, self.lines[own]) for own in range(row, symbol.last_row + 1)]
        texts = [text for _, text in kept]
        windows = list(code_windows(texts, Rows(0, len(texts) - 1), MAX_FRAGMENT_CHARACTERS))
        whole = Rows(symbol.first_row, symbol.last_row)
        return [
            replace(
                self._draft(symbol, turn, whole if len(windows) == 1 else Rows(kept[own.first][0], kept[own.last][0])),
                content=text_of(texts, own),
            )
            for turn, own in enumerate(windows, start=1)
        ]

    def _draft(self, symbol: Symbol, turn: int, rows: Rows) -> _Draft:
        return _Draft(
            place=_numbered(symbol.path or _LEFTOVER, turn),
            symbol=symbol.path,
            signature=symbol.signature,
            rows=rows,
        )


def _numbered(place: str, turn: int) -> str:
    return place if turn == 1 else f"{place}@{turn}"
