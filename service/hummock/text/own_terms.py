"""A project's own terms beside the glossary: names of one thing in Chinese and in Latin script, as people gave them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final

from hummock.text.gloss_words import GLOSS_STOP_WORDS
from hummock.text.glossary import LONGEST_TERM, MAX_WORDS, Gloss, Glossary, gloss, glossary, joined
from hummock.text.inverse_glossary import Inverse, inverse_gloss, inverse_glossary, joined_inverse
from hummock.text.normalise import nfkc

MAX_TERMS: Final = 1000
"""Most terms of a project; of more the first ones count."""

_HAN = re.compile(rf"[\u3400-\u4dbf\u4e00-\u9fff]{{2,{LONGEST_TERM}}}")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9]+(?:[ ._-][A-Za-z0-9]+){0,2}", re.ASCII)
_KEPT: Final = 512
"""Glosses of one project, and those that all others share."""


class OwnTerms:
    """Glosses of texts by the package's glossary and by what a project calls things.

    It never changes, and is safe to use from several threads.

    Attributes:
        words: Of each Chinese term of the project its Latin words, in the order of the names.
    """

    def __init__(self, words: dict[str, tuple[str, ...]]) -> None:
        self.words = words
        self.gloss = lru_cache(_KEPT)(self._made)
        self.inverse_gloss = lru_cache(_KEPT)(self._inversely_made)

    def _made(self, text: str) -> Gloss | None:
        """A Chinese text in English words; see `glossary.gloss`."""
        return gloss(text, self._known)

    def _inversely_made(self, text: str) -> Gloss | None:
        """An English text in Chinese words; see `inverse_glossary.inverse_gloss`."""
        return inverse_gloss(text, self._inverse, self._known.version)

    # Made with the first text, and so never where nobody asks in another language.
    @cached_property
    def _known(self) -> Glossary:
        return joined(glossary(), self.words) if self.words else glossary()

    @cached_property
    def _inverse(self) -> Inverse:
        return joined_inverse(inverse_glossary(), self.words) if self.words else inverse_glossary()


NO_OWN_TERMS: Final = OwnTerms({})
"""The terms of a project that calls nothing by names in both scripts."""


def own_terms(groups: Iterable[tuple[str, ...]]) -> OwnTerms:
    """The terms of a project, from groups of names.

    Args:
        groups: Names of one thing each, that which it is called by before its others. A name of two to eight Chinese
            characters is a term, one of one to three Latin words what it is in English; all others say nothing here.
    """
    words: dict[str, tuple[str, ...]] = {}
    for names in groups:
        plain = [nfkc(name).strip() for name in names]
        latin = tuple(dict.fromkeys(name for name in plain if _LATIN.fullmatch(name)))
        for term in (name for name in plain if latin and _HAN.fullmatch(name) and name not in GLOSS_STOP_WORDS):
            if len(words) == MAX_TERMS:
                return OwnTerms(words)
            words[term] = tuple(dict.fromkeys((*words.get(term, ()), *latin)))[:MAX_WORDS]
    return OwnTerms(words) if words else NO_OWN_TERMS
