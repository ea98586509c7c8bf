"""Cuts a text into pieces that fit a model's window, at token offsets, so that no character is lost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

__all__ = ["piece_spans"]

OVERLAP = 0.1


def piece_spans(
    offsets: Sequence[tuple[int, int]], words: Sequence[int | None], length: int, window: int
) -> list[tuple[int, int]]:
    """Character spans of overlapping pieces that together cover a text.

    A cut falls between words where the last half of the window has such a place, else between tokens; each piece
    after the first begins about a tenth of the window before its predecessor's end.

    Args:
        offsets: Start and end of each token, in characters, ascending.
        words: For each token the number of its word; tokens of one word follow each other.
        length: Characters of the text.
        window: Most tokens of a piece, at least 2.

    Returns:
        At least one (start, end); the first starts at 0, the last ends at `length`, each starts no later than its
        predecessor ends, and after it starts.
    """
    cuts = _cut_places(offsets)
    spans: list[tuple[int, int]] = []
    first = 0
    while len(offsets) - first > window:
        end = _last_cut(cuts, words, first, window)
        if end is None:
            break
        spans.append((_start(offsets, first), _start(offsets, end)))
        first = _first_cut(cuts, words, max(end - int(window * OVERLAP), first + 1), end)
    spans.append((_start(offsets, first), length))
    return spans


def _cut_places(offsets: Sequence[tuple[int, int]]) -> list[bool]:
    """For each token, whether a text may be cut before it: several tokens can stand for one character."""
    places = [False]
    for (_, before_end), (start, _) in pairwise(offsets):
        places.append(start >= before_end and start > 0)
    return places


def _last_cut(cuts: Sequence[bool], words: Sequence[int | None], first: int, window: int) -> int | None:
    """Where the piece that starts at `first` ends: the last word start of its second half, else the last place."""
    allowed = [index for index in range(first + window, first, -1) if cuts[index]]
    late = (index for index in allowed if index > first + window // 2 and words[index] != words[index - 1])
    return next(late, allowed[0] if allowed else None)


def _first_cut(cuts: Sequence[bool], words: Sequence[int | None], lowest: int, end: int) -> int:
    """Where the next piece starts: the first word start from `lowest`, else the first place, at most `end`."""
    allowed = [index for index in range(lowest, end + 1) if cuts[index]]
    return next((index for index in allowed if words[index] != words[index - 1]), allowed[0])


def _start(offsets: Sequence[tuple[int, int]], index: int) -> int:
    """Where a piece starts that starts with that token; space before the first token belongs to it."""
    return offsets[index][0] if index else 0
