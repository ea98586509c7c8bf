"""Text from a file's bytes: UTF-8, what a byte order mark or the file itself declares, or a cautious guess.

Whatever is read, all of the bytes must be valid in the encoding, and the text free of control characters.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hummock_tools.indexing.guessing import guess, sample
from hummock_tools.indexing.skips import SkipReason

# UTF-32 first: its mark in little endian begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Python's PEP 263, as Emacs and Ruby write it, and Vim's `fileencoding=`; `encoding="…"` of XML.
_CODING: Final = re.compile(rb"coding\s*[:=]\s*[\"']?([A-Za-z][-\w.]*)")
_VIM: Final = re.compile(rb"\b(?:vim?|ex):.{0,256}?\bf(?:ile)?enc(?:oding)?=([A-Za-z][-\w.]*)")
_MARKUP: Final = re.compile(rb"(?i)(?:<meta\b[^>]*\bcharset\s*=|^@charset)\s*[\"']?([A-Za-z][-\w.]*)")
_CODING_LINES: Final = 2
_VIM_LINES: Final = 5
_VIM_BYTES: Final = 512
"""Bytes searched at each end of a line: the time of the search grows with their square."""
_MARKUP_BYTES: Final = 1_024
# Supersets that are in use under the narrower name.
_WIDER: Final = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "cp950",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
}
# None of text as people write it; some run over what looks like ASCII.
_NO_ENCODINGS: Final = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_CONTROL_BYTE: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_NO_CHARACTER: Final = frozenset({"Cn", "Co", "Cs"})
_STATEFUL: Final = b"\x1b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A file's text as UTF-8, and the encoding that was guessed for it; empty where it is known."""

    data: bytes
    guessed: str = ""


def decoded(data: bytes) -> Decoded | SkipReason:
    """The text of a file, or why it has none."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = _text(data, encoding)
            return SkipReason.BINARY if text is None or _is_noise(text) else Decoded(data=text.encode())
    if b"\0" in data:
        return SkipReason.BINARY
    if _is_utf8(data):
        return Decoded(data=_declared(data) if _STATEFUL in data else data)
    return _of_another_encoding(data)


def _is_noise(text: str) -> bool:
    """True if hardly any character is ASCII; text by people always has ASCII spaces, signs or line ends."""
    return not text.isascii() and sum(one.isascii() for one in text) < max(2, len(text) / 32, min(len(text), 32) / 8)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _declared(data: bytes) -> bytes:
    """The bytes as UTF-8, decoded by the encoding that they declare; unchanged if none fits."""
    for name in _declarations(data):
        text = _text(data, name)
        if text is not None:
            return text.encode()
    return data


def _of_another_encoding(data: bytes) -> Decoded | SkipReason:
    text = _declared(data)
    if text is not data:
        return Decoded(data=text)
    if _CONTROL_BYTE.search(data):
        return SkipReason.BINARY
    if _is_damaged_utf8(data):
        return SkipReason.UNDECIDED
    encoding = guess(data)
    found = None if encoding is None else _text(data, encoding)
    return SkipReason.UNDECIDED if encoding is None or found is None else Decoded(data=found.encode(), guessed=encoding)


def _declarations(data: bytes) -> Iterator[str]:
    """Encodings that the file says it is in, and what is meant by their names."""
    lines = data.split(b"\n")
    found = [*map(_CODING.search, lines[:_CODING_LINES]), _MARKUP.search(data[:_MARKUP_BYTES])]
    for line in (*lines[:_VIM_LINES], *lines[-_VIM_LINES:]):
        found += map(_VIM.search, (line[:_VIM_BYTES], line[-_VIM_BYTES:]))
    for match in found:
        if match is not None:
            # Emacs adds the line end, and the web's older names begin with "x-".
            name = re.sub(r"-(?:unix|dos|mac)$", "", match[1].decode("ascii").lower()).removeprefix("x-")
            try:
                known = codecs.lookup(name).name
                # What was read as ASCII must be ASCII in that encoding.
                is_meant = match[0].decode(known) == match[0].decode("ascii")
            except (LookupError, ValueError):
                continue
            if is_meant and known.replace("_", "-") not in _NO_ENCODINGS:
                yield from (known, _WIDER.get(known, known))


def _text(data: bytes, encoding: str) -> str | None:
    """All of it, or None where not all is text in that encoding."""
    try:
        text = data.decode(encoding)
    except (LookupError, ValueError):
        return None
    if _CONTROL.search(text):
        return None
    are_characters = all(unicodedata.category(one) not in _NO_CHARACTER for one in set(text))
    return text.removeprefix("\ufeff") if are_characters else None


def _is_damaged_utf8(data: bytes) -> bool:
    """True if most non-ASCII parts are valid UTF-8; text in other encodings hardly ever is."""
    text = sample(data).decode(errors="replace")
    lost = text.count("\ufffd")
    return sum(not one.isascii() for one in text) - lost > lost
