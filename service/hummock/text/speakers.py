"""Words that ask for what somebody said ("what did Anna say about it?", 老王怎么看), and short forms of names.

By tables of words, one per language: words not understood change nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hummock.text.normalise import CJK, nfkc, prose, simplified
from hummock.text.word_lists import ENGLISH_STOP_WORDS

_ENGLISH: Final = (
    r"\b(?:sa(?:y|ys|id)|tells?|told|mention(?:s|ed)?|thinks?|thought|believe[sd]?|suggest(?:s|ed)?"
    r"|propose[sd]?|recommend(?:s|ed)?|report(?:s|ed)?|complain(?:s|ed)?|object(?:s|ed)?|argue[sd]?|explain(?:s|ed)?)\b"
    r"|(?:['’]s?|\bhis|\bher|\btheir) (?:own )?(?:opinion|views?|ideas?|points?|position|stance|take|advice|proposal"
    r"|suggestion|remarks?|comments?|objections?|thoughts)\b"
    r"|\bhow (?:does|did) [^?,.]{2,40} (?:find|see|feel)\b"
)
_CHINESE: Final = (
    "怎[么麼](?:[说說讲講看想]|评价|評價|[认認][为為])|[说說][了过過的是起到]?|[讲講][了过過到]|提[到出过過了]|[认認][为為]|[觉覺]得|看法"
    "|意[见見]|建[议議]|想法|主意|[态態]度|要求|评价|評價|表示|反映|反[对對]|[赞贊]成|主[张張]|[观觀][点點]"
)
SAYING: Final = re.compile(f"{_ENGLISH}|{_CHINESE}", re.IGNORECASE)
"""Words that ask what somebody said; most questions have none."""

_TELLS: Final = re.compile(r"(?:\A|[,.;:!?]|\b(?:please|you|to|and))\s*\Z", re.IGNORECASE)
"""What stands before a verb that asks to tell: "can you tell me"."""

_TO_SOMEBODY: Final = re.compile(r"(?:[我你咱][们們]?)[^，。,]{0,6}[跟和给給对對向与與][^，。,]{1,6}\Z")
"""我跟老王说: whoever is named listens."""

_CJK_NAME: Final = re.compile(f"[{CJK}]+")
_WORD: Final = re.compile(rf"[^\W\d_{CJK}]{{2,}}")
_GIVEN_NAME_CHARACTERS: Final = 2
_CALLED: Final = ("老{}", "小{}", "阿{}", "{}总", "{}工", "{}哥", "{}姐", "{}老师", "{}经理")
"""How people are called by a surname of one character."""
_BEFORE_SURNAME: Final = "老小阿"
"""What a stored name may itself begin with: the surname of 小林 is 林."""


def words_for_who_said(text: str, end: int) -> str:
    """Return the text up to the words that ask what somebody said; empty if none do among its first `end` characters.

    Whoever said it is usually named there, and what it is about often behind.
    """
    for found in SAYING.finditer(text, 0, end):
        if not _TELLS.search(text, 0, found.start()) and not _TO_SOMEBODY.search(text, 0, found.start()):
            return text[: found.end()]
    return ""


@lru_cache(256)
def short_names(name: str) -> frozenset[str]:
    """Parts of a stored name that people ask with, folded: "anna" of "Anna Keller", 建国 and 老王 of 王建国."""
    folded = prose(simplified(nfkc(name)))
    parts = {word for word in _WORD.findall(folded) if word not in ENGLISH_STOP_WORDS}
    for run in _CJK_NAME.findall(folded):
        if len(run) == _GIVEN_NAME_CHARACTERS + 1:
            parts.add(run[1:])
        if len(run) > 1:
            parts.add(run)
            parts |= {called.format(run[run[0] in _BEFORE_SURNAME]) for called in _CALLED}
    return frozenset(parts)


def calls_by_name(text: str, name: str) -> bool:
    """Whether a text names somebody of a stored name, in full or by a short form."""
    folded = prose(simplified(nfkc(text)))
    words = frozenset(_WORD.findall(folded))
    return any(part in words if part.isascii() else part in folded for part in short_names(name))
