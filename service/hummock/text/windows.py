"""Substrings of a query that could be a known domain's name."""

import re
from collections.abc import Container, Mapping
from typing import Final

from hummock.text.cjk import CJK
from hummock.text.normalise import prose

MAX_CHARACTERS: Final = 512
MAX_WINDOW_CJK: Final = 12
MAX_WINDOW_WORDS: Final = 5

# A unit is one CJK character, or one word with what can end a name (c++, c#).
_UNIT = re.compile(rf"(?P<cjk>[{CJK}])|[^\W{CJK}]+(?:\+\+|#)?")
_GAPS = frozenset({"", " ", "-", ".", "/", "&", "·", "'"})


def domain_windows(text: str) -> frozenset[str]:
    """Every stretch of the text that may be a domain's name or alias, in the form of `normalise.prose`.

    Meant for set membership. A stretch is 2 to 12 CJK characters, 1 to 5 words, or a mixture within both limits (`b超`,
    `4s店 管理`), joined by nothing, one space, or a mark that occurs inside names. Only the first 512 characters of
    the text are looked at.
    """
    normal_form = _normal_form(text)
    units = list(_UNIT.finditer(normal_form))
    windows: set[str] = set()
    for i in range(len(units)):
        windows.update(_windows_from(normal_form, units, i))
    return frozenset(windows)


def names_within(text: str, names: Container[str], lengths: Mapping[str, Container[int]]) -> set[str]:
    """Those of the names that are among `domain_windows(text)`, at a cost that does not grow with their number.

    Args:
        text: As it was written.
        names: Normalised as prose.
        lengths: From the first character of a name to the lengths of all names that begin with it.
    """
    normal_form = _normal_form(text)
    if lengths.keys().isdisjoint(normal_form):
        return set()
    units = list(_UNIT.finditer(normal_form))
    found: set[str] = set()
    for i, unit in enumerate(units):
        some = lengths.get(normal_form[unit.start()], ())
        if some:
            found.update(
                window for window in _windows_from(normal_form, units, i) if len(window) in some and window in names
            )
    return found


def _normal_form(text: str) -> str:
    return prose(text[:MAX_CHARACTERS])[:MAX_CHARACTERS]


def _windows_from(normal_form: str, units: list[re.Match[str]], first: int) -> list[str]:
    windows: list[str] = []
    characters = words = 0
    start = end = units[first].start()
    for unit in units[first:]:
        if unit["cjk"]:
            characters += 1
        else:
            words += 1
        is_joined = unit.start() == end or normal_form[end : unit.start()] in _GAPS
        if not is_joined or characters > MAX_WINDOW_CJK or words > MAX_WINDOW_WORDS:
            break
        end = unit.end()
        if words > 0 or characters > 1:
            windows.append(normal_form[start:end])
    return windows
