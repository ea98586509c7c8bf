"""Chooses the language of a page and looks up its words.

A language is a file of `words/`: by page, then the values of the contract's enums by number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from starlette.requests import Request

COOKIE: Final = "hummock_console_language"
LANGUAGES: Final[dict[str, dict[str, str]]] = {
    name: json.loads(Path(__file__).with_name("words").joinpath(f"{name}.json").read_text("utf-8"))
    for name in ("en", "zh")
}


def language_of(request: Request) -> str:
    """The one that was chosen, else the first that the browser asks for and that there is, else English."""
    chosen = request.cookies.get(COOKIE, "")
    return chosen if chosen in LANGUAGES else _preferred(request.headers.get("accept-language", ""))


def _preferred(header: str) -> str:
    best, best_weight = "en", 0.0
    for part in header.split(","):
        tag, _, weight_text = part.strip().partition(";q=")
        name = tag.strip().lower().partition("-")[0]
        try:
            weight = float(weight_text) if weight_text else 1.0
        except ValueError:
            continue
        if name in LANGUAGES and weight > best_weight:
            best, best_weight = name, weight
    return best


class Words:
    """The words of one language."""

    def __init__(self, language: str) -> None:
        self.language: Final = language
        self._table = LANGUAGES[language]

    def __call__(self, key: str, *facts: object) -> str:
        """The words of a key, with facts in their places. Raises: KeyError."""
        return self._table[key].format(*facts)

    def name(self, enum: str, number: int) -> str:
        """A value of an enum of the contract; its number, where a newer service alone has one."""
        return self._table.get(f"{enum}.{number}", str(number))
