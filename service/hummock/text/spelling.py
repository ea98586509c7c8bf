"""Spellings near a word: slips of the hand, and Chinese words that are read as it is written.

Slips that exchange or add letters, and all at the first three, are few and are made here. The others leave the first
three letters as they are, so that what a store holds behind these is compared. Readings come from a versioned data file
of the package (`characters/`): a line a syllable, with the characters of everyday text that are read so. It was made of
pypinyin's (`NOTICE`, `bench/characters.py`), which would take 60 MB and most of a second for what is needed of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import islice, product
from string import ascii_lowercase
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from hummock.text.normalise import table

LEAST_CHARACTERS: Final = 4
"""Shortest word that is corrected; a shorter one is one slip away from too many."""

LEAST_FOR_ALL: Final = 5
"""Shortest word that is corrected for any slip, and not only for exchanged letters."""

SHARED_PREFIX: Final = 3
"""Letters. With two, a project has ten times as many terms to compare, which takes longer than trying third letters."""

_MOST_CHARACTERS: Final = 48
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")


def may_be_misspelt(word: str) -> bool:
    """Whether a word is looked at: of ASCII, with letters enough, and not too long to be compared."""
    letters = sum(map(str.isalpha, word))
    return letters >= LEAST_CHARACTERS and len(word) <= _MOST_CHARACTERS and _WORD.fullmatch(word) is not None


def exchanged(word: str) -> Iterator[str]:
    """The word with two neighbouring letters exchanged, each in the case of its place."""
    for at in range(len(word) - 1):
        first, second = word[at], word[at + 1]
        if first.isalpha() and second.isalpha() and first.lower() != second.lower():
            yield word[:at] + _cased(second, first) + _cased(first, second) + word[at + 2 :]


def respelt(word: str) -> Iterator[str]:
    """The word without one of its letters, and with one replaced or put in among the first three."""
    if sum(map(str.isalpha, word)) < LEAST_FOR_ALL:
        return
    for at, letter in enumerate(word):
        if not letter.isdigit():
            yield word[:at] + word[at + 1 :]
    for at in range(SHARED_PREFIX + 1):
        for letter in ascii_lowercase:
            yield word[:at] + letter + word[at:]
            if at < SHARED_PREFIX and not word[at].isdigit():
                yield word[:at] + _cased(letter, word[at]) + word[at + 1 :]


def one_slip_away(term: str, others: Collection[str]) -> list[str]:
    """Return the terms one edit away: a letter inserted, deleted or replaced, or two swapped."""
    if len(term) < LEAST_FOR_ALL:
        return []
    near = process.extract(term, others, scorer=OSA.distance, score_cutoff=1, limit=None)
    return [other for other, distance, _ in near if distance == 1 and _digits(term) == _digits(other)]


def _cased(letter: str, like: str) -> str:
    return letter.upper() if like.isupper() else letter.lower()


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))


PINYIN_VERSION: Final = "pinyin.v1"
PINYIN_SHA256: Final = "22f7abf47a202c9ccaf6e1cbecb681fa344ff5d3f7b506cfe46ad3a2a2aa9d46"

MOST_SYLLABLES: Final = 4
"""Most syllables that are read as one Chinese word."""

LONGEST_SYLLABLE: Final = 6

_MOST_READINGS: Final = 16


@cache
def characters_by_syllable() -> Mapping[str, str]:
    """The characters that are read so, by syllable; read on first use. Raises: CharactersDamaged."""
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
    return tuple(["".join(reading) for reading in islice(product(*each), _MOST_READINGS)])


@cache
def _syllables() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for syllable, characters in characters_by_syllable().items():
        for character in characters:
            found[character] = (*found.get(character, ()), syllable)
    return found
