"""Patterns over long texts, some thousand characters at a time: while one call of `re` runs, no other thread does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

PIECE: Final = 1 << 14
"""Characters in which a match begins; what is made to be slow takes some ten milliseconds for them."""

REACH: Final = 1 << 12
"""Characters behind a piece in which a match that begins in it may end, with what it looks ahead for."""


def matches(pattern: re.Pattern[str], text: str, reach: int = REACH) -> Iterator[re.Match[str]]:
    """What `finditer` finds, for patterns whose matches reach no farther than `reach` characters."""
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
    parts, end = [], 0
    for found in matches(pattern, text, reach):
        parts += [text[end : found.start()], replacement(found)]
        end = found.end()
    return "".join([*parts, text[end:]])
