"""Selects the hits worth showing, and the lines of long texts that bear on a query.

A recall returns the best hits that exist, and these may be useless. A score compares a hit with the best of its group
and does not show whether that one is good: half the project holds most terms of a question in everyday words ("what is
the ... of"). Two measures do: the calibrated similarity, and the number of content words that the hit holds.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

from msgspec import Struct

from hummock.core.candidates import FoundBy
from hummock.core.recall import Hit
from hummock.text.analyzer import query_terms, query_words
from hummock.text.keywords import keywords
from hummock.text.normalise import CJK, is_han
from hummock.text.question import question_of

Measure = Callable[[str], int]

_KEYWORDS: Final = 32
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
def told_terms(query: str) -> frozenset[str]:
    """Return the terms of a query's content words."""
    return frozenset(query_terms(" ".join(keywords(question_of(query), _KEYWORDS))))


@lru_cache(64)
def words_of(query: str) -> tuple[str, ...]:
    """Return words of a query to find in texts, folded: stems of content words, and Chinese character pairs.

    Pairs come both in simplified characters and as written in the query.
    """
    told = query_words(" ".join(keywords(question_of(query), _KEYWORDS)))
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


LEAST_SIMILARITY: Final = 0.2
"""Least similarity of a hit worth its tokens. The best hit of unrelated questions in both languages had at most .22,
mostly below .15."""

LEAST_SHARE: Final = 0.5
LEAST_WORDS: Final = 2
"""Share of the query's telling words that does instead, and how many of them; one where the query has no more."""

LEAST_OF_BEST: Final = 0.4
"""Share of the best score of its group, ages and verdicts apart, below which a hit only follows because there is room
for ten."""

LEAST_ACROSS: Final = 0.05
"""The similarity that does for the closest hit in the other script: there no word can match, and models see less. Of 13
questions asked in the other language it was the answer in 10, at .05 to .40."""

ANSWERS: Final = 0.5
"""The similarity from which a hit in the query's script counts as an answer, so that none in the other script is
needed. Of 149 Chinese questions whose answer was English, the best of 300 unrelated Chinese texts had .43 at most."""

_NAMED: Final = FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.HOLDER


def drawbacks(hits: Sequence[Hit], query: str) -> list[str]:
    """Explain for each hit of a group why not to show it; empty for those worth showing.

    Chinese and other hits are compared among themselves. The closest of the other script is shown unless one in the
    query's script answers. Hits that the query names are shown, and so are hits without a vector, which can only be
    judged by their words.
    """
    is_chinese = is_han(query)
    titles = [(hit.memory.index.title, hit.memory.index.summary) for hit in hits]
    is_other = [is_han("\n".join(title)) != is_chinese for title in titles]
    own = [hit.similarity for hit, other in zip(hits, is_other, strict=True) if not other]
    is_answered = max(own, default=0.0) >= ANSWERS
    # Their scores, age and verdicts apart.
    bare = [hit.score / (hit.decay * hit.verdict) if hit.decay else hit.score for hit in hits]
    against = [""] * len(hits)
    for side in (False, True):
        places = [place for place, other in enumerate(is_other) if other is side and not hits[place].found_by & _NAMED]
        best = max([bare[place] for place in places], default=0.0)
        closest = max([hits[place].similarity for place in places], default=0.0)
        for place in places:
            is_closest_across = side and LEAST_ACROSS <= hits[place].similarity == closest
            is_answer_across = is_closest_across and not is_answered
            against[place] = "" if is_answer_across else _drawback(hits[place], bare[place], query, best)
    return against


def _drawback(hit: Hit, score: float, query: str, best: float) -> str:
    if score < LEAST_OF_BEST * best:
        return f"left out: its relevance {score:.2f} is far below the best, {best:.2f}"
    if not hit.cosine or hit.similarity >= LEAST_SIMILARITY:
        return ""
    told = told_terms(query)
    said = (*hit.matched_terms, *(correction.asked for correction in hit.corrections))
    words = len(told.intersection(query_terms(" ".join(said))))
    if told and words >= max(LEAST_SHARE * len(told), min(LEAST_WORDS, len(told))):
        return ""
    holds = f"it holds {words} of {len(told)} words"
    return f"left out: its similarity {hit.similarity:.2f} is below {LEAST_SIMILARITY}, and {holds}"
