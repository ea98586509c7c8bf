"""Detects families of instructions to a model in a text. No list is complete; people check what is found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hummock.text.attacks.families import FAMILIES
from hummock.text.attacks.readings import as_seen, encoded, spaced_out
from hummock.text.pieces import matches

ENCODED: Final = "encoded"
"""Reported with the family of an instruction found in Base64."""

_PATTERNS: Final = tuple(
    (family.name, tuple(re.compile(pattern, re.DOTALL) for pattern in family.patterns)) for family in FAMILIES
)
_JOINED: Final = tuple((family.name, family.joined) for family in FAMILIES)


def families_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the families that any of the texts holds, in the order of their table."""
    found: set[str] = set()
    for text in texts:
        found |= _in_text(text)
        for said in encoded(text):
            inner = _in_text(said)
            if inner:
                found |= inner | {ENCODED}
    return tuple(name for name in (*(family.name for family in FAMILIES), ENCODED) if name in found)


def _in_text(text: str) -> set[str]:
    seen = as_seen(text)
    found = _said_in(seen)
    for words in spaced_out(seen):
        letters = words.replace(" ", "")
        found |= _said_in(words) | {name for name, phrases in _JOINED if any(phrase in letters for phrase in phrases)}
    return found


def _said_in(seen: str) -> set[str]:
    return {name for name, patterns in _PATTERNS if any(next(matches(pattern, seen), None) for pattern in patterns)}
