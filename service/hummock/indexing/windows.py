"""Cutting runs of lines into windows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TEXT_WINDOW_LINES = 60
_TEXT_OVERLAP_LINES = 6
_TEXT_WINDOW_CHARACTERS = 4_000
_CLOSERS = (")", "]", "}", "end", "*/")


@dataclass(frozen=True, slots=True, order=True)
class Rows:
    """Rows of a file, from 0, both inclusive."""

    first: int
    last: int


def trimmed(lines: Sequence[str], rows: Rows) -> Rows | None:
    """The rows without blank ones at either end, or None where all are blank."""
    filled = [row for row in range(rows.first, rows.last + 1) if lines[row].strip()]
    return Rows(filled[0], filled[-1]) if filled else None


def text_of(lines: Sequence[str], rows: Rows) -> str:
    r"""The rows' text, joined by `\n`."""
    return "\n".join(lines[rows.first : rows.last + 1])


def characters(lines: Sequence[str], rows: Rows) -> int:
    """The length of the rows' text; 0 for no rows."""
    return max(0, sum(len(line) + 1 for line in lines[rows.first : rows.last + 1]) - 1)


def text_windows(lines: Sequence[str]) -> Iterator[Rows]:
    """Windows over prose and data: 60 lines or 4,000 characters, the last 6 lines again in the next."""
    first = 0
    while first < len(lines):
        last = _reach(lines, Rows(first, min(first + _TEXT_WINDOW_LINES, len(lines)) - 1), _TEXT_WINDOW_CHARACTERS)
        window = trimmed(lines, Rows(first, last))
        if window is not None:
            yield window
        if last == len(lines) - 1:
            return
        first = max(first, last - _TEXT_OVERLAP_LINES) + 1


def code_windows(lines: Sequence[str], rows: Rows, limit_characters: int) -> Iterator[Rows]:
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
        window = trimmed(lines, Rows(first, last))
        if window is not None:
            yield window
        first = last + 1


def _reach(lines: Sequence[str], rows: Rows, limit_characters: int) -> int:
    """The last row up to which the text stays within the limit; at least the first."""
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
