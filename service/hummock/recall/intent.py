"""What the user wants, read from the words of the query."""

from __future__ import annotations

from dataclasses import replace

from hummock.core.recall import Intent
from hummock.text.keywords import keywords

MAX_KEYWORDS = 5


def analyse_intent(text: str, given: Intent | None) -> Intent:
    """The caller's intent, with the query's keywords where it has none. The store matches domains that nobody gave."""
    known = given or Intent()
    return known if known.keywords else replace(known, keywords=keywords(text, MAX_KEYWORDS))
