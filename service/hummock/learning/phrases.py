"""Names of entries, and texts that may contain them, in the form in which they are compared.

Both are folded (NFKC, simplified characters, lower case, one space for everything except letters and digits) and split
into units: a Chinese character, or a word of another script without its plural's "s".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from hummock.text.glossary import glossary
from hummock.text.keywords import is_word_at
from hummock.text.normalise import CJK, nfkc, simplified
from hummock.text.word_lists import (
    CHINESE_COMMON_WORDS,
    ENGLISH_COMMON_WORDS,
    ENGLISH_STOP_WORDS,
    EVERYDAY_WORDS,
    FUNCTION_CHARACTERS,
    LONE_CHARACTERS,
)

MAX_PHRASE_CHARACTERS = 128
"""A longer phrase is no name that is used in passing."""

LETTERS_AN_EDIT = 8
"""Letters per edit that is accepted as a slip; a Chinese character counts as two letters."""
MAX_EDITS = 3

SHORT_FORM_SIMILARITY = 0.8
"""Similarity of a text to a name if it contains its first or last part."""

_LETTERS_OF_CJK = 2
_PLURAL_LETTERS = 4
_SHORT_CHARACTERS = 3
_EDITED_GRAMS_CJK = 3
_EDITED_GRAMS = 4

_UNIT = re.compile(rf"[{CJK}]|[^\W{CJK}]+")
_CJK = re.compile(f"[{CJK}]")
_BRACKETED = re.compile(r"[(（\[【〔《「『][^)）\]】〕》」』]*[)）\]】〕》」』]")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_DOTS = re.compile(r"[·•・‧]")
_COMPOUND_CJK = re.compile(rf"[{CJK}]{{4,8}}")
_COMPOUND_WORDS = re.compile(r"[A-Z][^\W\d_]+(?: [^\W\d_]+)* [A-Z][^\W\d_]+")
_SHORT_FORM_LETTERS = 3
_ENDS_A_SENTENCE = re.compile(r"[.!?。\n]")
_NO_PLURAL = ("ss", "us", "is")
_EVERYDAY = EVERYDAY_WORDS | CHINESE_COMMON_WORDS
_LONE = FUNCTION_CHARACTERS | LONE_CHARACTERS
_NUMERALS = re.compile("[0-9〇零一二三四五六七八九十百千万两]+")
_NEGATIONS = re.compile("[不非未无没]")

_ALSO_NAMES = frozenset(
    ["may", "might", "mark", "rose", "drew", "bill", "grant", "frank", "rich", "sue", "rob", "pat", "chase", "wade"]
)
"""Everyday words that are names when they are written with a capital."""


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """A name or keyword.

    Attributes:
        text: Folded.
        written: Original spelling, if it matters because the name is also an everyday word; else empty.
        edits: Number of edits at a similarity of 0.6; 0 if only an exact match counts.
        grams: Each once, with its offset in the text.
        edited_grams: Most grams that one edit can remove.
        is_short: Whether it consists of few Chinese characters only.
        part_of: The folded full name that it is a short form of; empty for a full name.
    """

    text: str
    written: str
    edits: int
    grams: tuple[tuple[str, int], ...]
    edited_grams: int
    is_short: bool
    part_of: str = ""

    @property
    def similarity(self) -> float:
        """Similarity of a text that contains it exactly."""
        return SHORT_FORM_SIMILARITY if self.part_of else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """A folded text in which phrases are searched, and the offsets in it where units start and end, and of each gram.

    Attributes:
        written: Original spelling of each word, by its offset; without Chinese characters.
        between: Characters before each unit that are no letter or digit, by the unit's offset.
    """

    text: str
    starts: frozenset[int]
    ends: frozenset[int]
    written: dict[int, str]
    grams: dict[str, list[int]]
    between: dict[int, str]


@lru_cache(1 << 16)
def phrases_of(name: str) -> tuple[Phrase, ...]:
    """Return the forms of a name in texts: itself, without brackets, and split into words.

    For a foreign name in Chinese characters also its parts.
    """
    if len(name) > MAX_PHRASE_CHARACTERS:
        return ()
    forms = [name, _BRACKETED.sub(" ", name), _HUMP.sub(" ", name)]
    forms += [part for part in _DOTS.split(name) if len(_CJK.findall(part)) > 1]
    found: dict[str, Phrase] = {}
    for form in dict.fromkeys(forms):
        phrase = _phrase(form)
        if phrase is not None:
            found.setdefault(phrase.text, phrase)
    return tuple(found.values())


@lru_cache(1 << 16)
def short_forms(title: str) -> tuple[Phrase, ...]:
    """Return short forms of a compound name: 木芯 for 潮汐木芯, Vance for Captain Elira Vance.

    They are the last two characters of a Chinese name of four to eight, and the capitalised words of a name that begins
    and ends with one, except common words. They match only in their original spelling.
    """
    name = simplified(nfkc(title)).strip()
    if _COMPOUND_CJK.fullmatch(name):
        last = name[-2:]
        parts = [] if last in _EVERYDAY or last in glossary().words or _NUMERALS.search(last) else [last]
    elif _COMPOUND_WORDS.fullmatch(name):
        words = [word for word in name.split() if word[0].isupper() and len(word) >= _SHORT_FORM_LETTERS]
        parts = [word for word in words if word.lower() not in ENGLISH_COMMON_WORDS | _ALSO_NAMES]
    else:
        return ()
    phrases = (_phrase(part) for part in parts)
    return tuple(
        replace(phrase, written="" if phrase.is_short else part, edits=0, part_of=name)
        for part, phrase in zip(parts, phrases, strict=True)
        if phrase is not None
    )


def spoken(text: str) -> Spoken:
    """The text as phrases are looked for in it."""
    folded, units, written, between = _folded(text)
    grams: dict[str, list[int]] = {}
    for gram, at in _grams(folded, units):
        grams.setdefault(gram, []).append(at)
    return Spoken(
        text=folded,
        starts=frozenset(start for start, _ in units),
        ends=frozenset(end for _, end in units),
        written=written,
        grams=grams,
        between=between,
    )


def may_stand_for(before: str, part: str, phrase: Phrase) -> bool:
    """Whether a similar part of a text may mean the phrase: numbers, negations and first letters are never slips.

    `before` is the character before it, if any.
    """
    if part[0].isascii() and part[0] != phrase.text[0]:
        return False
    has_same_numbers = _NUMERALS.findall(part) == _NUMERALS.findall(phrase.text)
    return has_same_numbers and len(_NEGATIONS.findall(before + part)) == len(_NEGATIONS.findall(phrase.text))


def stands(phrase: Phrase, start: int, said: Spoken) -> bool:
    """Whether an exact match of the phrase at `start` is a separate word."""
    end = start + len(phrase.text)
    if phrase.is_short and phrase.part_of and not _is_apart(said.text, start, end, phrase.part_of):
        return False
    if phrase.is_short:
        return is_word_at(said.text, start, end)
    if phrase.written and said.written.get(start) != phrase.written:
        return False
    return not phrase.part_of or _is_named(phrase, start, end, said)


def _is_named(phrase: Phrase, start: int, end: int, said: Spoken) -> bool:
    """Whether a capitalised word means the name, not another name (Captain Ahab) or the start of a sentence."""
    behind = end + 1 if said.between.get(end + 1) == " " else -1
    follower = said.written.get(behind, "")
    before = said.text.rfind(" ", 0, start - 1) + 1 if said.between[start] == " " else -1
    leader = said.written.get(before, "")
    is_first = _ENDS_A_SENTENCE.search(said.between[start]) is not None or start == 0
    if is_first and follower[:1].islower():
        return False
    is_of_another = follower[:1].isupper() and follower not in phrase.part_of.split()
    # A capital at the beginning of a sentence does not show that the word is a name.
    leads = leader[:1].isupper() and before > 0 and not _ENDS_A_SENTENCE.search(said.between[before])
    return not is_of_another and not (leads and leader not in phrase.part_of.split())


def _is_apart(text: str, start: int, end: int, name: str) -> bool:
    """Whether a part of a name is no part of another compound there, such as 船票 of 二级船票 in 三级船票."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    offset = start - name.index(text[start:end])
    is_like_name = any(
        0 <= offset + at < len(text) and text[offset + at] == character
        for at, character in enumerate(name)
        if not start <= offset + at < end
    )
    return not is_like_name and all(
        not beside or not _CJK.match(nearest) or nearest in _LONE or beside in _EVERYDAY
        for beside, nearest in ((before, before[-1:]), (behind, behind[:1]))
    )


def _phrase(form: str) -> Phrase | None:
    """None where nothing is left to look for."""
    folded, units, written, _ = _folded(form)
    characters = len(_CJK.findall(folded))
    letters = sum(end - start for start, end in units) + characters * (_LETTERS_OF_CJK - 1)
    is_word = len(units) == 1 and not characters
    word = next(iter(written.values())) if is_word else ""
    is_common = folded in ENGLISH_STOP_WORDS or folded in _ALSO_NAMES or (is_word and len(folded) == 1)
    if not units or (is_common and word == word.lower()):
        return None
    grams: dict[str, int] = {}
    for gram, at in _grams(folded, units):
        grams.setdefault(gram, at)
    return Phrase(
        text=folded,
        written=word if is_common else "",
        edits=min(letters // LETTERS_AN_EDIT, MAX_EDITS),
        grams=tuple(grams.items()),
        edited_grams=_EDITED_GRAMS_CJK if characters == len(units) else _EDITED_GRAMS,
        is_short=characters == len(folded) <= _SHORT_CHARACTERS,
    )


def _folded(text: str) -> tuple[str, list[tuple[int, int]], dict[int, str], dict[int, str]]:
    """Fold a text. Returns it with its units' bounds, original words, and the characters before each unit.

    Words and characters before units are keyed by the unit's offset in the folded text.
    """
    pieces: list[str] = []
    units: list[tuple[int, int]] = []
    written: dict[int, str] = {}
    between: dict[int, str] = {}
    size = behind = 0
    was_cjk = False
    normal = simplified(nfkc(text))
    for found in _UNIT.finditer(normal):
        unit = found[0]
        is_cjk = _CJK.match(unit) is not None
        # Between Chinese and other words a space is a matter of taste.
        if size and found.start() > behind and is_cjk == was_cjk:
            pieces.append(" ")
            size += 1
        between[size] = normal[behind : found.start()]
        behind, was_cjk = found.end(), is_cjk
        if not is_cjk:
            written[size] = unit
            unit = _singular(unit.casefold())
        pieces.append(unit)
        units.append((size, size + len(unit)))
        size += len(unit)
    return "".join(pieces), units, written, between


def _singular(word: str) -> str:
    if len(word) < _PLURAL_LETTERS or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > _PLURAL_LETTERS else word[:-1]


def _grams(folded: str, units: list[tuple[int, int]]) -> Iterator[tuple[str, int]]:
    """Yield Chinese characters and adjacent pairs, and the trigrams of words, with their offsets.

    A single character or word is padded with spaces.
    """
    last = -1
    for number, (start, end) in enumerate(units):
        if not _CJK.match(folded[start]):
            word = f" {folded[start:end]} "
            for at in range(len(word) - 2):
                yield word[at : at + 3], start + at - 1
            continue
        follower = units[number + 1][0] if number + 1 < len(units) else -1
        has_follower = follower == end and _CJK.match(folded[end]) is not None
        if last != start and not has_follower:
            yield f" {folded[start]} ", start
            continue
        yield folded[start], start
        if has_follower:
            yield folded[start : end + 1], start
        last = end
