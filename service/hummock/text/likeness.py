"""Which texts are shown once and which repeat a question, though they are not the same (`identity.py`)."""

from __future__ import annotations

import re
import zlib
from typing import Final

from hummock.text.identity import written
from hummock.text.normalise import CJK, code, nfkc, normal_hash, prose, short_hash

_END_CHARACTERS = 120
"""At the end of a text that may be marks and faces."""

_PLAIN_PUNCTUATION: Final = str.maketrans(
    {chr(full): chr(full - 0xFEE0) for full in map(ord, "！，．：；？（）～")}
    | {"\u3000": " ", "\u00a0": " ", "〜": "~", "…": "..."}
)
_JOINERS = "\ufe0f\u200d\U0001f3fb-\U0001f3ff"
_EMOJI_CHARACTERS = (
    f"{_JOINERS}\u203c\u2049\u20e3\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001faff\U000e0020-\U000e007f"
)
_FACES = (
    f"{_JOINERS}\u2639\u263a\u2665\u2728\u2763\u2764\U0001f339\U0001f389\U0001f38a\U0001f44b\U0001f44f\U0001f493-\U0001f49f"
    "\U0001f4aa\U0001f5a4\U0001f600-\U0001f64f\U0001f90d-\U0001f917\U0001f920-\U0001f92f\U0001f970-\U0001f97a\U0001f9d0"
    "\U0001f9e1\U0001fa75-\U0001fa77\U0001fae0-\U0001faef"
)
"""What adds a feeling and no fact, as ✅, 👎 or 🦄 do."""

_EMOTICON = (
    r"(?<![A-Za-z0-9(\[,=])(?:[:;=][-'^o]?[()\[\]DPpOo*/\\|]+|<3+|\^[_.o-]?\^|[TQ][_.A][TQ]|[xX]D+|[oO>][_.]+[oO<]|-_-)"
    r"(?![A-Za-z0-9])"
)
_EMOTICONS = re.compile(_EMOTICON)
_EMOJI = re.compile(f"[{_EMOJI_CHARACTERS}]+")
_TAIL = re.compile(rf"(?>[!?.。]\s*+[{_EMOJI_CHARACTERS}]++|[!?。\s]|(?<=[^\s.~])[.~]++|{_EMOTICON}|[{_FACES}])++\Z")
"""Final marks and faces, and whatever emoji stand behind a mark. A dot or a tilde behind a space may be a path."""

_SIGNS = re.compile(r"""[\x00-\x1f"#$%&*+/<=>@\[\\\]^_`{|}“”„«»「」『』]|(?<!\w)['-](?=\S)|(?<=\S)'(?!\w)""")
"""What code, addresses, quotations and formulas are written with; there every space and capital counts."""

_CODES = re.compile(r"\d|[A-Z]{2}|[a-z][A-Z]")
"""What may be a number, a key or a name; beside it two spaces may be meant."""

_SPACE_IN_CJK = re.compile(rf"(?<=[{CJK}]) +| +(?=[{CJK}])")
_FINAL_MARKS = "?!.。~ "


def shown_once(text: str) -> str:
    """The form in which texts are equal of which one is shown.

    Prose is equal whatever its final marks, faces and runs of spaces are, the width of its punctuation and the capital
    that it begins with. A question stays one. Text with signs, several lines or characters of compatibility is equal
    only as it is written.
    """
    exact = written(text)
    plain = exact.translate(_PLAIN_PUNCTUATION)
    head, end = plain[:-_END_CHARACTERS], plain[-_END_CHARACTERS:]
    found = _TAIL.search(end)
    stem = head + (end[: found.start()] if found else end)
    if not stem or _SIGNS.search(stem) or nfkc(stem) != code(stem) or ("  " in stem and _CODES.search(stem)):
        return exact
    words = _SPACE_IN_CJK.sub("", code(stem)).split()
    first = words[0]
    if first in ("A", "I") or first[1:].islower():
        words[0] = first[0].lower() + first[1:]
    return " ".join(words) + ("?" if found and "?" in found[0] else "")


def echo_form(text: str) -> str:
    """The form in which what was said equals a question: folded, without emoji, emoticons and final marks.

    What has signs in it keeps its case. A text that is nothing but marks and emoji is its own form.
    """
    said = shown_once(text).translate(_PLAIN_PUNCTUATION)
    bare = _EMOJI.sub(" ", _EMOTICONS.sub(" ", said))
    folded = " ".join([word if _counts_as_written(word) else prose(word) for word in bare.split()])
    return _SPACE_IN_CJK.sub("", folded).rstrip(_FINAL_MARKS) or prose(text)


def _counts_as_written(word: str) -> bool:
    """Whether a word has a sign, or a number such as ² that folding makes another one."""
    if _SIGNS.search(word):
        return True
    return not word.isascii() and any(one.isnumeric() and not (one.isdecimal() or one.isalpha()) for one in word)


def echo_hash(text: str, *, is_code: bool) -> int:
    """64 bits that are equal for texts of one `echo_form`; of code as it is written."""
    return short_hash(normal_hash(code(text) if is_code else echo_form(text)))


def apart(text: str, metadata: object, *, is_code: bool) -> int:
    """32 bits that differ for texts of one `echo_hash` that are both shown; 0 of plain text of nobody's."""
    shown = "" if is_code else shown_once(text)
    told = "" if is_code or shown == echo_form(text) else shown
    return zlib.crc32(repr((told, metadata)).encode("utf-8", "surrogatepass")) or 1 if told or metadata else 0
