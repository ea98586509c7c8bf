"""Text as a person sees it: without what is drawn as nothing, with one kind of line end."""

from __future__ import annotations

import re
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
# Most texts have none of these, which one search says.
_UNCLEAN = re.compile(f"[\r\v\f\u2028\u2029\ud800-\udfff{_BLANK}{_FILLER}{UNSEEN}{JOINERS}{SELECTORS}]")


def clean(text: str) -> str:
    """The text without what cannot be seen.

    A letter that is drawn blank is a space, every kind of line end a newline, a lone surrogate U+FFFD.
    """
    if not _UNCLEAN.search(text):
        return text
    seen = _FILLERS.sub("", _CONTROLS.sub("", _BLANKS.sub(" ", _LINE_ENDS.sub("\n", text))))
    return _SURROGATES.sub("\ufffd", STRAY.sub("", seen))


def one_line(text: str) -> str:
    """The cleaned text with each run of white space one space."""
    return " ".join(clean(text).split())
