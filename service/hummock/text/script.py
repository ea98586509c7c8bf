"""Which scripts a text is written in."""

from __future__ import annotations

import re

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]+")


def is_han(text: str) -> bool:
    """Whether the text has a Chinese character."""
    return _HAN.search(text) is not None


def known_share(text: str, scripts: frozenset[str]) -> float:
    """Share of the text's words whose script is one of these ("han", "latin"), in [0, 1]; 1 for a text without any.

    Two Chinese characters count as a word, as does a run of Latin letters.
    """
    weights = {"han": len(_HAN.findall(text)) / 2, "latin": float(len(_LATIN.findall(text)))}
    total = sum(weights.values())
    return sum(weight for script, weight in weights.items() if script in scripts) / total if total else 1.0
