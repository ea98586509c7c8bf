"""Computes the terms of many memories at once: those of `analyzer.document_terms`, by field.

A kernel folds characters one by one, by a table. A word with a character that cannot be folded by itself is hard: the
terms of such words are those of `analyzer`, and the kernel gets the rest of the text.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.memory import TermBatch, Terms
from hummock.text.analyzer import TOKEN, bounded, document_terms, exact_names, stem
from hummock.text.normalise import simplified, simplified_forms
from hummock.text.signs import NEVER_ALONE, PAIRED, SIGNS, plain
from hummock_kernels.analyzer import (
    APOSTROPHE,
    DIGIT,
    EXACT,
    FACET,
    FIRST_COMPATIBILITY_IDEOGRAPH,
    HARD,
    HYPHEN,
    LAST_COMPATIBILITY_IDEOGRAPH,
    LAST_IDEOGRAPH,
    LOWER,
    NAME,
    NAMELESS,
    OTHER_LETTER,
    SEPARATOR,
    SIGN,
    STEMMED,
    TITLE,
    UNDERSCORE,
    UPPER,
    analyse,
)
from hummock_kernels.analyzer import CJK as IDEOGRAPH

Piece = tuple[str, int]
"""A text of a memory, and its use: a field (TITLE, TAGS, BODY), with EXACT if it is a term as it stands; or A_FACET."""

A_FACET: Final = FACET | EXACT

_LEARNED_SHIFT: Final = np.uint32(24)
"""Shift of the count of learned keywords, which is no field of a memory's own text."""

SEVERAL: Final = 0
"""Stands for the folded form of a separator that becomes several characters."""

_KNOWN = 0x20000
# Folded one by one, by themselves: ideographs and hangul syllables; then what is no text: surrogates, private use.
_IDEOGRAPHS = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xAC00, 0xD7A4))
_NO_TEXT = range(0xD800, 0xF900)
# Beyond the first plane, symbols alone are looked at; letters there are rare, and hard.
_LOOKED_AT = (
    range(0x0000, 0x3400),
    range(0x4DC0, 0x4E00),
    range(0xA000, 0xAC00),
    range(0xD7A4, 0xD800),
    range(0xF900, 0x10000),
    range(0x1F000, 0x1FB00),
)
_SECOND_JAMO = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
_IS_PAIRED = re.compile(f"[{PAIRED}]").fullmatch
_IS_SIGN = re.compile(f"[{SIGNS}]").fullmatch
_IS_NEVER_ALONE = re.compile(f"[{NEVER_ALONE}]").fullmatch
_JOINERS = {"_": UNDERSCORE, "-": HYPHEN, "'": APOSTROPHE, "’": APOSTROPHE}


def terms_of(memories: Sequence[Sequence[Piece]]) -> list[Terms]:
    """Return the terms of each memory, and the facets of names in its texts, in order.

    All share one batch, except memories that cannot be folded character by character: each of these has its own, so
    that at most one memory's text is split into words at a time.
    """
    batch, hard = _analysed(memories)
    terms = [Terms(batch=batch, place=place) for place in range(len(memories))]
    for place in hard:
        batch, _ = _analysed([[one for piece in memories[place] for one in _softened(piece)]])
        terms[place] = Terms(batch=batch, place=0)
    return terms


def learned_terms(keywords: Sequence[str]) -> Terms:
    """The terms of a memory's learned keywords, counted as such; a name in them is none that the memory holds."""
    (terms,) = terms_of([[(keyword, TITLE | NAMELESS) for keyword in keywords]])
    return replace(terms, batch=replace(terms.batch, counts=terms.batch.counts << _LEARNED_SHIFT))


def _softened(piece: Piece) -> Iterator[Piece]:
    """Pieces that can be folded character by character and have the same terms, in another order."""
    text, use = piece
    if use & EXACT:
        yield piece
        return
    words: list[str] = []

    def without_hard(token: re.Match[str]) -> str:
        if not hard_character().search(token[0]):
            return token[0]
        if token.lastgroup:
            words.append(token[0])
        # A letter behind C# says that it is no name, and so does another #.
        is_letter = token["word"] and not token[0][0].isdecimal()
        return "_" if is_letter else "##" if token[0][0] == "#" else " "

    # Normal forms leave a few: letters that fold to several, and marks that separate, as a space does.
    yield _token_or_hard().sub(without_hard, plain(text)), use | NAMELESS
    for name in () if use & NAMELESS else exact_names(text):
        yield facets.name(name), A_FACET
    for word in words:
        for term in document_terms(word):
            yield term, use | EXACT


@cache
def _token_or_hard() -> re.Pattern[str]:
    return re.compile(f"{TOKEN.pattern}|{hard_character().pattern}")


def _analysed(memories: Sequence[Sequence[Piece]]) -> tuple[TermBatch, list[int]]:
    """The terms of the pieces that can be folded character by character, and the places of memories with others."""
    pieces = [piece for several in memories for piece in several]
    texts = [text for text, _ in pieces]
    memory_end = np.cumsum(np.fromiter(map(len, memories), np.int64, len(memories)))
    table = characters()
    hard, indptr, lengths, folded, key, counts, start, end, use = analyse(
        np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4"),
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))),
        np.array([use for _, use in pieces], np.uint8),
        memory_end,
        table.folds,
        table.kinds,
    )
    spelling = _Spelling(folded, start, end, use)
    batch = TermBatch(indptr=indptr, key=key, counts=counts, lengths=lengths, spell=spelling)
    places = np.flatnonzero(hard)
    return batch, np.unique(np.searchsorted(memory_end, places, "right")).tolist() if len(places) else []


class _Spelling:
    """The terms behind forms, made when asked for: most are known by their keys."""

    __slots__ = ("_end", "_folded", "_start", "_use")

    def __init__(
        self, folded: NDArray[np.uint32], start: NDArray[np.int32], end: NDArray[np.int32], use: NDArray[np.uint8]
    ) -> None:
        self._folded = folded
        self._start = start
        self._end = end
        self._use = use

    def __call__(self, forms: Sequence[int]) -> list[str]:
        starts, ends, uses = (column[forms].tolist() for column in (self._start, self._end, self._use))
        places = list(zip(starts, ends, uses, strict=True))
        # Names stand far behind the other forms.
        texts = [
            self._text([place for place in places if bool(place[2] & NAME) is is_name]) for is_name in (False, True)
        ]
        return [
            _spelt(text[start - first : end - first], use)
            for start, end, use in places
            for first, text in [texts[bool(use & NAME)]]
        ]

    def _text(self, places: Sequence[tuple[int, int, int]]) -> tuple[int, str]:
        """Where these places begin, and the text from there to their end.

        A batch is asked for one memory's forms at a time where its neighbours have batches of their own.
        """
        first = min([start for start, _, _ in places], default=0)
        last = max([end for _, end, _ in places], default=0)
        return first, self._folded[first:last].tobytes().decode("utf-32-le", "surrogatepass")


def _spelt(form: str, use: int) -> str:
    if use & EXACT:
        return form
    if use & NAME:
        return facets.name(form)
    return bounded(stem(form) if use & STEMMED else form)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Characters:
    """By code point, up to the first that is not known.

    Attributes:
        folds: uint32, NFKC, case-folded and simplified; SEVERAL for some separators; of HARD ones 0.
        kinds: uint8, as `hummock_kernels.analyzer` names them.
    """

    folds: NDArray[np.uint32]
    kinds: NDArray[np.uint8]


@cache
def characters() -> Characters:
    """The table; made on first use."""
    folds = np.arange(_KNOWN, dtype=np.uint32)
    kinds = np.full(_KNOWN, HARD, np.uint8)
    kinds[_NO_TEXT.start : _NO_TEXT.stop] = SEPARATOR
    for ideographs in _IDEOGRAPHS:
        kinds[ideographs.start : ideographs.stop] = IDEOGRAPH
    joining = _joining()
    looked_at = list(chain.from_iterable(_LOOKED_AT))
    found = [_fold_and_kind(chr(code), joining) for code in looked_at]
    folds[looked_at], kinds[looked_at] = zip(*found, strict=True)
    forms = simplified_forms()
    folds[list(forms)] = list(forms.values())
    return Characters(folds=folds, kinds=kinds)


@cache
def hard_character() -> re.Pattern[str]:
    """Finds characters that are not folded one by one."""
    edges = np.flatnonzero(np.diff(characters().kinds == HARD, prepend=False, append=False))
    ranges = "".join(f"{chr(first)}-{chr(end - 1)}" for first, end in edges.reshape(-1, 2).tolist())
    compatibility = f"{chr(FIRST_COMPATIBILITY_IDEOGRAPH)}-{chr(LAST_COMPATIBILITY_IDEOGRAPH)}"
    return re.compile(f"[{ranges}{compatibility}{chr(LAST_IDEOGRAPH + 1)}-{chr(sys.maxunicode)}]")


def _joining() -> frozenset[str]:
    """Letters that are put together with the one before them; marks say so themselves."""
    seconds = {chr(code) for jamo in _SECOND_JAMO for code in jamo}
    for code in chain.from_iterable(_LOOKED_AT):
        parts = unicodedata.decomposition(chr(code))
        if parts and parts[0] != "<" and " " in parts:
            seconds.add(chr(int(parts.split()[1], 16)))
    return frozenset(seconds)


def _fold_and_kind(character: str, joining: frozenset[str]) -> tuple[int, int]:
    normal = unicodedata.normalize("NFKC", character)
    if any(_IS_NEVER_ALONE(part) or part in joining for part in (character, *normal)):
        return 0, HARD
    folded = unicodedata.normalize("NFKC", normal.casefold())
    if len(normal) > 1:
        return (SEVERAL, SEPARATOR) if all(map(_is_separator, normal)) else (0, HARD)
    if _is_separator(normal):
        return ord(folded) if len(folded) == 1 else SEVERAL, SEPARATOR
    if normal in _JOINERS:
        return ord("'") if _JOINERS[normal] == APOSTROPHE else ord(normal), _JOINERS[normal]
    if _IS_PAIRED(normal):
        return ord(simplified(normal)), IDEOGRAPH
    if len(folded) > 1 or folded in joining or normal.isascii() != folded.isascii():
        return 0, HARD
    return ord(folded), SIGN if _IS_SIGN(normal) else _letter(normal)


def _is_separator(character: str) -> bool:
    is_known = character.isalnum() or character in _JOINERS
    return not (is_known or _IS_PAIRED(character) or _IS_SIGN(character))


def _letter(character: str) -> int:
    if character.isdecimal():
        return DIGIT
    return UPPER if character.isupper() else LOWER if character.islower() else OTHER_LETTER
