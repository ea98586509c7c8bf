"""Keywords of a sentence without a language model."""

import re

from hummock.text.cjk import CJK
from hummock.text.normalise import nfkc
from hummock.text.stopwords import CHINESE_STOP_WORDS, CHINESE_WORDS_WITH_STOP_CHARACTERS, ENGLISH_STOP_WORDS

_MIN_CHARACTERS = 2

# A word keeps what joins names in code and in prose (user_id, ci-cd, node.js, c++), without a trailing full stop.
_SEGMENT = re.compile(rf"(?P<cjk>[{CJK}]+)|[^\W{CJK}]+(?:[-.'’/][^\W{CJK}]+)*(?:\+\+|#)?")


def _longest_first(words: frozenset[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_KEPT_OR_CUT = re.compile(
    f"(?:{_longest_first(CHINESE_WORDS_WITH_STOP_CHARACTERS)})|(?P<cut>{_longest_first(CHINESE_STOP_WORDS)})"
)


def keywords(text: str, limit: int = 5) -> tuple[str, ...]:
    """The words that tell what a sentence is about, in order of appearance, each once, at most `limit`.

    The text is cut at white space and at Chinese and English punctuation, Chinese runs also at stop words. What is left
    counts with two characters or more. The letters' case stays; words that differ in it alone are one.
    """
    found: dict[str, str] = {}
    for segment in _SEGMENT.finditer(nfkc(text)):
        for word in _cut_chinese(segment.group()) if segment["cjk"] else (segment.group(),):
            folded = word.casefold()
            if len(word) >= _MIN_CHARACTERS and folded not in ENGLISH_STOP_WORDS:
                found.setdefault(folded, word)
        if len(found) >= limit:
            break
    return tuple(found.values())[: max(limit, 0)]


def _cut_chinese(run: str) -> list[str]:
    pieces = [""]
    at = 0
    for match in _KEPT_OR_CUT.finditer(run):
        pieces[-1] += run[at : match.start()]
        at = match.end()
        if match["cut"]:
            pieces.append("")
        else:
            pieces[-1] += match.group()
    pieces[-1] += run[at:]
    return pieces
