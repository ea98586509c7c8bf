"""Pinyin, as people type it: without tones, one word or several, v for ü.

The table is a versioned data file of the package (`characters/`): a line a syllable, with the characters of everyday
text that are read so. It was made of pypinyin's (`NOTICE`, `bench/characters.py`), which would take 60 MB and most of a
second for what is needed of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice, product
from typing import Final

from hummock.text.simplified import table

PINYIN_VERSION: Final = "pinyin.v1"
PINYIN_SHA256: Final = "22f7abf47a202c9ccaf6e1cbecb681fa344ff5d3f7b506cfe46ad3a2a2aa9d46"

MOST_SYLLABLES: Final = 4
"""Most syllables that are read as one Chinese word."""

LONGEST_SYLLABLE: Final = 6

_MOST_READINGS: Final = 16


@cache
def characters_by_syllable() -> Mapping[str, str]:
    """The characters that are read so, by syllable; read on first use.

    Raises:
        CharactersDamaged: The file is not the one that this version was made with.
    """
    return table(PINYIN_VERSION, PINYIN_SHA256)


def syllables_of(word: str) -> Iterator[tuple[str, ...]]:
    """The ways to cut a folded word into syllables, at most MOST_SYLLABLES; the longer its first ones the earlier."""
    if len(word) <= MOST_SYLLABLES * LONGEST_SYLLABLE:
        yield from _cut(word, MOST_SYLLABLES)


def _cut(word: str, most: int) -> Iterator[tuple[str, ...]]:
    if not word:
        yield ()
    elif most:
        for end in range(min(LONGEST_SYLLABLE, len(word)), 0, -1):
            if word[:end] in characters_by_syllable():
                for rest in _cut(word[end:], most - 1):
                    yield (word[:end], *rest)


def readings_of(word: str) -> tuple[str, ...]:
    """How a word of simplified characters may be typed in one; in no way if it is long or has unknown ones."""
    each = [_syllables().get(character, ()) for character in word]
    if len(word) > MOST_SYLLABLES:
        return ()
    return tuple("".join(reading) for reading in islice(product(*each), _MOST_READINGS))


@cache
def _syllables() -> Mapping[str, tuple[str, ...]]:
    """The syllables of each character."""
    found: dict[str, tuple[str, ...]] = {}
    for syllable, characters in characters_by_syllable().items():
        for character in characters:
            found[character] = (*found.get(character, ()), syllable)
    return found
