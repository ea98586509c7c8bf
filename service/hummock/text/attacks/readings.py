"""The ways in which a text can be read: as it is seen, with its letters drawn together, and what it holds encoded."""

from __future__ import annotations

import binascii
import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterator
from typing import Final

from hummock.text.clean import clean
from hummock.text.simplified import simplified

_HAN: Final = "\u3400-\u9fff"
# Two "#" and more head a section, and are a marker of some chats.
_COMMENT_SIGNS = re.compile(
    r"(?m)^[ \t]{0,64}(?://+!?|/\*+|\*+/?(?!\*)|#(?!#)!?|--(?!-)|;+|<!--|>+|\"{3}|'{3})[ \t]{0,8}"
)
_BETWEEN_HAN = re.compile(rf"(?<=[{_HAN}])[ \t\u3000·._|*~-]{{1,3}}(?=[{_HAN}])")
_BROKEN_HAN = re.compile(rf"(?<=[{_HAN}])\n[ \t]{{0,16}}(?=[{_HAN}])")
_BROKEN_LINE = re.compile(r"(?<=[a-z,])\n[ \t]{0,16}(?=[a-z])")
_SPACED_OUT = re.compile(r"(?<![a-z0-9])[a-z](?:[ ._*|·~/-]{1,3}[a-z]){7,400}(?![a-z0-9])")
_WIDE_GAP = re.compile(r"[ ._*|·~/-]{2,3}")
_GAP = re.compile(r"[ ._*|·~/-]")
_PUNCTUATION: Final = str.maketrans("，：；！？（）。", ",:;!?()。")
_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")

_ENCODED = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,4096}={0,2}(?![\w+/=-])")
_MOST_ENCODED = 16
"""Runs of a text that are decoded."""


def as_seen(text: str) -> str:
    """The text for patterns: cleaned, folded, in small letters and simplified characters, without signs of comments.

    A sentence that a line's end breaks in two is whole again; other lines stay lines.
    """
    folded = unicodedata.normalize("NFKC", clean(text).translate(_PUNCTUATION)).translate(_QUOTES).lower()
    lines = _COMMENT_SIGNS.sub("", folded)
    if lines.isascii():
        return _BROKEN_LINE.sub(" ", lines)
    return _BETWEEN_HAN.sub("", _BROKEN_HAN.sub("", _BROKEN_LINE.sub(" ", simplified(lines))))


def spaced_out(seen: str) -> Iterator[str]:
    """Runs of single letters with something between them, as `as_seen` gives them; a wider gap is one between words."""
    for run in _SPACED_OUT.finditer(seen):
        yield " ".join(_GAP.sub("", word) for word in _WIDE_GAP.split(run[0]))


def encoded(text: str) -> Iterator[str]:
    """What the first runs of Base64 in a text say, where that is text."""
    for place, run in enumerate(_ENCODED.finditer(text)):
        if place == _MOST_ENCODED:
            return
        body = run[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            said = b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        if all(character.isprintable() or character in "\n\t" for character in said):
            yield said
