"""What the user wants, read from the words of the query."""

from __future__ import annotations

from dataclasses import replace

from hummock.core.recall import Intent
from hummock.text.keywords import keywords
from hummock.text.normalise import prose
from hummock.text.windows import domain_windows

MAX_KEYWORDS = 5


def analyse_intent(text: str, given: Intent | None) -> Intent:
    """The caller's intent, with the query's keywords where it has none. The store matches domains that nobody gave."""
    known = given or Intent()
    return known if known.keywords else replace(known, keywords=keywords(text, MAX_KEYWORDS))


def domain_guesses(text: str, given: Intent | None) -> frozenset[str]:
    """Names to look up among the project's domains, normalised as prose.

    With a given intent: its domains. Otherwise every part of the query that could be a name.
    """
    if given is not None and given.domains:
        return frozenset(prose(name) for name in given.domains)
    return domain_windows(text)
