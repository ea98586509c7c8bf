"""Decodes files to text, by a declared or guessed encoding, and notebooks to their cells."""

from __future__ import annotations

import codecs
import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from hummock_tools.indexing.skips import SkipReason

NOTEBOOK_SUFFIX: Final = ".ipynb"


def cells_as_text(data: bytes) -> bytes:
    """The sources of a notebook's cells, each below a line `# %%` with its kind; the bytes themselves if it is none.

    That line is what editors take for the beginning of a cell in a plain file.
    """
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return data
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return data
    return "\n".join(_lines(cells)).encode(errors="replace")


def _lines(cells: list[object]) -> Iterator[str]:
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        source = cell.get("source")
        parts = source if isinstance(source, list) else [source]
        text = "".join(part for part in parts if isinstance(part, str))
        if text.strip():
            kind = cell.get("cell_type")
            yield "# %%" if kind == "code" else f"# %% [{kind}]"
            yield f"{text.rstrip()}\n"


_SAMPLE_BYTES: Final = 8_000
"""Limit of the lines that are not all ASCII; more say nothing new."""

_FEWEST_BYTES: Final = 24
"""Bytes at random may be a word, fewer than these at least."""

_LEAST_MARGIN: Final = 4.5
"""Least lead of the best over any other, in natural logarithms: 90 times as likely."""

_RARE: Final = 1e-7
_GLUED: Final = 1e-2
"""Factor for each ASCII letter that touches a letter of another script in one word."""

_COMMON: Final = tomllib.loads(Path(__file__).with_name("characters.toml").read_text("utf-8"))
"""Frequent characters by script."""


def guess(data: bytes) -> str | None:
    """The encoding of bytes that are no UTF-8, by Python's name; None where nothing or too much would do."""
    if len(data) < _FEWEST_BYTES:
        return None
    found = sorted(_scores(data, sample(data)), reverse=True)
    if not found:
        return None
    (best, encoding, text), *others = found
    rival = next((score for score, _, other in others if other != text), -math.inf)
    return encoding if best - rival >= _LEAST_MARGIN else None


def sample(data: bytes) -> bytes:
    """The first lines that are not all ASCII."""
    lines: list[bytes] = []
    taken = 0
    for line in data.split(b"\n"):
        if not line.isascii() and taken < _SAMPLE_BYTES:
            lines.append(line)
            taken += len(line)
    return b"\n".join(lines)


def _scores(data: bytes, part: bytes) -> Iterator[tuple[float, str, str]]:
    """Score, encoding and decoded text of a part, for each encoding that can decode all of the data."""
    for encoding, floor in _FLOORS.items():
        try:
            data.decode(encoding)
            text = part.decode(encoding)
        except UnicodeDecodeError:
            continue
        strange = [place for place, one in enumerate(text) if not one.isascii()]
        score = sum(_likelihoods(encoding, text, strange))
        if score >= floor * len(strange):
            yield score, encoding, text


_FLOORS: Final[Mapping[str, float]] = {
    "gb18030": -10.5,
    "big5": -10.5,
    "cp949": -9.5,
    "euc_jp": -9.0,
    "cp932": -9.0,
    "cp1251": -5.5,
    "koi8_r": -5.5,
    "cp1252": -6.5,
}
"""The encodings that are guessed, and the least mean log-likelihood per character for each."""


def _likelihoods(encoding: str, text: str, places: Iterable[int]) -> Iterator[float]:
    known = _characters(encoding)
    is_cyrillic, is_latin = encoding in {"cp1251", "koi8_r"}, encoding == "cp1252"
    for place in places:
        one, before = text[place], text[place - 1 : place]
        score = known.get(one, _RARE)
        touching = sum(_is_ascii_letter(text[at : at + 1]) for at in (place - 1, place + 1) if at >= 0)
        if is_latin:
            # Letters with accents stand alone between others.
            score *= 0.05 if not before.isascii() and one.isalpha() else 1.0
            score *= 0.01 if not touching and one.isalpha() and one not in _COMMON["alone"] else 1.0
        elif is_cyrillic:
            score *= _GLUED**touching
            score *= 1e-3 if one.isupper() and before.islower() and not before.isascii() else 1.0
            score *= 8.0 if one.isupper() and before.isupper() else 1.0
            score *= 0.05 if not before.isalpha() else 1.0
        elif touching == 2:
            score *= _GLUED
        yield math.log(score)


def _is_ascii_letter(one: str) -> bool:
    return one.isascii() and one.isalpha()


@cache
def _characters(encoding: str) -> Mapping[str, float]:
    """Probability of each character of an encoding among those that are not ASCII."""
    match encoding:
        case "gb18030":
            common, rest = _plane("gb2312", 0xB0, 0xD7), _plane("gb2312", 0xD8, 0xF7)
            return _shared((0.4, common), (0.01, rest), (0.5, _COMMON["simplified"]))
        case "big5":
            common, rest = _plane("big5", 0xA4, 0xC6), _plane("big5", 0xC9, 0xF9)
            return _shared((0.4, common), (0.01, rest), (0.5, _COMMON["traditional"]))
        case "cp949":
            syllables, hanja = _plane("euc_kr", 0xB0, 0xC8), _plane("euc_kr", 0xCA, 0xFD)
            return _shared((0.4, syllables), (0.002, hanja), (0.55, _COMMON["hangul"]))
        case "euc_jp" | "cp932":
            kana, common, rest = (_plane("euc_jp", *leads) for leads in ((0xA4, 0xA5), (0xB0, 0xCF), (0xD0, 0xF4)))
            return _shared((0.15, common), (0.003, rest), (0.2, _COMMON["kanji"]), (0.6, kana))
        case "cp1251" | "koi8_r":
            ranked = {one: 0.9 * 0.1 * 0.93**rank for rank, one in enumerate(_COMMON["cyrillic"])}
            return ranked | {one.upper(): likely / 15 for one, likely in ranked.items()} | dict.fromkeys("«»№—–", 1e-3)
        case _:
            ranked = {one: 0.9 * 0.2 * 0.82**rank for rank, one in enumerate(_COMMON["accented"])}
            upper = {one.upper(): likely / 15 for one, likely in ranked.items()}
            return dict.fromkeys(_COMMON["latin_signs"], 2e-3) | dict.fromkeys(_COMMON["quotes"], 1e-2) | upper | ranked


def _shared(*groups: tuple[float, Iterable[str]]) -> Mapping[str, float]:
    """Combine groups of characters by their shares; a character in several groups adds up."""
    signs = _COMMON["east_asian_signs"]
    found = dict.fromkeys(signs, 0.08 / len(signs))
    for share, characters in groups:
        distinct = set(characters)
        found |= {one: found.get(one, 0.0) + share / len(distinct) for one in distinct}
    return found


def _plane(encoding: str, first: int, last: int) -> str:
    """The characters of an encoding of two bytes whose first byte is in a range."""
    pairs = (bytes((lead, trail)) for lead in range(first, last + 1) for trail in range(0x40, 0xFF))
    return "".join(pair.decode(encoding, "ignore") for pair in pairs)


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
    """A file's text, and the encoding that was guessed for it; empty if it is known."""

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
    try:
        data.decode()
    except UnicodeDecodeError:
        return _of_another_encoding(data)
    return Decoded(data=_declared(data) if _STATEFUL in data else data)


def _is_noise(text: str) -> bool:
    """True if hardly any character is ASCII; text by people always has ASCII spaces, signs or line ends."""
    return not text.isascii() and sum(one.isascii() for one in text) < max(2, len(text) / 32, min(len(text), 32) / 8)


def _declared(data: bytes) -> bytes:
    """The bytes as UTF-8, decoded by the encoding that they declare; unchanged if none fits."""
    texts = (_text(data, name) for name in _declarations(data))
    return next((text.encode() for text in texts if text is not None), data)


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
    """Yield the encodings that the file declares, by their Python names."""
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
    """Decode all bytes; None if not all are text in that encoding."""
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
