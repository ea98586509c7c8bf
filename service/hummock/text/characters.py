"""What each character is to the kernels that read texts: its folded form and its kind.

Most characters are folded one by one. HARD ones are not: marks and letters that are put together with what stands
before them, and characters that become several. A text that holds one takes the way through `unicodedata`.
"""

import re
import sys
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.text.cjk import CJK
from hummock_kernels.analyzer import (
    APOSTROPHE,
    DIGIT,
    FIRST_COMPATIBILITY_IDEOGRAPH,
    HARD,
    HYPHEN,
    LAST_COMPATIBILITY_IDEOGRAPH,
    LAST_IDEOGRAPH,
    LOWER,
    OTHER_LETTER,
    SEPARATOR,
    UNDERSCORE,
    UPPER,
)
from hummock_kernels.analyzer import CJK as IDEOGRAPH

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
    range(0x1F300, 0x1FB00),
)
_SECOND_JAMO = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
_IS_CJK = re.compile(f"[{CJK}]").fullmatch
_JOINERS = {"_": UNDERSCORE, "-": HYPHEN, "'": APOSTROPHE, "’": APOSTROPHE}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Characters:
    """By code point, up to the first that is not known.

    Attributes:
        folds: uint32, NFKC and case-folded; SEVERAL for some separators; of HARD ones 0.
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
    plain = unicodedata.normalize("NFKC", character)
    if any(unicodedata.combining(part) or part in joining for part in (character, *plain)):
        return 0, HARD
    folded = unicodedata.normalize("NFKC", plain.casefold())
    if len(plain) > 1:
        return (SEVERAL, SEPARATOR) if all(map(_is_separator, plain)) else (0, HARD)
    if _is_separator(plain):
        return ord(folded) if len(folded) == 1 else SEVERAL, SEPARATOR
    if plain in _JOINERS:
        return ord("'") if _JOINERS[plain] == APOSTROPHE else ord(plain), _JOINERS[plain]
    if _IS_CJK(plain):
        return ord(plain), IDEOGRAPH
    if len(folded) > 1 or folded in joining or plain.isascii() != folded.isascii():
        return 0, HARD
    return ord(folded), _letter(plain)


def _is_separator(character: str) -> bool:
    return not (character.isalnum() or character in _JOINERS or _IS_CJK(character))


def _letter(character: str) -> int:
    if character.isdecimal():
        return DIGIT
    return UPPER if character.isupper() else LOWER if character.islower() else OTHER_LETTER
