"""Selects the lines of long texts that bear on a query, and as many of them as a block has room for."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

from msgspec import Struct

from hummock.render.section import Block, Frame
from hummock.text.analyzer import query_words
from hummock.text.keywords import keywords
from hummock.text.normalise import CJK
from hummock.text.question import question_of

Measure = Callable[[str], int]

MOST_KEYWORDS: Final = 32
"""Content words of a query that count."""
_LEAD_SHARE: Final = 0.25
"""Share of the spare room for text before the lines that hold words of the query; the rest is for text after them."""
_FARTHEST_BOUNDARY: Final = 80
"""Characters searched backwards for the end of a word; text without one in that many is no prose."""

_SENTENCE_END: Final = re.compile(r"[。！？；]+|(?<![.!?;])[.!?;]++(?=\s)")
_CJK: Final = re.compile(f"[{CJK}]")
_INSIDE_WORD: Final = re.compile(rf"(?<=[^\W{CJK}])(?=[^\W{CJK}])")


class Passage(Struct, frozen=True, kw_only=True):
    """A part of a text, or all of it.

    Attributes:
        text: Whole lines; whole sentences of a line that is too long, whole words of such a sentence.
        first_line: First line, counted from 0 in the whole text.
        last_line: Last line, inclusive.
        is_cut_before: Whether text before it is left out.
        is_cut_behind: Whether text after it is left out.
        is_found: Whether it was chosen by words of the query; else it is the beginning.
    """

    text: str
    first_line: int
    last_line: int
    is_cut_before: bool = False
    is_cut_behind: bool = False
    is_found: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the text is missing."""
        return not (self.is_cut_before or self.is_cut_behind)


@lru_cache(64)
def words_of(query: str) -> tuple[str, ...]:
    """Return words of a query to find in texts, folded: stems of content words, and Chinese character pairs.

    Pairs come both in simplified characters and as written in the query.
    """
    told = query_words(" ".join(keywords(question_of(query), MOST_KEYWORDS)))
    forms = [form for term, word in told for form in ((term, word) if _CJK.match(term) else (_held_stem(term),))]
    return tuple(dict.fromkeys([form for form in forms if len(form) > 1 or _CJK.match(form)]))


def _held_stem(term: str) -> str:
    """The stem of "query" is "queri", which no text holds."""
    return term[:-1] if term.endswith("i") and len(term) > 3 else term


def columns(text: str) -> int:
    """Return the width of a text; a Chinese character counts twice, since it costs as much as two letters or more."""
    # One byte for a letter and three for a Chinese character; searching for the latter takes ten times as long.
    return (len(text) + len(text.encode("utf-8", "surrogatepass"))) // 2


def passage_of(text: str, query: str, limit: int, measure: Measure = columns) -> Passage:
    """Find the part of a text with most of the query's words, weighted by rarity; its beginning if it has none.

    Of equal parts the one with the words closest together is taken, then the first.

    Args:
        text: Cleaned.
        query: Its words are those of `words_of`; none for "".
        limit: Greatest width, at least 1.
        measure: Returns the width of a text: at least 1 for each character.
    """
    if measure(text) <= limit:
        return Passage(text=text, first_line=0, last_line=text.count("\n"))
    starts = _pieces(text, limit, measure)
    widths = [measure(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    span = _densest(_held(text, starts, words_of(query)), widths, limit)
    first, last = _widened(span or (0, 0), widths, limit)
    start, end = starts[first], starts[last + 1] if last + 1 < len(starts) else len(text)
    part = text[start:end]
    lead = len(part) - len(part.lstrip("\n"))
    first_line = text.count("\n", 0, start + lead)
    shown = part.strip("\n")
    return Passage(
        text=shown,
        first_line=first_line,
        last_line=first_line + shown.count("\n"),
        is_cut_before=bool(text[:start].strip()),
        is_cut_behind=bool(text[end:].strip()),
        is_found=span is not None,
    )


def _pieces(text: str, limit: int, measure: Measure) -> list[int]:
    """Where pieces within the limit begin: lines or, in a line that is too long, sentences or words."""
    starts: list[int] = []
    start = 0
    for line in text.split("\n"):
        end = min(start + len(line) + 1, len(text))
        room = limit
        # The first test avoids measuring the whole rest again and again in a text of one line.
        while end - start > room or measure(text[start:end]) > room:
            # Half, so that two pieces of a long line fit side by side.
            room = max(limit // 2, 1)
            starts.append(start)
            start = _border(text, start, end, room, measure)
        if start < end or not starts:
            starts.append(start)
        start = end
    return starts


def _border(text: str, start: int, end: int, limit: int, measure: Measure) -> int:
    """Return the last place to cut a piece from `start`: after a sentence, else between words, else at the limit."""
    within = text[start : min(end, start + limit)]
    while (excess := measure(within) - limit) > 0 and len(within) > 1:
        within = within[: -((excess + 1) // 2)]
    size = len(within)
    sentences = [found.end() for found in _SENTENCE_END.finditer(within, 0, size)]
    if sentences and sentences[-1] > size // 2:
        return start + sentences[-1]
    for cut in range(start + size, max(start + size - _FARTHEST_BOUNDARY, start), -1):
        if not _INSIDE_WORD.match(text, cut):
            return cut
    return start + size


def _held(text: str, starts: Sequence[int], words: Sequence[str]) -> dict[int, set[int]]:
    """For each piece that holds any, the places of its words among `words`."""
    lowered = text.lower()
    # A few letters have another length in lower case, and places would no longer agree.
    folded = lowered if len(lowered) == len(text) else text
    held: dict[int, set[int]] = {}
    for place, word in enumerate(words):
        at = folded.find(word)
        while at >= 0:
            piece = bisect_right(starts, at) - 1
            held.setdefault(piece, set()).add(place)
            # Further occurrences in the same piece do not count.
            at = folded.find(word, starts[piece + 1]) if piece + 1 < len(starts) else -1
    return held


def _densest(held: dict[int, set[int]], widths: Sequence[int], limit: int) -> tuple[int, int] | None:
    """The first and the last piece of the span that holds words of the greatest weight, None where none is held."""
    frequency: dict[int, int] = {}
    for places in held.values():
        for place in places:
            frequency[place] = frequency.get(place, 0) + 1
    weight = {place: math.log1p(len(widths) / count) for place, count in frequency.items()}
    ends = list(accumulate(widths, initial=0))
    pieces = sorted(held)
    best: tuple[float, int, int, int] | None = None
    for index, first in enumerate(pieces):
        seen: set[int] = set()
        total = 0.0
        for last in pieces[index:]:
            width = ends[last + 1] - ends[first]
            if width > limit:
                break
            new = held[last] - seen
            if not new:
                continue
            seen |= new
            total += sum(weight[place] for place in new)
            if best is None or (total, -width) > best[:2]:
                best = (total, -width, first, last)
    return None if best is None else best[2:]


def _widened(span: tuple[int, int], widths: Sequence[int], limit: int) -> tuple[int, int]:
    """The span with as many pieces around it as there is room for."""
    first, last = span
    room = limit - sum(widths[first : last + 1])
    lead = int(room * _LEAD_SHARE)
    while first and widths[first - 1] <= lead:
        first -= 1
        lead -= widths[first]
        room -= widths[first]
    while last + 1 < len(widths) and widths[last + 1] <= room:
        last += 1
        room -= widths[last]
    while first and widths[first - 1] <= room:
        first -= 1
        room -= widths[first]
    return first, last


WHOLE: Final = "in full"
GAP: Final = "..."
"""Stands for text before an excerpt."""

_BEGINNING: Final = "cut to its beginning"
_BEARING: Final = "cut to the lines that bear on the query"
_SHORTEST_COLUMNS: Final = 160
_COLUMNS_A_TOKEN: Final = 4
"""At most, so that the first excerpt tried is long enough."""

_LESS: Final = 0.9
"""Largest share of a width with too many tokens that is tried next."""


def how_cut(shown: Passage) -> str:
    """How much of a text a passage is, for people."""
    if shown.is_whole:
        return WHOLE
    return _BEARING if shown.is_found else _BEGINNING


def fitted(body: str, frame: Frame, room: int, write: Callable[[str], str]) -> Block:
    """The block of as long a passage of a text as has at most `room` tokens, marked where it is cut.

    Even the shortest may have more: it has some 160 columns.

    Args:
        body: Cleaned.
        frame: Has the query, the counter and the words of the marks.
        room: Tokens of the block; may be below 0.
        write: Makes the block's text of the passage.
    """
    limit = max(room * _COLUMNS_A_TOKEN, _SHORTEST_COLUMNS)
    while True:
        shown = passage_of(body, frame.query, limit)
        parts = (GAP * shown.is_cut_before, shown.text.strip("\n"), "" if shown.is_whole else frame.wording.cut)
        text = write("\n".join(part for part in parts if part))
        token_count = frame.counter.count(text)
        if token_count <= room or limit <= _SHORTEST_COLUMNS:
            return Block(text, how_cut(shown), token_count)
        limit = max(int(limit * min(room / token_count, _LESS)), _SHORTEST_COLUMNS)
