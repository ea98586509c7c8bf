"""Stop words, words used about any subject, and everyday Chinese words: the lists of `word_lists.toml`."""

from __future__ import annotations

from importlib import resources
from typing import Final

import msgspec

_LISTS: Final = msgspec.toml.decode(
    resources.files("hummock.text").joinpath("word_lists.toml").read_bytes(), type=dict[str, str]
)


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _characters(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


ENGLISH_STOP_WORDS: Final = _words("english_stop_words")
"""Lower case."""

CHINESE_STOP_WORDS: Final = _words("chinese_stop_words")
"""Particles, pronouns, question words and the phrases of a request, at which a sentence can be cut."""

CHINESE_WORDS_WITH_STOP_CHARACTERS: Final = _words("chinese_words_with_stop_characters")
"""Words that hold a one-character stop word and must not be cut there."""

CHINESE_COMMON_WORDS: Final = CHINESE_STOP_WORDS | _words("chinese_common_words")
"""At these a Chinese sentence can be cut."""

ENGLISH_COMMON_WORDS: Final = ENGLISH_STOP_WORDS | _words("english_common_words")
"""Lower case."""

NO_SUBJECT_WORDS: Final = ENGLISH_STOP_WORDS | _words("no_subject_words")
"""Words that do not say what a sentence is about; lower case."""

FUNCTION_CHARACTERS: Final = _characters("function_characters")
"""Characters that are words by themselves as often as not."""

LONE_CHARACTERS: Final = _characters("lone_characters")
"""Characters that may be words by themselves."""

EVERYDAY_WORDS: Final = _words("everyday_words")
"""Words of two and more characters."""

GLOSS_STOP_WORDS: Final = _words("gloss_stop_words")
"""Question words, particles, pronouns, and what joins them; they are pieces of a glossary's cut too, so that no term is
read across them."""
