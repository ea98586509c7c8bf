"""Compares a reply with the one that a case expects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

Json = object
_GOLDEN = Path(__file__).parent / "golden"
_NEAR = 1e-6


def mismatch(expected: Json, got: Json, where: str = "") -> str | None:
    """Why they do not match, in words, with the place; None where they do. A value that is not there is None."""
    if isinstance(expected, Mapping):
        rule = next((key for key in expected if key.startswith("$")), None)
        if rule is not None:
            return None if _RULES[rule](expected[rule], got) else _said(where, expected, got)
        if not isinstance(got, Mapping):
            return _said(where, expected, got)
        found = (mismatch(value, got.get(key), f"{where}.{key}") for key, value in expected.items())
        return next((why for why in found if why), None)
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return _said(where, expected, got)
        places = enumerate(zip(expected, got, strict=True))
        return next((why for at, (one, other) in places if (why := mismatch(one, other, f"{where}[{at}]"))), None)
    return None if _equal(expected, got) else _said(where, expected, got)


def _equal(expected: Json, got: Json) -> bool:
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return math.isclose(expected, got, rel_tol=0, abs_tol=_NEAR)
    return expected == got


def _contains(expected: Json, got: Json) -> bool:
    if isinstance(got, list):
        return any(mismatch(expected, each) is None for each in got)
    return isinstance(got, str) and isinstance(expected, str) and expected in got


def _said(where: str, expected: Json, got: Json) -> str:
    return f"{where.lstrip('.') or 'reply'}: expected {expected!r}, got {got!r}"


_RULES: Mapping[str, Callable[[Json, Json], bool]] = {
    "$any": lambda _, got: got is not None,
    "$absent": lambda _, got: got is None,
    "$contains": _contains,
    "$matches": lambda pattern, got: isinstance(got, str) and re.search(str(pattern), got) is not None,
    "$at_least": lambda least, got: got is not None and float(str(got)) >= float(str(least)),
    "$length": lambda length, got: isinstance(got, list | str) and len(got) == length,
    "$golden": lambda name, got: got == (_GOLDEN / str(name)).read_text(encoding="utf-8"),
}
