"""What terms are made of besides letters and digits: marks, signs, and runs of scripts that put no space between words.

All but `SIGN` are the insides of character classes for `re`, read off Unicode's categories. Emoji that this Python does
not know yet are signs as well.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final
from unicodedata import category

from hummock.text.normalise import CJK, nfkc, ranges_of

# All that have marks or symbols.
_LOOKED_AT = (
    range(0xA0, 0x3400),
    range(0x4DC0, 0x4E00),
    range(0xA490, 0xAC00),
    range(0xFB00, 0x12000),
    range(0x16A00, 0x17000),
    range(0x1BC00, 0x1BD00),
    range(0x1CF00, 0x1FC00),
    range(0xE0100, 0xE01F0),
)
_PICTURES = range(0x1F000, 0x1FB00)

_SPACELESS = (
    *(range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0xA9E0, 0xAA00), range(0xAA60, 0xAA80)),  # Thai, Lao, Burmese
    *(range(0x1780, 0x1800), range(0x19E0, 0x1A00)),  # Khmer
)

# Frames of tables, shades, dots of progress bars, the stroke in ½, what stands for an object in a text.
_NO_SIGNS = {*range(0x2500, 0x25A0), *range(0x2800, 0x2900), 0x2044, 0xFFFC}
_MORE_SIGNS = "§¶†‡‰‱※"

_FLAG_LETTERS = "\U0001f1e6-\U0001f1ff"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f"
_JOINER = "\u200d"
# Soft hyphens, joiners of letters, marks of direction, variation selectors: they tell no words apart.
_IGNORED = (
    "\u00ad\u061c\u180b-\u180f\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
)


_CATEGORIES = {code: category(chr(code)) for code in chain.from_iterable(_LOOKED_AT)}

MARKS: Final = ranges_of([code for code, kind in _CATEGORIES.items() if kind[0] == "M"])
"""Vowel signs, viramas, points, accents: they belong to the letter before them."""

SIGNS: Final = _MORE_SIGNS + ranges_of(
    [
        code
        for code, kind in _CATEGORIES.items()
        if (kind in {"Sm", "Sc", "So"} or (code in _PICTURES and kind in {"Sk", "Cn"})) and code not in _NO_SIGNS
    ]
)
"""Symbols beyond ASCII and emoji, each by itself."""

PAIRED: Final = CJK + ranges_of([code for code in chain.from_iterable(_SPACELESS) if category(chr(code))[0] in "LM"])
"""What is indexed by pairs of characters, for no space says where a word ends."""

_PICTURE = rf"[{SIGNS}][{MARKS}{_SKIN_TONES}{_TAGS}]*"

SIGN: Final = (
    r"(?=[^\0-\x7f]|.[#+\u20e3])(?:"  # most words are left at once
    rf"[{_FLAG_LETTERS}]{{2}}|[0-9#*]\u20e3|{_PICTURE}(?:{_JOINER}{_PICTURE})*"
    rf"|(?<![^\W{PAIRED}])(?:[A-Za-z]#(?!\u20e3)|[Cc]\+\+)(?![^\W\d{PAIRED}]|[+#]))"
)
"""One sign: a flag, a keycap, a symbol or emoji with all that is joined to it; or the name of a language, such as C#.

To be looked for in a text from `plain`. Names of languages are of one letter, so that increments in code stay what they
are; but `c++` is the language wherever it stands.
"""

NEVER_ALONE: Final = f"{MARKS}{_IGNORED}{_JOINER}{_FLAG_LETTERS}{_SKIN_TONES}{_TAGS}"
"""Characters that are combined with their neighbours or left out."""

NAMED: Final = f"{SIGNS}{NEVER_ALONE}"
"""Characters that a name may contain besides letters, digits and ASCII."""

_SIGN_WITHIN = re.compile(rf"[{SIGNS}\u20e3]")
_SKIN_TONE = re.compile(f"[{_SKIN_TONES}]")
# Each way begins with a plain class, so that the search skips ahead.
_LEFT_OUT = re.compile(rf"[{_IGNORED}]|{_JOINER}(?:(?![{SIGNS}])|(?<![{SIGNS}{MARKS}{_SKIN_TONES}{_TAGS}]{_JOINER}))")


def plain(text: str) -> str:
    """Return the text in NFKC, without variation selectors and joiners within words, which distinguish no words."""
    return text if text.isascii() else nfkc(without_ignored(text))


def without_ignored(text: str) -> str:
    """The text as written, without what `plain` leaves out."""
    return text if text.isascii() else _LEFT_OUT.sub("", text)


def has_sign(text: str) -> bool:
    """Whether there is a symbol beyond ASCII, an emoji or a keycap in it."""
    return not text.isascii() and _SIGN_WITHIN.search(text) is not None


def without_skin_tones(sign: str) -> str:
    """Remove the skin tones of an emoji; empty if nothing is left."""
    return _SKIN_TONE.sub("", sign)
