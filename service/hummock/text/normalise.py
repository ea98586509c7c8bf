"""Normal forms of texts, by which they are found and compared, and in which script they are."""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from functools import cache
from itertools import pairwise
from typing import Final

from hummock.text.pieces import substituted

CJK: Final = (
    "\u3005-\u3007\u303b"  # iteration and closing marks, ideographic zero
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"  # hangul
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # ideographs
)
"""Scripts written without spaces between words (and hangul, whose words are inflected): indexed by character pairs."""

LAST_IDEOGRAPH: Final = 0x3FFFD
"""Beyond it no character belongs to a word."""

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_HASH_BYTES = 16
_SHORT_BYTES = 8
_MAX_MARKS = 30
_WIDE = 256
_GRAPHEME_JOINER = "\u034f"


def prose(text: str) -> str:
    """The text in NFKC and case-folded, each run of white space one space, none at the ends.

    Applying it twice changes nothing.
    """
    # NFKC on both sides: it gives letters to fold (℡), and folding gives sequences to compose.
    return " ".join(nfkc(nfkc(text).casefold()).split())


def code(text: str) -> str:
    """The text in NFC; case and white space are part of a program."""
    return text if text.isascii() else unicodedata.normalize("NFC", _break_mark_runs(text))


def text_hash(text: str, *, is_code: bool) -> bytes:
    """16 bytes that are equal for texts of the same normal form (BLAKE2b)."""
    return normal_hash(code(text) if is_code else prose(text))


def normal_hash(normal_form: str) -> bytes:
    """16 bytes that are equal for equal normal forms (BLAKE2b)."""
    # A lone surrogate cannot come over the wire, and is still no reason to fail here.
    return hashlib.blake2b(normal_form.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


def short_hash(digest: bytes) -> int:
    """The first 8 bytes of a `text_hash` as a number: what columns hold of it."""
    return int.from_bytes(digest[:_SHORT_BYTES], "little")


def nfkc(text: str) -> str:
    """The text in NFKC, in linear time even for runs of combining marks made to be slow."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _break_mark_runs(text))


def is_han(text: str) -> bool:
    """Whether the text has a Chinese character."""
    return _HAN.search(text) is not None


def known_share(text: str, scripts: frozenset[str]) -> float:
    """Share of the text's words whose script is one of these ("han", "latin"), in [0, 1]; 1 for a text without any.

    Two Chinese characters count as a word, as does a run of Latin letters.
    """
    weights = {"han": len(_HAN.findall(text)) / 2, "latin": float(len(_LATIN.findall(text)))}
    total = sum(weights.values())
    return sum(weight for script, weight in weights.items() if script in scripts) / total if total else 1.0


def _break_mark_runs(text: str) -> str:
    """Bound what has to be sorted: Python orders a run of marks in quadratic time, and holds the GIL meanwhile.

    Source: Unicode Standard Annex 15, Stream-Safe Text Format. No text that people write has such runs.
    """
    if _near_marks().search(text) is None:
        return text
    return substituted(_mark_run(), lambda run: run[0] + _GRAPHEME_JOINER, text)


@cache
def _near_marks() -> re.Pattern[str]:
    """A character outside the wide ranges that hold no mark.

    Most text has none, and a class of few ranges is looked through fifty times as fast as one of all marks.
    """
    edges = [0, *map(ord, _marks()), sys.maxunicode + 1]
    gaps = [(start + 1, end - 1) for start, end in pairwise(edges) if end - start > _WIDE]
    return re.compile(f"[^\0{''.join(f'{chr(first)}-{chr(last)}' for first, last in gaps)}]")


@cache
def _marks() -> str:
    # Beyond U+20000 there are no marks.
    return "".join(filter(_is_mark, map(chr, range(0x0300, 0x20000))))


@cache
def _mark_run() -> re.Pattern[str]:
    marks = _marks()
    # Beginning with a plain class lets the search skip ahead; a repeat as the first item would be tried everywhere.
    return re.compile(f"[{marks}][{marks}]{{{_MAX_MARKS - 1}}}(?=[{marks}])")


def _is_mark(character: str) -> bool:
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0
