"""Questions that lean on what was said before them."""

from __future__ import annotations

import re
from typing import Final

from hummock.text.cjk import CJK
from hummock.text.keywords import keywords

_MOST_WORDS: Final = 3.0
"""A sentence that says more than so many words of its own stands on its own, whatever it refers to."""

_LOOKED_AT: Final = 8
_CJK_CHARACTER: Final = re.compile(f"[{CJK}]")

_ENGLISH: Final = (
    r"\b(?:it|its|they|them|their|this|that|these|those|there|he|she|him|his|her|same|else|too|also|instead|another)\b"
    r"|^\W*(?:and|but|or|so|then|what about|how about)\b"
)
# Not where the character belongs to another word: 其他, 应该, 因此.
_CHINESE: Final = (
    "[它这那]|[他她]们|(?<!尤)其(?![他实中余])|(?<!应)该|(?<!因)此|上述|上面|刚才|前面|之前|还有|另外|同样|呢\\W*$"
)
_REFERS: Final = re.compile(f"{_ENGLISH}|{_CHINESE}", re.IGNORECASE)


def leans_back(text: str) -> bool:
    """Whether a question has to be read together with those before it.

    It has no word of its own ("why?", 为什么?), or refers to something ("and its tests?", 它在哪里被调用?) and says
    little else. Two Chinese characters count as a word.
    """
    words = sum(map(_weight, keywords(text, _LOOKED_AT)))
    return words == 0 or (words <= _MOST_WORDS and _REFERS.search(text) is not None)


def _weight(word: str) -> float:
    return max(1.0, len(_CJK_CHARACTER.findall(word)) / 2)
