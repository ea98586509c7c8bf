"""Whether Chinese characters that stand side by side are a word there, or the end of one and the beginning of another.

The stretch is cut into words in the cheapest way: an everyday word costs 1, a character by itself 1 to 2, the word in
question 1.5. It is one where that is no dearer than with a word that crosses one of its ends. What the list of everyday
words lacks crosses nothing, so that characters which nobody knows are given the benefit of the doubt.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from hummock.text.common_words import CHINESE_COMMON_WORDS
from hummock.text.everyday_words import EVERYDAY_WORDS, FUNCTION_CHARACTERS, LONE_CHARACTERS
from hummock.text.stopwords import CHINESE_WORDS_WITH_STOP_CHARACTERS

_LONGEST: Final = 4
_REACH: Final = 6
"""Characters on either side that are looked at; words begin and end anew within so many."""
_KNOWN: Final = frozenset(
    word
    for word in (*EVERYDAY_WORDS, *CHINESE_COMMON_WORDS, *CHINESE_WORDS_WITH_STOP_CHARACTERS)
    if 1 < len(word) <= _LONGEST
)
_WORD_COST: Final = 1.0
_LONE_COST: Final = 1.5
_RARE_COST: Final = 2.0
_NAME_COST: Final = 1.5
"""Of the word in question, which is less likely than an everyday one."""
_SEPARATORS: Final = frozenset(" ")


def is_word_at(text: str, start: int, end: int) -> bool:
    """Whether text[start:end], all of it Chinese characters, is a word where it stands.

    Args:
        text: Folded; a space ends every word.
        start: Where it begins.
        end: Behind its last character.
    """
    first, last = _run(text, start, end)
    crossing = [
        (begin, stop)
        for begin in range(first, end)
        for stop in range(max(begin + 2, start + 1), min(begin + _LONGEST, last) + 1)
        if (begin < start < stop or begin < end < stop) and text[begin:stop] in _KNOWN
    ]
    if not crossing:
        return True
    with_it = _cost(text[first:start]) + _NAME_COST + _cost(text[end:last])
    without = min(_cost(text[first:begin]) + _WORD_COST + _cost(text[stop:last]) for begin, stop in crossing)
    return with_it <= without


def _run(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch without separators in which the word stands, as far as is looked."""
    first, last = start, end
    while first > max(0, start - _REACH) and text[first - 1] not in _SEPARATORS:
        first -= 1
    while last < min(len(text), end + _REACH) and text[last] not in _SEPARATORS:
        last += 1
    return first, last


@lru_cache(1 << 12)
def _cost(stretch: str) -> float:
    """Of the cheapest way to cut it into words."""
    costs = [0.0]
    for end in range(1, len(stretch) + 1):
        ways = [costs[end - 1] + _alone(stretch[end - 1])]
        ways += [
            costs[begin] + _WORD_COST
            for begin in range(max(0, end - _LONGEST), end - 1)
            if stretch[begin:end] in _KNOWN
        ]
        costs.append(min(ways))
    return costs[-1]


def _alone(character: str) -> float:
    if character in FUNCTION_CHARACTERS:
        return _WORD_COST
    return _LONE_COST if character in LONE_CHARACTERS else _RARE_COST
