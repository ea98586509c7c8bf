"""Finds the content words of a text, by word lists and without a language model.

`keywords` are the subject of one query, `phrases` the distinctive names in a text, `stretches` all possible names in
it, and `is_word_at` decides whether Chinese characters, which have no spaces, are a word at a place. `content_weights`
weighs a question's terms: "the", 怎么 or "question" in a memory do not show its subject, other words do. The store adds
how rare each term is among the memories.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.text.analyzer import TOKEN, pairs, query_terms
from hummock.text.normalise import CJK, nfkc, simplified
from hummock.text.question import Question
from hummock.text.signs import MARKS, PAIRED
from hummock.text.word_lists import (
    CHINESE_COMMON_WORDS,
    CHINESE_STOP_WORDS,
    CHINESE_WORDS_WITH_STOP_CHARACTERS,
    ENGLISH_COMMON_WORDS,
    ENGLISH_STOP_WORDS,
    EVERYDAY_WORDS,
    FUNCTION_CHARACTERS,
    LONE_CHARACTERS,
)

_MIN_CHARACTERS: Final = 2

_LETTERS: Final = rf"[^\W{CJK}]+(?:[{MARKS}]+[^\W{CJK}]*)*"
# A word keeps what joins names in code and in prose (user_id, ci-cd, node.js, c++), without a trailing full stop.
_SEGMENT: Final = re.compile(rf"(?P<cjk>[{CJK}]+)|{_LETTERS}(?:[-.'’/]{_LETTERS})*(?:\+\+|#)?")

_LAST: Final = "".join(sorted(FUNCTION_CHARACTERS))
_FIRST: Final = f"{_LAST}块座艘枚颗根匹届幅批串堆把"
"""Measure words as well: "那块硬木头"."""

_LONGEST_STRETCH: Final = 8
_MOST_WORDS: Final = 3
_SPACE: Final = re.compile(r"[ \t]*")

_LONGEST_WORD: Final = 4
_REACH: Final = 6
"""Characters checked on either side; within that many, word boundaries are found again."""
_KNOWN: Final = frozenset(
    word
    for word in (*EVERYDAY_WORDS, *CHINESE_COMMON_WORDS, *CHINESE_WORDS_WITH_STOP_CHARACTERS)
    if 1 < len(word) <= _LONGEST_WORD
)
_WORD_COST: Final = 1.0
_LONE_COST: Final = 1.5
_RARE_COST: Final = 2.0
_NAME_COST: Final = 1.5
"""Cost of the keyword itself, as one word: a name is less likely than an everyday word."""
_SEPARATORS: Final = frozenset(" ")


def keywords(question: Question, limit: int = 5) -> tuple[str, ...]:
    """Return the content words of a sentence, in order of appearance, each once, at most `limit`.

    The text is cut at white space and at Chinese and English punctuation, Chinese runs also at stop words. Words have
    at least two characters. The case of letters is kept, but words that differ only in case count once.
    """
    found: dict[str, str] = {}
    for segment in _SEGMENT.finditer(question.nfkc):
        run, simple = segment[0], question.simplified[segment.start() : segment.end()]
        for word in _cut(run, simple, CHINESE_STOP_WORDS) if segment["cjk"] else (run,):
            folded = word.casefold()
            if len(word) >= _MIN_CHARACTERS and folded not in ENGLISH_STOP_WORDS:
                found.setdefault(folded, word)
        if len(found) >= limit:
            break
    return tuple(found.values())[: max(limit, 0)]


def phrases(text: str, is_distinctive: Callable[[str], bool]) -> Iterator[str]:
    """Yield the phrases of a text, in order, repeats included; in NFKC, with their case.

    A Chinese one is a longest run of characters of which every pair is distinctive, cut at common words; it has two
    characters or more, is no everyday word, and neither begins with a measure word nor has a particle at either end. In
    other scripts it is a word that is neither common nor a number, and all of whose terms are distinctive; of a name of
    code the whole counts, and not what it is made of. Terms are those of `analyzer.query_terms`.
    """
    for segment in _SEGMENT.finditer(nfkc(text)):
        if segment["cjk"]:
            for piece in _cut(segment[0], simplified(segment[0]), CHINESE_COMMON_WORDS):
                yield from _runs(piece, is_distinctive)
        elif _may_name(segment.group()):
            terms = _terms_that_count(segment.group())
            if terms and all(map(is_distinctive, terms)):
                yield segment.group()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text that may be a name, as it is written, folded to NFKC, and its terms.

    `before` and `after` are the Chinese characters beside it, empty at a word boundary. It is doubtful if it begins or
    ends with a character that is often a word by itself (上, 本).
    """

    text: str
    terms: tuple[str, ...]
    before: str = ""
    after: str = ""
    is_doubtful: bool = False


def stretches(text: str, is_wanted: Callable[[str], bool]) -> Iterator[Stretch]:
    """Yield every possible name, of two to eight Chinese characters or one to three words, repeats included.

    It holds no common word and is no everyday word, and no everyday word crosses its ends (`is_word_at`). Whether words
    begin and end there, its neighbours in several texts tell.

    A stretch holds only terms (`analyzer.query_terms`) that are wanted.
    """
    words: list[str] = []
    behind, normal = 0, nfkc(text)
    for segment in _SEGMENT.finditer(normal):
        is_name = not segment["cjk"] and _may_name(segment.group())
        is_name = is_name and all(map(is_wanted, _terms_that_count(segment.group())))
        if not is_name or not _SPACE.fullmatch(normal, behind, segment.start()):
            yield from _word_stretches(words)
            words = []
        if is_name:
            words.append(segment.group())
        elif segment["cjk"]:
            yield from _character_stretches(segment.group(), is_wanted)
        behind = segment.end()
    yield from _word_stretches(words)


def _word_stretches(words: list[str]) -> Iterator[Stretch]:
    for start in range(len(words)):
        for end in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1):
            some = words[start:end]
            yield Stretch(" ".join(some), tuple(term for word in some for term in _terms_that_count(word)))


def _character_stretches(segment: str, is_wanted: Callable[[str], bool]) -> Iterator[Stretch]:
    behind = 0
    for piece in _cut(segment, simplified(segment), CHINESE_COMMON_WORDS):
        first = segment.index(piece, behind)
        behind = first + len(piece)
        for start in range(first, behind - 1):
            for end in range(start + 2, min(start + _LONGEST_STRETCH, behind) + 1):
                if not is_wanted(simplified(segment[end - 2 : end])):
                    break
                if segment[start:end] not in EVERYDAY_WORDS and is_word_at(segment, start, end):
                    before, after = segment[max(first, start - 1) : start], segment[end : min(end + 1, behind)]
                    name = segment[start:end]
                    is_doubtful = name[0] in _FIRST or name[-1] in _LAST
                    yield Stretch(name, tuple(query_terms(name)), before, after, is_doubtful)


def _may_name(word: str) -> bool:
    return len(word) > 1 and word.casefold() not in ENGLISH_COMMON_WORDS and not all(map(str.isdigit, word))


def _terms_that_count(word: str) -> list[str]:
    terms = query_terms(word)
    return terms[:1] if TOKEN.fullmatch(word) else terms


def _runs(piece: str, is_distinctive: Callable[[str], bool]) -> Iterator[str]:
    start = 0
    for second in range(1, len(piece) + 1):
        if second < len(piece) and is_distinctive(simplified(piece[second - 1 : second + 1])):
            continue
        run = piece[start:second].lstrip(_FIRST).rstrip(_LAST)
        if len(run) > 1 and run not in EVERYDAY_WORDS:
            yield run
        start = second


def pieces(run: str) -> list[str]:
    """The pieces of a run of simplified Chinese characters between stop words, some of them empty."""
    return _cut(run, run, CHINESE_STOP_WORDS)


def _cut(run: str, simple: str, words: frozenset[str]) -> list[str]:
    """The pieces of a Chinese run between these words, which are looked for in its simplified form.

    The longest word that begins at a place counts.
    """
    start, between = 0, []
    for found in _known_words(words).finditer(simple):
        if found[0] in words:
            between.append(run[start : found.start()])
            start = found.end()
    return [*between, run[start:]]


@cache
def _known_words(words: frozenset[str]) -> re.Pattern[str]:
    """Finds these words, and words that hold a stop word and are left whole; made on first use.

    They are grouped by first character: a plain alternation takes twice as long.
    """
    each = sorted(words | CHINESE_WORDS_WITH_STOP_CHARACTERS, key=lambda word: (word[0], -len(word), word))
    by_first = groupby(each, key=lambda word: word[0])
    return re.compile("|".join(f"{first}(?:{'|'.join(word[1:] for word in some)})" for first, some in by_first))


# Most recalls cut at stop words: none shall wait for their pattern.
_known_words(CHINESE_STOP_WORDS)


def is_word_at(text: str, start: int, end: int) -> bool:
    """Whether text[start:end], all Chinese characters, is a word at this place; the text is folded.

    A space ends every word.
    """
    first, last = _run(text, start, end)
    crossing = [
        (begin, stop)
        for begin in range(first, end)
        for stop in range(max(begin + 2, start + 1), min(begin + _LONGEST_WORD, last) + 1)
        if (begin < start < stop or begin < end < stop) and text[begin:stop] in _KNOWN
    ]
    if not crossing:
        return True
    with_it = _cost(text[first:start]) + _NAME_COST + _cost(text[end:last])
    without = min(_cost(text[first:begin]) + _WORD_COST + _cost(text[stop:last]) for begin, stop in crossing)
    return with_it <= without


def _run(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span around the word without separators, within _REACH."""
    first, last = start, end
    while first > max(0, start - _REACH) and text[first - 1] not in _SEPARATORS:
        first -= 1
    while last < min(len(text), end + _REACH) and text[last] not in _SEPARATORS:
        last += 1
    return first, last


@lru_cache(1 << 12)
def _cost(stretch: str) -> float:
    """Cost of the cheapest way to cut the text into words."""
    costs = [0.0]
    for end in range(1, len(stretch) + 1):
        ways = [costs[end - 1] + _alone(stretch[end - 1])]
        ways += [
            costs[begin] + _WORD_COST
            for begin in range(max(0, end - _LONGEST_WORD), end - 1)
            if stretch[begin:end] in _KNOWN
        ]
        costs.append(min(ways))
    return costs[-1]


def _alone(character: str) -> float:
    if character in FUNCTION_CHARACTERS:
        return _WORD_COST
    return _LONE_COST if character in LONE_CHARACTERS else _RARE_COST


COMMON_WEIGHT: Final = 0.3
"""Weight of a word that people use of anything, and of a number of one or two digits; any other word has 1."""

_SHORT_NUMBER: Final = 2
_IS_PAIRED: Final = re.compile(f"[{PAIRED}]").match


def content_weights(terms: Sequence[str], questions: Iterable[Question]) -> NDArray[np.float32]:
    """Weigh the content of each term, (t,) in [0, 1]: 0 for stop words, question words and pairs that cross them.

    Terms are those of `analyzer.query_terms`, questions the texts that they are of: Chinese pairs count only if no stop
    word separates them there.
    """
    texts = [question.simplified for question in questions if not question.text.isascii()]
    runs = [token["cjk"] for text in texts for token in TOKEN.finditer(text) if token["cjk"]]
    whole = frozenset([pair for run in runs for piece in pieces(run) for pair in pairs(piece)])
    weights, stop_terms, common_terms = np.zeros(len(terms), np.float32), _stop_terms(), _common_terms()
    for place, term in enumerate(terms):
        tells = term in whole if not term.isascii() and _IS_PAIRED(term) else term not in stop_terms
        if tells:
            is_common = term in common_terms or (term.isdecimal() and len(term) <= _SHORT_NUMBER)
            weights[place] = COMMON_WEIGHT if is_common else 1.0
    return weights


@cache
def _stop_terms() -> frozenset[str]:
    return frozenset(term for word in ENGLISH_STOP_WORDS for term in query_terms(word))


@cache
def _common_terms() -> frozenset[str]:
    english = (term for word in ENGLISH_COMMON_WORDS for term in query_terms(word))
    return frozenset(english) | CHINESE_COMMON_WORDS | EVERYDAY_WORDS
