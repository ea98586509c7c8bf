"""The glossary read from English into Chinese, and with the names that a project gives to its own things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache
from typing import Final

from hummock.text.analyzer import first_terms, query_terms
from hummock.text.glossary import (
    ALTERNATIVE_WEIGHT,
    LONGEST_TERM,
    MAX_WORDS,
    Concept,
    Gloss,
    Glossary,
    bounded_text,
    gloss,
    glossary,
    joined,
)
from hummock.text.normalise import nfkc
from hummock.text.question import Question, question_of
from hummock.text.word_lists import ENGLISH_STOP_WORDS, GLOSS_STOP_WORDS

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_LONGEST_PHRASE: Final = 3

Inverse = Mapping[tuple[str, ...], tuple[str, ...]]
"""Chinese terms of the stems of an English word or phrase, the likeliest first."""


@cache
def inverse_glossary() -> Inverse:
    """The inverse of the package's glossary, made on first use. Raises: GlossaryDamaged."""
    return inverse_of(glossary())


def inverse_of(known: Glossary) -> Inverse:
    """Every English word with the Chinese terms that it is likely for: by its probability, and how often each is met.

    Terms of one character are left out; they mean too many things.
    """
    terms: dict[tuple[str, ...], dict[str, float]] = {}
    for term, words in known.words.items():
        for word, probability in words if len(term) > 1 else ():
            stems = _stems(word)
            if stems:
                # The cost is a logarithm of the frequency; its half, since frequent terms are often general ones.
                terms.setdefault(stems, {})[term] = -probability * 2.0 ** -known.pieces[term][0]
    return {
        stems: tuple(sorted(found, key=lambda term: (found[term], term)))[:MAX_WORDS] for stems, found in terms.items()
    }


def joined_inverse(known: Inverse, own: Mapping[str, tuple[str, ...]]) -> Inverse:
    """The inverse of a glossary with a project's own terms, which come before the glossary's."""
    found = dict(known)
    for term, words in own.items():
        for stems in filter(None, map(_stems, words)):
            others = (other for other in found.get(stems, ()) if other not in own)
            given = (other for other in found.get(stems, ()) if other in own)
            found[stems] = tuple(dict.fromkeys((*given, term, *others)))[:MAX_WORDS]
    return found


def _stems(words: str) -> tuple[str, ...]:
    return tuple(stem for part in _WORD.findall(words) for stem in query_terms(part))


def inverse_gloss(question: Question, inverse: Inverse | None = None, version: str = "") -> Gloss | None:
    """An English text in Chinese words, the longest phrases first; None for one without any that is known.

    `version` is that of another glossary than the package's.
    """
    known = inverse_glossary() if inverse is None else inverse
    words = [word for word in _WORD.findall(bounded_text(question.nfkc)) if word.lower() not in ENGLISH_STOP_WORDS]
    stems = first_terms(words)
    found: dict[str, tuple[str, ...]] = {}
    place = 0
    while place < len(words):
        length = next(
            (size for size in range(_LONGEST_PHRASE, 0, -1) if tuple(stems[place : place + size]) in known), 0
        )
        if length:
            found[" ".join(words[place : place + length])] = known[tuple(stems[place : place + length])]
        place += length or 1
    if not found:
        return None
    return Gloss(
        text=" ".join(dict.fromkeys(terms[0] for terms in found.values())),
        concepts=tuple(_concept(source, terms) for source, terms in found.items()),
        version=version or glossary().version,
        is_chinese=True,
    )


@lru_cache(1 << 12)
def _concept(source: str, terms: tuple[str, ...]) -> Concept:
    """A term's pairs of characters share its weight: a long one would count several times."""
    weights: dict[str, float] = {}
    for place, term in enumerate(terms):
        pairs = query_terms(term)
        for pair in pairs:
            weights.setdefault(pair, (ALTERNATIVE_WEIGHT if place else 1.0) / len(pairs))
    return Concept(
        source=source,
        terms=tuple(query_terms(source)),
        words=terms,
        stems=tuple(weights),
        weights=tuple(weights.values()),
    )


MAX_TERMS: Final = 1000
"""Most terms of a project; of more the first ones count."""

_HAN = re.compile(rf"[\u3400-\u4dbf\u4e00-\u9fff]{{2,{LONGEST_TERM}}}")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9]+(?:[ ._-][A-Za-z0-9]+){0,2}", re.ASCII)
_KEPT: Final = 512
"""Cached glosses of one project, and of all projects without own terms together."""


class OwnTerms:
    """Translates texts by the package's glossary and a project's own names.

    Immutable; safe to use from several threads.

    Attributes:
        words: Latin words of each Chinese term of the project, in the order of the names.
    """

    def __init__(self, words: dict[str, tuple[str, ...]]) -> None:
        self.words = words
        self.gloss = lru_cache(_KEPT)(self._made)
        self.inverse_gloss = lru_cache(_KEPT)(self._inversely_made)

    def _made(self, text: str) -> Gloss | None:
        return gloss(question_of(text), self._known)

    def _inversely_made(self, text: str) -> Gloss | None:
        return inverse_gloss(question_of(text), self._inverse, self._known.version)

    # Built with the first text, and never for a project without queries in another language.
    @cached_property
    def _known(self) -> Glossary:
        return joined(glossary(), self.words) if self.words else glossary()

    @cached_property
    def _inverse(self) -> Inverse:
        return joined_inverse(inverse_glossary(), self.words) if self.words else inverse_glossary()


NO_OWN_TERMS: Final = OwnTerms({})
"""The terms of a project that calls nothing by names in both scripts."""


def own_terms(groups: Iterable[tuple[str, ...]]) -> OwnTerms:
    """Build the terms of a project from groups of names of one thing each, the main name first.

    A name of two to eight Chinese characters is a term, one of one to three Latin words its translation; others are
    ignored.
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
