"""Corrections of query words that no memory holds, to words that some do: misspellings, pinyin and names of code.

A weak path. It runs only if a search has met an unknown word, or if the query is a name of code, which may be written
in another case elsewhere; a candidate found by it alone has a lower word score than any that holds a word of the query
itself. Source of the numbers: docs/decisions/043.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from hummock.core.candidates import Candidates, Spelling, stood_for
from hummock.core.memory import Memory
from hummock.core.recall import Correction
from hummock.ports.store import Snapshot
from hummock.recall.query_features import MAX_TERMS, CorrectedWord, QueryFeatures
from hummock.text.analyzer import TOKEN, first_terms, other_spellings, pairs, query_terms
from hummock.text.keywords import content_weights, pieces
from hummock.text.normalise import is_han, nfkc, simplified
from hummock.text.question import Question, question_of
from hummock.text.spelling import (
    LEAST_FOR_ALL,
    MOST_SYLLABLES,
    SHARED_PREFIX,
    characters_by_syllable,
    exchanged,
    may_be_misspelt,
    one_slip_away,
    readings_of,
    respelt,
    syllables_of,
)
from hummock.text.word_lists import ENGLISH_STOP_WORDS

WEIGHT = 0.7
"""Weight of a corrected word; a word of the query that is indexed has 1, and so has a name in another case if no memory
has it as asked."""

BEHIND = 0.9
"""Upper bound on the word score of a match by correction, as a share of the least score by the query's own words."""

MOST_MISSPELT = 3
"""Most unknown words, or names with their parts, that are corrected; with more, the query is about something else."""

MOST_MEANT = 3
"""Words that one word is taken for."""

_MOST_COMPARED = 2048
_MOST_WRITTEN = 2048
_LOOKED_THROUGH = 20_000
_LATIN = re.compile(r"[A-Za-z]+")
_JOINT = re.compile(r"[a-z][A-Z]|[A-Za-z0-9][_-]+[A-Za-z0-9]|[A-Za-z][0-9]")


def find_corrections(features: QueryFeatures, question: Question, project: Snapshot) -> tuple[CorrectedWord, ...]:
    """Corrections of the query's words that no memory of the project holds; of a name also other cases of a held one.

    Args:
        features: The query's.
        question: The query's text.
        project: Where they are looked for.
    """
    unheld = {features.terms[place]: place for place in project.unheld(features.terms)}
    if not unheld and not features.is_name:
        return ()
    return tuple(_Lookup(project, features, unheld).all(question))


class _Lookup:
    """Search for one query's words among the terms of a project."""

    def __init__(self, project: Snapshot, features: QueryFeatures, unheld: dict[str, int]) -> None:
        """`unheld` are the terms that no memory holds, and their places."""
        self._project = project
        self._features = features
        self._unheld = unheld

    def all(self, question: Question) -> Iterator[CorrectedWord]:
        """Yield corrections, names first, then pinyin: neither is a misspelling."""
        features, words = self._features, self._features.words
        places = range(len(words)) if features.is_name else self._unheld.values()
        is_one_word = bool(features.exact_name) and not features.is_name
        to_look_up = [place for place in places if is_one_word or _JOINT.search(words[place])]
        names = list(self._spelt_otherwise(to_look_up)) if to_look_up else []
        yield from names
        named = {place for meant in names for place in meant.places}
        latin = [place for place in self._unheld.values() if _LATIN.match(self._features.words[place])]
        latin = [place for place in latin if place not in named]
        in_pinyin = list(self._typed(latin)) if latin else []
        yield from in_pinyin
        # Only with an unknown pair of characters; a known pair may span two words.
        if any(map(is_han, self._unheld)):
            yield from self._read(question)
        taken = {place for meant in in_pinyin for place in meant.places}
        misspelt = [place for place in latin if place not in taken]
        if len(misspelt) <= MOST_MISSPELT:
            for place in misspelt:
                yield from self._misspelt(place)

    def _spelt_otherwise(self, places: Sequence[int]) -> Iterator[CorrectedWord]:
        """Yield the project's names that are those of the query in another case."""
        words, unheld = self._features.words, self._unheld.values()
        others = {place: other_spellings(words[place]) for place in places}
        held = self._held([term for spellings in others.values() for term in spellings])
        for place, spellings in others.items():
            asked, is_held = words[place], place not in unheld
            for term in spellings:
                if term in held:
                    yield CorrectedWord(
                        asked=asked, word=term, terms=(term,), places=(place,), is_name=True, is_held=is_held
                    )

    def _typed(self, places: list[int]) -> Iterator[CorrectedWord]:
        """Chinese words that are typed in pinyin: in one word, or in several of a syllable each."""
        run: list[int] = []
        for place in places:
            word = self._features.words[place].lower()
            if run and place != run[-1] + 1:
                yield from self._typed_apart(run)
                run = []
            if word in characters_by_syllable() and word not in ENGLISH_STOP_WORDS:
                run.append(place)
                continue
            yield from self._typed_apart(run)
            run = []
            cuts = syllables_of(word) if _LATIN.fullmatch(word) else iter(())
            yield from next(filter(None, (list(self._written(cut, [place])) for cut in cuts if len(cut) > 1)), [])
        yield from self._typed_apart(run)

    def _typed_apart(self, run: list[int]) -> Iterator[CorrectedWord]:
        if 1 < len(run) <= MOST_SYLLABLES:
            yield from self._written([self._features.words[place].lower() for place in run], run)

    def _written(self, syllables: Sequence[str], places: list[int]) -> Iterator[CorrectedWord]:
        """Yield the project's Chinese words with this reading, the most frequent first."""
        words: dict[str, int] = {"": 0}
        for syllable in syllables:
            characters = self._held(list(characters_by_syllable()[syllable]))
            longer = [word + character for word in words for character in characters][:_MOST_WRITTEN]
            held = self._held([word[-2:] for word in longer])
            words = {word: held[word[-2:]] for word in longer if word[-2:] in held}
        asked = " ".join(self._features.words[place] for place in places)
        for word in sorted(words, key=lambda each: (-words[each], each))[:MOST_MEANT]:
            yield CorrectedWord(asked=asked, word=word, terms=tuple(query_terms(word)), places=tuple(places))

    def _read(self, question: Question) -> Iterator[CorrectedWord]:
        """Pinyin that memories hold for short Chinese words that none holds."""
        readings = {word: _terms_of(readings_of(word)) for word in self._unheld_words(question)}
        held = self._held([term for forms in readings.values() for term in forms])
        for word, forms in readings.items():
            places = tuple([self._unheld[term] for term in dict.fromkeys(pairs(word))])
            for term in forms:
                if term in held:
                    yield CorrectedWord(asked=word, word=forms[term], terms=(term,), places=places)

    def _unheld_words(self, question: Question) -> Iterator[str]:
        """Yield Chinese words of the text of which no memory holds a pair of characters."""
        for token in TOKEN.finditer(question.simplified):
            for word in pieces(token["cjk"]) if token["cjk"] else ():
                if len(word) > 1 and self._unheld.keys() >= set(pairs(word)):
                    yield word

    def _misspelt(self, place: int) -> Iterator[CorrectedWord]:
        """Yield words of the project one edit away: with letters swapped, else the most frequent ones."""
        word, term = self._features.words[place], self._features.terms[place]
        if not may_be_misspelt(word) or word.lower() in ENGLISH_STOP_WORDS:
            return
        found = self._among(_terms_of(exchanged(word)))
        is_sure = bool(found) or len(query_terms(word)) > 1
        if not found and len(term) >= LEAST_FOR_ALL:
            found = self._among(_terms_of(respelt(word)))
            behind = self._project.terms_with_prefix(term[:SHARED_PREFIX], _MOST_COMPARED)
            found |= {other: (behind[other], other) for other in one_slip_away(term, behind.keys())}
        for other in sorted(found, key=lambda each: (-found[each][0], each))[:MOST_MEANT]:
            yield CorrectedWord(asked=word, word=found[other][1], terms=(other,), places=(place,), is_sure=is_sure)

    def _among(self, forms: dict[str, str]) -> dict[str, tuple[int, str]]:
        """The terms that the project holds, each with its count and its word."""
        return {term: (count, forms[term]) for term, count in self._held(list(forms)).items()}

    def _held(self, terms: Sequence[str]) -> dict[str, int]:
        if not terms:
            return {}
        counts = self._project.holders(terms)
        return {term: count for term, count in zip(terms, counts, strict=True) if count}


def _terms_of(forms: Iterable[str]) -> dict[str, str]:
    """Ways to write a word by their terms; of two that have the same the later."""
    words = list(forms)
    return dict(zip(first_terms(words), words, strict=True))


def with_spelling(features: QueryFeatures, meant: tuple[CorrectedWord, ...]) -> QueryFeatures:
    """The features with the corrections to search for; of a name in another case they are what holders hold."""
    stands_for: dict[str, int] = {}
    same_name: dict[str, str] = {}
    for each in meant:
        for term in each.terms:
            if term not in features.terms:
                bits = sum(1 << place for place in each.places) if each.is_sure else 0
                stands_for[term] = stands_for.get(term, 0) | bits
                if each.is_name and not each.is_held:
                    same_name[term] = features.terms[each.places[0]]
    terms = tuple(stands_for)[:MAX_TERMS]
    if not terms:
        return features
    spelling = Spelling(
        terms=terms,
        weights=np.array([1.0 if term in same_name else WEIGHT for term in terms], np.float32),
        stands_for=np.array([stands_for[term] for term in terms], np.uint32),
    )
    as_held = {asked: term for term, asked in same_name.items()}
    name_terms = tuple([as_held.get(term, term) for term in features.name_terms])
    return replace(features, meant=meant, spelling=spelling, name_terms=name_terms)


def with_corrections(found: Candidates, features: QueryFeatures, text: str) -> Candidates:
    """Add matches of corrected words to the candidates' word scores.

    A candidate that holds a content word of the query gains by them. All others get a lower word score than each of
    those; of a name that is held as it was asked, all that hold it in another case only. Only sure corrections are
    evidence.
    """
    said, spelling = found.spelt, features.spelling
    if said is None or spelling is None:
        return found
    telling_places = {place for each in features.meant if each.is_held for place in each.places}
    if not telling_places:
        tells = content_weights(features.terms, [question_of(text)]) > 0
        telling_places = set(np.flatnonzero(tells).tolist())
    telling = np.uint32(sum(1 << place for place in telling_places))
    holds, is_meant = found.matched & telling != 0, said.keyword > 0
    keyword = found.keyword + said.keyword
    is_weak = is_meant & ~holds
    if holds.any() and is_weak.any():
        most = BEHIND * found.keyword[holds].min()
        keyword[is_weak] *= min(1.0, float(most / keyword[is_weak].max()))
    return replace(
        found, keyword=keyword.astype(np.float32), matched=found.matched | stood_for(said.held, spelling.stands_for)
    )


def own_words(features: QueryFeatures) -> int:
    """The bits of the query's terms that some memory holds; a hit does not hold the corrected ones themselves."""
    spelling = features.spelling
    if spelling is None:
        return ~0
    held = {place for each in features.meant if each.is_held for place in each.places}
    return ~int(np.bitwise_or.reduce(spelling.stands_for)) | sum(1 << place for place in held)


def corrections(held: int, features: QueryFeatures, memory: Memory) -> tuple[Correction, ...]:
    """The corrections that a hit holds, given the bits of their terms, each once."""
    if not held or features.spelling is None:
        return ()
    terms = {term for place, term in enumerate(features.spelling.terms) if held >> place & 1}
    pairs = {(each.asked, _as_written(each, memory)): None for each in features.meant if terms.issuperset(each.terms)}
    return tuple(Correction(asked=asked, meant=meant) for asked, meant in pairs)


def _as_written(meant: CorrectedWord, memory: Memory) -> str:
    """The corrected word as the memory writes it; as it was searched for if it is not found there."""
    content = memory.payload.content if memory.payload else ""
    text = nfkc("\n".join((memory.index.title, memory.index.summary, content))[:_LOOKED_THROUGH])
    begin = simplified(text).find(meant.word)
    if begin >= 0 and not meant.word.isascii():
        return text[begin : begin + len(meant.word)]
    stem = meant.terms[0][:-1]
    words = (match.group() for match in re.finditer(rf"(?<![^\W_]){re.escape(stem)}[\w-]*", text, re.IGNORECASE))
    return next((word for word in words if query_terms(word)[:1] == [meant.terms[0]]), meant.word)
