"""Normal forms of texts for search and comparison, and their scripts.

`clean` gives a text as a person sees it; `matches` and `substituted` run patterns over long texts piece by piece. The
table of simplified characters is a versioned data file of the package (`characters/`): a line a simplified character,
with those that are written for it elsewhere. It was made of OpenCC's (`NOTICE`, `bench/characters.py`). A character
is changed by itself, whatever the word: where two traditional ones share a simplified one (後 and 后), all three are
one to a search.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Final

# Everything that some reader takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Beside controls what is drawn as nothing: marks of direction, spaces without width, tag characters. A person does not
# see them, a model does, and a pattern that looks for the beginning of a line finds them in front of it.
UNSEEN: Final = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\u17b4\u17b5\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_CONTROLS = re.compile(f"[{UNSEEN}]")
# Scripts and emoji need what joins letters and what selects their shape. Behind ASCII, its styled forms, white
# space or nothing it does nothing but hide a marker, a keycap excepted; behind a Chinese character it hides a label of
# ours, unless it selects the variant of an ideograph (U+E0100 and up), as names need it.
JOINERS: Final = "\u034f\u200c\u200d"
SELECTORS: Final = "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STYLED: Final = "\u2100-\u214f\u2460-\u24ff\ufe30-\ufe6f\uff00-\uffef\U0001d400-\U0001d7ff\U0001f100-\U0001f189"
STRAY: Final = re.compile(
    rf"(?:^|(?<=[\x00-\x7f\s{_STYLED}]))[{JOINERS}{SELECTORS}]+(?!\u20e3)|(?<=[\u3400-\u9fff])[{JOINERS}\ufe00-\ufe0f]+"
)
# Letters and patterns that are drawn as a space; in Braille a space looks the same.
_BLANK: Final = "\u2800\u3164\uffa0"
_BLANKS = re.compile(f"[{_BLANK}]")
# What stands for a missing part of a Korean syllable, where no other part is beside it.
_FILLER: Final = "\u115f\u1160"
_JAMO: Final = "\u1100-\u115e\u1161-\u11ff\ua960-\ua97c\ud7b0-\ud7fb"
_FILLERS = re.compile(f"(?<![{_JAMO}])[{_FILLER}](?![{_JAMO}])")
_SURROGATES = re.compile("[\ud800-\udfff]")
BEYOND: Final = "\U00010000-\U0010ffff"
"""For a class of characters that is to be looked for soon: `re` tries ranges above U+FFFF one by one."""
_NEAR: Final = re.sub("[\U00010000-\U0010ffff](?:-[\U00010000-\U0010ffff])?", "", f"{UNSEEN}{JOINERS}{SELECTORS}")
# Most texts have none of these, which one search says.
_UNCLEAN = re.compile(f"[\r\v\f\u2028\u2029\ud800-\udfff{_BLANK}{_FILLER}{_NEAR}{BEYOND}]")


def clean(text: str) -> str:
    """Remove invisible characters.

    A blank letter becomes a space, every kind of line end a newline, a lone surrogate U+FFFD.
    """
    if not _UNCLEAN.search(text):
        return text
    seen = _FILLERS.sub("", _CONTROLS.sub("", _BLANKS.sub(" ", _LINE_ENDS.sub("\n", text))))
    return _SURROGATES.sub("\ufffd", STRAY.sub("", seen))


def holds_any(words: Iterable[str], text: str) -> bool:
    """Whether one of the words is in the text."""
    # A pattern of all words would try each at each character.
    for word in words:  # noqa: SIM110 - a generator takes as long as the searches
        if word in text:
            return True
    return False


def one_line(text: str) -> str:
    """The cleaned text with each run of white space one space."""
    return " ".join(clean(text).split())


PIECE: Final = 1 << 14
"""Length of a piece in characters; a text crafted to be slow takes some ten milliseconds per piece."""

REACH: Final = 1 << 12
"""Characters after a piece that a match beginning in it may use, including look-aheads."""


def matches(pattern: re.Pattern[str], text: str, reach: int = REACH) -> Iterator[re.Match[str]]:
    """Yield the matches of `finditer`, for patterns whose matches span at most `reach` characters."""
    at = 0
    while at < len(text):
        until = at + PIECE
        for found in pattern.finditer(text, at, min(until + reach, len(text))):
            if found.start() >= until:
                break
            yield found
            at = found.end()
        at = max(at, until)


def substituted(
    pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str], text: str, reach: int = REACH
) -> str:
    """What `sub` gives, for the same patterns."""
    if len(text) <= PIECE:
        return pattern.sub(replacement, text)
    return replaced(matches(pattern, text, reach), replacement, text)


def matches_from(begin: str, pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `finditer`, for a pattern whose matches all begin with `begin`; they may span any length.

    Each start is tried in a call of its own, so that other threads can run in between.
    """
    at = text.find(begin)
    while at >= 0:
        found = pattern.match(text, at)
        if found is not None:
            yield found
        at = text.find(begin, at + 1 if found is None else found.end())


def replaced(found_in_order: Iterable[re.Match[str]], replacement: Callable[[re.Match[str]], str], text: str) -> str:
    """The text with a replacement for each of these matches."""
    parts, end = [], 0
    for found in found_in_order:
        parts += [text[end : found.start()], replacement(found)]
        end = found.end()
    return "".join([*parts, text[end:]])


SIMPLIFIED_VERSION: Final = "simplified.v1"
SIMPLIFIED_SHA256: Final = "78338bd7c640fadc0c3b759c26453664a2229c1210f8b247b4006309dbf770e9"


class CharactersDamaged(Exception):
    """A data file is not the one that this version was made with."""


def simplified(text: str) -> str:
    """The text with every traditional character in its simplified form; as long as it was.

    Applying it twice changes nothing.
    """
    return text if text.isascii() or not _traditional().search(text) else text.translate(simplified_forms())


@cache
def _traditional() -> re.Pattern[str]:
    """Finds a traditional character: most texts have none, and to change none takes thirty times as long."""
    return re.compile(f"[{''.join(map(chr, simplified_forms()))}]")


@cache
def simplified_forms() -> Mapping[int, int]:
    """The simplified form of each traditional character, both as code points below 0x10000; read on first use."""
    rows = table(SIMPLIFIED_VERSION, SIMPLIFIED_SHA256)
    return {ord(source): ord(form) for form, sources in rows.items() for source in sources}


def table(version: str, sha256: str) -> dict[str, str]:
    """Read a data file: the key before the tab of each line, and the characters after it. Raises: CharactersDamaged."""
    content = resources.files("hummock.text").joinpath("characters", f"{version}.tsv").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise CharactersDamaged(f"the characters {version} have the SHA-256 {digest}, not {sha256}")
    return dict(line.split("\t", 1) for line in content.decode("utf-8").splitlines()[1:])


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


def ranges_of(codes: Iterable[int]) -> str:
    """The inside of a character class of these code points, which ascend, as ranges.

    `re` tries single ones above U+FFFF one after the other.
    """
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


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
    if text.isascii():
        return " ".join(text.lower().split())
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
    """Return the first 8 bytes of a `text_hash` as a number, for columns."""
    return int.from_bytes(digest[:_SHORT_BYTES], "little")


def nfkc(text: str) -> str:
    """The text in NFKC, in linear time even for runs of combining marks made to be slow."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _break_mark_runs(with_plain_marks(text)))


_WIDE_MARKS: Final = (*((chr(ord(mark) + 0xFEE0), mark) for mark in "!,.:;?()~"), ("\u3000", " "), ("…", "..."))


def with_plain_marks(text: str) -> str:
    """The text with common punctuation as NFKC writes it, which takes long to change it, and every Chinese text has it.

    Its NFKC is that of the text.
    """
    for wide, plain in _WIDE_MARKS:
        text = text.replace(wide, plain)
    return text


def is_han(text: str) -> bool:
    """Whether the text has a Chinese character."""
    return _HAN.search(text) is not None


def words_by_script(text: str) -> dict[str, float]:
    """Number of words in each script, "han" and "latin": pairs of Chinese characters and runs of Latin letters."""
    han = 0 if text.isascii() else len(_HAN.findall(text))
    return {"han": han / 2, "latin": float(len(_LATIN.findall(text)))}


def known_share(words: Mapping[str, float], scripts: frozenset[str]) -> float:
    """Return the share of words in these scripts, in [0, 1], by `words_by_script`; 1 without any word."""
    total = sum(words.values())
    return sum([count for script, count in words.items() if script in scripts]) / total if total else 1.0


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
