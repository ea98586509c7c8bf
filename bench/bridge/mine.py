"""`python -m bench.bridge.mine MINED.tsv < PAIRS`: Chinese terms with their English words, out of sentences in both.

A line of PAIRS is a JSON object with `zh` and `en`. Words are aligned in both directions; a word stays with a term
where either is likely given the other. Needs jieba, which nothing else here does: `pip install jieba`.

Source: Brown et al., Computational Linguistics 19(2), 1993 (IBM model 1).
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hummock.text.analyzer import stem
from hummock.text.glossary import MAX_WORDS
from hummock.text.word_lists import ENGLISH_STOP_WORDS, GLOSS_STOP_WORDS

ROUNDS = 6
LEAST_COUNT = 3
"""Sentences that hold a term."""

LEAST_SCORE = 0.12
"""Lowest score of a word: the geometric mean of both probabilities."""

MOST_TOKENS = 40
"""Longer sentences say little about which word is which."""

LEAST_SHARE_OF_FORMS = 0.2
"""Smallest share of the texts with a stem in which a form must occur to be shown; the shortest such form is."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SAY_LITTLE = _words(
    """
    about above after all also although always another any because before below between both but different does during
    each even every example given however instead just know let like many may more most much must need never new no not
    now often once one only other otherwise over same see several since some still such then therefore though through
    thus two under until upon use used using very via want way well while without work works yet
    """
)
"""English words that a term is never looked for by."""

_HAN = re.compile(r"[\u4e00-\u9fff]+")
_WORD = re.compile(r"[a-z][a-z]+")
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corpus:
    """Sentences as pairs of term and stem that stand in the same one.

    Attributes:
        terms: Spelling of the terms, by number.
        stems: Spelling of the stems, by number.
        term: (n,) number of each pair's term.
        stem: (n,) number of its stem.
        term_place: (n,) equal for pairs of one term of one sentence.
        stem_place: (n,) equal for pairs of one stem of one sentence.
        count: (terms,) sentences with each.
        forms: How often each stem has each form.
    """

    terms: list[str]
    stems: list[str]
    term: Ids
    stem: Ids
    term_place: Ids
    stem_place: Ids
    count: Ids
    forms: list[Counter[str]]


def corpus(lines: Iterable[str]) -> Corpus:
    """The sentences that are short enough, cut into words; those that say nothing are left out."""
    cut = importlib.import_module("jieba").cut
    terms: dict[str, int] = {}
    stems: dict[str, int] = {}
    forms: list[Counter[str]] = []
    columns: list[list[int]] = [[], [], [], []]
    counts: Counter[int] = Counter()
    places = [0, 0]
    for line in lines:
        pair = json.loads(line)
        chinese = {word for word in cut(pair["zh"]) if _HAN.fullmatch(word) and word not in GLOSS_STOP_WORDS}
        english = {word for word in _WORD.findall(pair["en"].lower()) if word not in ENGLISH_STOP_WORDS | _SAY_LITTLE}
        if not chinese or not english or max(len(chinese), len(english)) > MOST_TOKENS:
            continue
        theirs = [terms.setdefault(word, len(terms)) for word in sorted(chinese)]
        ours = []
        for word in sorted(english):
            number = stems.setdefault(stem(word), len(stems))
            if number == len(forms):
                forms.append(Counter())
            forms[number][word] += 1
            ours.append(number)
        ours = sorted(set(ours))
        counts.update(theirs)
        for i, term in enumerate(theirs):
            for j, number in enumerate(ours):
                for column, value in zip(columns, (term, number, places[0] + i, places[1] + j), strict=True):
                    column.append(value)
        places[0] += len(theirs)
        places[1] += len(ours)
    term_of, stem_of, term_place, stem_place = (np.array(column, np.int64) for column in columns)
    return Corpus(
        terms=list(terms),
        stems=list(stems),
        term=term_of,
        stem=stem_of,
        term_place=term_place,
        stem_place=stem_place,
        count=np.array([counts[number] for number in range(len(terms))], np.int64),
        forms=forms,
    )


def aligned(given: Ids, said: Ids, said_place: Ids) -> tuple[Ids, NDArray[np.float64]]:
    """Pairs that are each other's first, and for each the probability of what is said given the other.

    Args:
        given: (n,) numbers.
        said: (n,) numbers, each explained by one of the `given` of its sentence.
        said_place: (n,) equal where the same word of one sentence is explained.
    """
    keys, first, unique = np.unique(given * (said.max() + 1) + said, return_index=True, return_inverse=True)
    probability = np.ones(len(keys))
    for _ in range(ROUNDS):
        by_pair = probability[unique]
        expected = np.bincount(unique, by_pair / np.bincount(said_place, by_pair)[said_place])
        probability = expected / np.bincount(given[first], expected)[given[first]]
    return first, probability


def rows(found: Corpus) -> Iterable[tuple[str, str, float, int]]:
    """Term, word, probability and count; the most frequent terms first."""
    first, forward = aligned(found.term, found.stem, found.stem_place)
    # The same pairs, in another order.
    other, backward = aligned(found.stem, found.term, found.term_place)
    backwards = dict(
        zip(zip(found.term[other].tolist(), found.stem[other].tolist(), strict=True), backward, strict=True)
    )
    best: dict[int, list[tuple[float, int]]] = {}
    for row, likely in zip(first.tolist(), forward.tolist(), strict=True):
        term, word = int(found.term[row]), int(found.stem[row])
        if found.count[term] >= LEAST_COUNT and np.sqrt(likely * backwards[term, word]) >= LEAST_SCORE:
            best.setdefault(term, []).append((likely, word))
    for term in sorted(best, key=lambda term: (-found.count[term], found.terms[term])):
        for likely, word in sorted(best[term], key=lambda each: (-each[0], each[1]))[:MAX_WORDS]:
            yield found.terms[term], shown(found.forms[word]), likely, int(found.count[term])


def shown(forms: Counter[str]) -> str:
    """The shortest form of a stem that is met often enough."""
    total = forms.total()
    often = [word for word, count in forms.items() if count >= LEAST_SHARE_OF_FORMS * total]
    return min(often, key=lambda word: (len(word), word))


def main(arguments: Sequence[str]) -> None:
    """Mine the lines of standard input."""
    (target,) = map(Path, arguments)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE)
        writer.writerow(["zh", "word", "p", "count"])
        writer.writerows((term, word, f"{p:.3f}", count) for term, word, p, count in rows(corpus(sys.stdin)))


if __name__ == "__main__":
    main(sys.argv[1:])
