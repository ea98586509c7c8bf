"""Weights of a question's terms for its subject.

That a memory holds "the", 怎么 or "question" says nothing of what it is about. A question's other words do, and rare
ones more than common ones; how rare a term is among the memories, the store knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.text.analyzer import TOKEN, query_terms
from hummock.text.keywords import pieces
from hummock.text.normalise import nfkc
from hummock.text.simplified import simplified
from hummock.text.word_lists import (
    CHINESE_COMMON_WORDS,
    ENGLISH_COMMON_WORDS,
    ENGLISH_STOP_WORDS,
    EVERYDAY_WORDS,
)

COMMON_WEIGHT: Final = 0.3
"""Weight of a word that people use of anything, and of a number of one or two digits; any other word has 1."""

_SHORT_NUMBER: Final = 2


def content_weights(terms: Sequence[str], texts: Iterable[str]) -> NDArray[np.float32]:
    """How much each term tells of a subject, (t,) in [0, 1]: 0 for stop words, question words and what crosses them.

    Args:
        terms: Of the query, as `analyzer.query_terms` makes them.
        texts: What they were made of; Chinese pairs count only where a stop word does not part them.
    """
    whole = frozenset(pair for text in texts for pair in _pairs_within_words(text))
    return np.array([_weight(term, whole) for term in terms], np.float32)


def _weight(term: str, whole: frozenset[str]) -> float:
    tells = term in whole if _is_chinese(term) else term not in _stop_terms()
    if not tells:
        return 0.0
    return COMMON_WEIGHT if _is_common(term) else 1.0


def _is_common(term: str) -> bool:
    return term in _common_terms() or (term.isdecimal() and len(term) <= _SHORT_NUMBER)


def _is_chinese(term: str) -> bool:
    token = TOKEN.match(term)
    return token is not None and token["cjk"] is not None


def _pairs_within_words(text: str) -> Iterator[str]:
    for token in TOKEN.finditer(simplified(nfkc(text))):
        if token["cjk"]:
            for piece in pieces(token["cjk"]):
                yield from query_terms(piece)


@cache
def _stop_terms() -> frozenset[str]:
    return frozenset(term for word in ENGLISH_STOP_WORDS for term in query_terms(word))


@cache
def _common_terms() -> frozenset[str]:
    english = (term for word in ENGLISH_COMMON_WORDS for term in query_terms(word))
    return frozenset(english) | CHINESE_COMMON_WORDS | EVERYDAY_WORDS
