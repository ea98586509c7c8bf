"""Translates Chinese text into English words, term by term: enough to find English texts, but no fluent translation.

The glossary is a versioned data file of the package (`glossaries/`): a line a term, with how often it was met where it
was learnt from, and its English words with their probabilities. `NOTICE` says whose texts those were;
`bench/bridge` makes it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from msgspec import Struct

from hummock.text.analyzer import query_terms
from hummock.text.question import Question
from hummock.text.word_lists import GLOSS_STOP_WORDS

_MET: Final = {
    60_000: "的",
    15_000: "在 和 是",
    10_000: "一个",
    9_000: "中",
    8_000: "为",
    6_000: "不 了 将",
    3_000: "个",
}
FREQUENCIES: Final = {word: count for count, words in _MET.items() for word in words.split()}
"""How often the most frequent ones are met among as many words as the glossary's counts are of."""

GLOSSARY_VERSION: Final = "zh-en.v1"
GLOSSARY_SHA256: Final = "f05880fc5f9f9846f2019a8607f576f2dadebbe9b7f47f636d75ba417f068c9d"

MAX_WORDS: Final = 3
"""English words that a term has at most."""

ALTERNATIVE_WEIGHT: Final = 0.5
"""Upper bound on the weight of a term's alternative words, those after its likeliest one."""

MAX_CHARACTERS: Final = 400
"""Characters of a text that are translated; of a longer one the beginning and the end are read."""

LONGEST_TERM: Final = 8
"""Characters of a Chinese term."""

_WORDS_OF_COUNTS: Final = 1.5e6
"""In the texts that counts are of."""
_UNKNOWN_COST: Final = 17.0
"""Cost of a character that no term holds: more than that of the rarest term."""
_FREQUENT_STOP: Final = 2000
_FREQUENT_OWN: Final = 2000
"""A project's own term is read before two others that it consists of, and not across words that say nothing."""

_LEAST_LONE: Final = 0.6
"""Probability that the word of a single character needs: most mean too many things."""

_PIECE = re.compile(r"(?P<han>[\u3400-\u4dbf\u4e00-\u9fff]+)|[A-Za-z0-9_](?:[\w.+#/-]*[\w+#])?", re.ASCII)

_TERM, _STOP, _UNKNOWN = 1, 2, 3
"""Kinds of pieces: terms, words that say nothing, and characters that no term holds."""

Word = tuple[str, float]
"""English words and their probability."""


_BEGINNING: Final = (math.inf, _UNKNOWN)
"""It costs more than any way to cut a run."""


class GlossaryDamaged(Exception):
    """The data file is not the one that this version was made with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glossary:
    """Terms with their words, the likeliest first.

    Attributes:
        version: Identifies the content.
        words: Words of each term.
        pieces: Possible pieces of a Chinese run: the negative logarithm of its frequency, and its kind; and all
            beginnings of these, as _BEGINNING where they are no piece, to stop a search early.
    """

    version: str
    words: Mapping[str, tuple[Word, ...]]
    pieces: Mapping[str, tuple[float, int]]


class Concept(Struct, frozen=True, kw_only=True):
    """A term of a text, in simplified characters, and its words in the other language, the likeliest first.

    `terms` are the source's terms of the keyword index. `stems` are those of its words, each once; `weights` are
    theirs, in (0, 1], 1 for those of the likeliest word.
    """

    source: str
    terms: tuple[str, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    weights: tuple[float, ...]


class Gloss(Struct, frozen=True, kw_only=True):
    """A text translated word by word into another language.

    Attributes:
        text: The words in the order of the text, each once, including Latin words of a Chinese text.
        concepts: The terms that were found, each once.
        version: Version of the glossary.
        is_chinese: Whether these words are Chinese, else English.
    """

    text: str
    concepts: tuple[Concept, ...]
    version: str
    is_chinese: bool = False


@cache
def glossary() -> Glossary:
    """The one of the package; read on first use. Raises: GlossaryDamaged."""
    content = resources.files("hummock.text").joinpath("glossaries", f"{GLOSSARY_VERSION}.tsv").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != GLOSSARY_SHA256:
        raise GlossaryDamaged(f"the glossary {GLOSSARY_VERSION} has the SHA-256 {digest}, not {GLOSSARY_SHA256}")
    return read_glossary(content.decode("utf-8"))


def read_glossary(text: str) -> Glossary:
    """The glossary that a file holds; its version is that of the first line, with the beginning of the file's hash."""
    first, *lines = text.splitlines()
    words: dict[str, tuple[Word, ...]] = {}
    counts: dict[str, int] = {}
    for line in lines:
        term, count, *said = line.split("\t")
        counts[term] = int(count)
        words[term] = tuple((word, float(p)) for word, p in (each.rsplit(":", 1) for each in said))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return Glossary(version=f"{first.removeprefix('# ')}:{digest[:12]}", words=words, pieces=_pieces(words, counts))


def joined(known: Glossary, own: Mapping[str, tuple[str, ...]]) -> Glossary:
    """Add a project's own terms, with English words by Chinese term; these come before existing ones."""
    words, pieces = dict(known.words), dict(known.pieces)
    for term, said in own.items():
        given = {word.casefold() for word in said}
        rest = tuple(word for word in known.words.get(term, ()) if word[0].casefold() not in given)
        words[term] = (*((word, 1.0) for word in said), *rest)
        pieces[term] = (-math.log(_FREQUENT_OWN / _WORDS_OF_COUNTS), _TERM)
        for beginning in _beginnings(term):
            pieces.setdefault(beginning, _BEGINNING)
    digest = hashlib.sha256(repr(sorted(own.items())).encode("utf-8")).hexdigest()
    return Glossary(version=f"{known.version}+own:{digest[:12]}", words=words, pieces=pieces)


def _beginnings(piece: str) -> list[str]:
    return [piece[:length] for length in range(1, len(piece))]


def gloss(question: Question, known: Glossary | None = None) -> Gloss | None:
    """Translate a text into English words, by this glossary or the package's; None if it has no known term.

    A Chinese run is cut in the likeliest way, by the frequencies of terms and stop words; an unknown compound is thus
    split into its parts.
    """
    known = known or glossary()
    said: dict[str, None] = {}
    found: dict[str, None] = {}
    for piece in _PIECE.finditer(bounded_text(question.simplified)):
        if not piece["han"]:
            said[piece.group()] = None
            continue
        for part, is_term in _cut(piece.group(), known):
            if is_term:
                found[part] = None
                said[known.words[part][0][0]] = None
    if not found:
        return None
    return Gloss(
        text=" ".join(said), concepts=tuple(_concept(term, known.words[term]) for term in found), version=known.version
    )


def bounded_text(text: str) -> str:
    """The beginning and the end of a long text."""
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[:half]} {text[-half:]}"


def _cut(run: str, known: Glossary) -> list[tuple[str, bool]]:
    """The pieces of a Chinese run that say something: terms, and characters that no term holds; in its order."""
    pieces, length = known.pieces, len(run)
    # The least cost up to each place, and the last piece there: where it begins and its kind.
    costs, starts, kinds = [0.0, *[math.inf] * length], [0] * (length + 1), [_STOP] * (length + 1)
    for start in range(length):
        cost, end = costs[start], start + 1
        if cost + _UNKNOWN_COST <= costs[end]:
            costs[end], starts[end], kinds[end] = cost + _UNKNOWN_COST, start, _UNKNOWN
        while end <= length and (piece := pieces.get(run[start:end])) is not None:
            if cost + piece[0] < costs[end]:
                costs[end], starts[end], kinds[end] = cost + piece[0], start, piece[1]
            end += 1
    found: list[tuple[str, bool]] = []
    end = length
    while end:
        if kinds[end] != _STOP:
            found.append((run[starts[end] : end], kinds[end] == _TERM))
        end = starts[end]
    return found[::-1]


def _pieces(words: Mapping[str, tuple[Word, ...]], counts: Mapping[str, int]) -> dict[str, tuple[float, int]]:
    """Return the possible pieces of a run with their costs. A stop word is never a term."""
    taken = {term: counts[term] for term, said in words.items() if len(term) > 1 or said[0][1] >= _LEAST_LONE}
    terms = {term: (-math.log(count / _WORDS_OF_COUNTS), _TERM) for term, count in taken.items()}
    stops = {word: FREQUENCIES.get(word, _FREQUENT_STOP) for word in GLOSS_STOP_WORDS}
    pieces = terms | {word: (-math.log(count / _WORDS_OF_COUNTS), _STOP) for word, count in stops.items()}
    return {beginning: _BEGINNING for piece in pieces for beginning in _beginnings(piece)} | pieces


@lru_cache(1 << 12)
def _concept(term: str, words: tuple[Word, ...]) -> Concept:
    weights: dict[str, float] = {}
    greatest = words[0][1]
    for place, (word, probability) in enumerate(words[:MAX_WORDS]):
        weight = ALTERNATIVE_WEIGHT * min(1.0, math.sqrt(probability / greatest)) if place else 1.0
        for stem in query_terms(word):
            weights.setdefault(stem, weight)
    return Concept(
        source=term,
        terms=tuple(query_terms(term)),
        words=tuple(word for word, _ in words[:MAX_WORDS]),
        stems=tuple(weights),
        weights=tuple(weights.values()),
    )
