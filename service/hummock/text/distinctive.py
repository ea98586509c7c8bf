"""Stretches of a sentence whose every term passes a test: names and phrases, without the words of any sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from hummock.text.analyzer import TOKEN, query_terms
from hummock.text.cjk import CJK
from hummock.text.common_words import CHINESE_COMMON_WORDS, ENGLISH_COMMON_WORDS
from hummock.text.everyday_words import EVERYDAY_WORDS, FUNCTION_CHARACTERS
from hummock.text.normalise import nfkc
from hummock.text.stopwords import CHINESE_WORDS_WITH_STOP_CHARACTERS

_TOKEN: Final = re.compile(rf"(?P<cjk>[{CJK}]+)|[^\W{CJK}]+(?:[-_.'’/][^\W{CJK}]+)*(?:\+\+|#)?")
_LONGEST: Final = max(map(len, CHINESE_COMMON_WORDS | CHINESE_WORDS_WITH_STOP_CHARACTERS))
_LAST: Final = "".join(sorted(FUNCTION_CHARACTERS))
_FIRST: Final = f"{_LAST}块座艘枚颗根匹届幅批串堆把"
"""Measure words as well: "那块硬木头"."""


def phrases(text: str, is_distinctive: Callable[[str], bool]) -> Iterator[str]:
    """The phrases of a text, in its order, repeats included; folded to NFKC, with its own capitals.

    A Chinese one is a longest run of characters of which every pair is distinctive, cut at common words; it has two
    characters or more, is no everyday word, and neither begins with a measure word nor has a particle at either end. In
    other scripts it is a word that is neither common nor a number, and all of whose terms are distinctive; of a name of
    code the whole counts, and not what it is made of.

    Args:
        text: Any text.
        is_distinctive: Whether a term (`analyzer.query_terms`) is.
    """
    for token in _TOKEN.finditer(nfkc(text)):
        if token["cjk"]:
            for piece in _cut(token.group()):
                yield from _runs(piece, is_distinctive)
        elif _may_name(token.group()):
            terms = _terms_that_count(token.group())
            if terms and all(map(is_distinctive, terms)):
                yield token.group()


def _may_name(word: str) -> bool:
    return len(word) > 1 and word.casefold() not in ENGLISH_COMMON_WORDS and not all(map(str.isdigit, word))


def _terms_that_count(word: str) -> list[str]:
    terms = query_terms(word)
    return terms[:1] if TOKEN.fullmatch(word) else terms


def _cut(run: str) -> Iterator[str]:
    """The pieces between common words; the longest word that begins at a place counts."""
    start = at = 0
    while at < len(run):
        for end in range(min(at + _LONGEST, len(run)), at, -1):
            word = run[at:end]
            if word in CHINESE_COMMON_WORDS:
                yield run[start:at]
                start = at = end
                break
            if word in CHINESE_WORDS_WITH_STOP_CHARACTERS:
                at = end
                break
        else:
            at += 1
    yield run[start:]


def _runs(piece: str, is_distinctive: Callable[[str], bool]) -> Iterator[str]:
    start = 0
    for second in range(1, len(piece) + 1):
        if second < len(piece) and is_distinctive(piece[second - 1 : second + 1]):
            continue
        run = piece[start:second].lstrip(_FIRST).rstrip(_LAST)
        if len(run) > 1 and run not in EVERYDAY_WORDS:
            yield run
        start = second
