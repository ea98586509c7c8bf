"""What the user wants, read from the words of the query."""

from __future__ import annotations

from hummock.core.recall import Intent
from hummock.text.keywords import keywords

MAX_KEYWORDS = 5


def analyse_intent(text: str, given: Intent | None) -> Intent:
    """The caller's intent, with the query's keywords where it has none. The store matches domains that nobody gave."""
    known = given or Intent()
    if known.keywords:
        return known
    return Intent(domains=known.domains, action=known.action, keywords=keywords(text, MAX_KEYWORDS))
