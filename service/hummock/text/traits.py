"""Traits of a text: whether it asks something, and whether it speaks of a time."""

from __future__ import annotations

import re
from enum import IntFlag

from hummock.text.time_words import speaks_of_a_time

_END = re.compile(r"[?？][\s\"'”’」』)）]*\Z")
_END_CHARACTERS = 16
_WITHIN = re.compile(r"(?<=\w)(?:？|\?(?![A-Za-z0-9_=.:/&-]))")
"""A question mark of prose: behind a word, and not in the midst of a name, an address or a pattern."""


class Trait(IntFlag):
    """Traits of a text: ASKS ends in a question, ASKS_WITHIN has one in its last line, TELLS_TIME tells a time."""

    ASKS = 1
    ASKS_WITHIN = 2
    TELLS_TIME = 4


def asks(text: str) -> bool:
    """Whether a text ends in a question, so that its answer is to be expected in what is said next."""
    return _END.search(text, max(0, len(text) - _END_CHARACTERS)) is not None


def traits_of(text: str) -> Trait:
    """The traits of a text of a conversation."""
    found = Trait.ASKS if asks(text) else Trait(0)
    last_line = text.rstrip().rpartition("\n")[2]
    if _WITHIN.search(last_line):
        found |= Trait.ASKS_WITHIN
    return found | Trait.TELLS_TIME if speaks_of_a_time(text) else found
