"""The query in the forms that the paths need, and with its plan as questions for the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Bridge, GroupQuery, Spelling
from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.recall import CAPPED, GroupPlan, Intent, Plan, RecallPath, RecallQuery
from hummock.recall.plan import ALL_KINDS, DOMAINS, KEEPS_ALL
from hummock.text.analyzer import query_terms
from hummock.text.glossary import Gloss
from hummock.text.keywords import content_weights
from hummock.text.likeness import echo_and_stem
from hummock.text.normalise import CJK, code, known_share, normal_hash, prose, short_hash
from hummock.text.question import Question, question_of
from hummock.text.signs import NAMED, has_sign

MAX_TERMS = 32
"""Terms of a query that are scored; each has one bit of `Candidates.matched`."""

MOST_WEIGHED = 1024
"""Terms of a long query among which the rarest are chosen; later ones are ignored."""

_MARKS = ("", "?", "!", ".", "。")

_WORD_OF_CODE = re.compile(r"[A-Za-z0-9_$.:#-]+")
_CJK_RUN = re.compile(f"[{CJK}]+")
_NAME_CHARACTERS = re.compile(rf"[\w$@#.:/+*{NAMED}-]{{1,64}}")
_CJK_NAME_CHARACTERS = range(2, 5)
_NO_WEIGHTS: NDArray[np.float32] = np.empty(0, np.float32)
_JOINT = re.compile(r"[A-Za-z0-9][_$.:#]+[A-Za-z0-9]|[A-Za-z]-[A-Za-z]|[a-z][A-Z]|[A-Za-z][0-9]|^_[A-Za-z]")


_NO_TOKENS: NDArray[np.int8] = np.empty((0, 0), np.int8)


class CorrectedWord(Struct, frozen=True, kw_only=True):
    """A correction: an indexed word that an unknown word of the query may stand for.

    Attributes:
        asked: The query's word or words, as written.
        word: The indexed word.
        terms: Terms of the indexed word.
        places: Indexes of the query's unknown terms.
        is_sure: Whether the query's word is unlikely to be a different word that only resembles the indexed one.
        is_name: Whether both are one name of code, in camel, snake or kebab case.
        is_held: Whether memories hold the query's word as well.
    """

    asked: str
    word: str
    terms: tuple[str, ...]
    places: tuple[int, ...]
    is_sure: bool = True
    is_name: bool = False
    is_held: bool = False


class QueryFeatures(Struct, frozen=True, kw_only=True, eq=False):
    """The query in the forms that the paths need.

    Attributes:
        vector: (dim,) float32 unit vector; None when there is none.
        tokens: (q, token_dim) int8 token vectors for late interaction; empty if it does not run.
        terms: Analysed terms, unique, at most MAX_TERMS.
        words: The word of each term, as the query first writes it, in NFKC.
        term_weights: (t,) float32 in [0, 1], how much content each carries; (0,) if not needed.
        domain_names: Domains that the caller named, normalised as prose.
        domain_text: Text in which domain names are searched; empty when the caller named some.
        echoes: Returns the hashes of the texts that count as an echo of the query, made at the first call.
        exact_name: The query if it is one name, of code or of few Chinese characters, or the sign that it asks about;
            empty for any other.
        name_terms: All terms of `exact_name`.
        is_name: Whether the query is one compound name of code, such as `parse_date` or `Repayment.interest`.
        known_share: Share of the query, in [0, 1], that the model knows: letters by their script, no signs.
        is_han: Whether the query has Chinese characters.
        han_share: Share of its words in Chinese characters, in [0, 1].
        gloss: The query in words of another language; None if it is not translated.
        bridge: Vector and terms of the translation, for texts not in the query's language; None without a gloss.
        bridge_tokens: Token vectors of the translation, as `tokens`.
        meant: Corrections of words that no memory holds.
        spelling: The search terms of these corrections; None if there are none.
    """

    vector: NDArray[np.float32] | None
    tokens: NDArray[np.int8]
    terms: tuple[str, ...]
    words: tuple[str, ...]
    term_weights: NDArray[np.float32]
    domain_names: frozenset[str]
    domain_text: str
    echoes: Callable[[], frozenset[int]]
    exact_name: str
    name_terms: tuple[str, ...]
    is_name: bool
    known_share: float
    is_han: bool
    han_share: float = 0.0
    gloss: Gloss | None = None
    bridge: Bridge | None = None
    bridge_tokens: NDArray[np.int8] = _NO_TOKENS
    meant: tuple[CorrectedWord, ...] = ()
    spelling: Spelling | None = None


def query_features(
    query: RecallQuery,
    question: Question,
    plan: Plan,
    intent: Intent | None,
    embedding: Embedding | None,
    space: EmbeddingSpace,
    rarest: Callable[[Sequence[str], int], tuple[str, ...]],
) -> QueryFeatures:
    """Compute the features of a query.

    Args:
        query: The query.
        question: Its text.
        plan: The plan of the recall.
        intent: Its intent, from the caller or a language model; None without one.
        embedding: Its vectors; None if there are none.
        space: The embedder's space.
        rarest: Picks the terms that the fewest memories of the project hold, at most the given number.
    """
    named = intent or Intent()
    names_all = query.intent is not None and bool(query.intent.domains)
    keywords = [*map(question_of, named.keywords)]
    words = {} if plan.substrings else _words(*keywords, question)
    terms = plan.substrings or tuple(words)
    if not plan.substrings and (keywords or len(terms) > MAX_TERMS):
        terms = _looked_for(tuple(_words(*keywords))[:MAX_TERMS], terms, rarest)
    told_by_words, sign = _words_and_sign(terms, words, question) if question.has_sign else (1.0, "")
    is_one_word = " " not in query.text.strip()
    name = (exact_name(query.text) if is_one_word else "") or sign
    is_bounded = plan.min_similarity > KEEPS_ALL and not plan.substrings
    return QueryFeatures(
        vector=None if embedding is None else embedding.vector,
        tokens=embedding.tokens if embedding is not None and plan.late_interaction else space.no_tokens(),
        terms=terms,
        words=tuple([words.get(term, term) for term in terms]),
        term_weights=content_weights(terms, [*keywords, question]) if is_bounded else _NO_WEIGHTS,
        domain_names=frozenset(map(prose, named.domains)),
        domain_text="" if names_all else query.text,
        echoes=cache(partial(echo_hashes, query.text)),
        exact_name=name,
        name_terms=tuple(dict.fromkeys(query_terms(name)))[:MAX_TERMS] if name else (),
        is_name=is_one_word and is_name(query.text),
        known_share=known_share(question.scripts, space.scripts) * told_by_words,
        is_han=question.is_han,
        han_share=question.han_share,
    )


def _words_and_sign(terms: tuple[str, ...], words: dict[str, str], question: Question) -> tuple[float, str]:
    """Return the share of a query's weight outside signs such as emoji, which models confuse, and its sign.

    The sign is returned if all other words are common ones ("what does 🦄 mean?"); empty for any other query.
    """
    weights = dict(zip(terms, content_weights(terms, (question,)).tolist(), strict=True))
    signs = {words.get(term, term) for term in terms if has_sign(term)}
    of_words = [weight for term, weight in weights.items() if not has_sign(term)]
    share = sum(of_words) / (sum(weights.values()) or 1.0) if signs else 1.0
    asks_about_it = len(signs) == 1 and max(of_words, default=0.0) < 1.0
    return share, next(iter(signs)) if asks_about_it else ""


def group_queries(plan: Plan, features: QueryFeatures) -> list[GroupQuery]:
    """One query for each group, in the plan's order."""
    return [_group_query(plan, group, features) for group in plan.groups]


def looks_up_words(plan: Plan) -> bool:
    """Whether any group is searched for terms of the query."""
    return not plan.substrings and RecallPath.KEYWORD in {path for group in plan.groups for path in group.paths}


def _group_query(plan: Plan, group: GroupPlan, features: QueryFeatures) -> GroupQuery:
    looks_up = RecallPath.KEYWORD in group.paths and not plan.substrings
    return GroupQuery(
        name=group.name,
        filter=plan.filter if group.kinds == ALL_KINDS else replace(plan.filter, kinds=group.kinds),
        window=plan.window,
        vector=features.vector if RecallPath.VECTOR in group.paths else None,
        terms=features.terms if RecallPath.KEYWORD in group.paths else (),
        exact_name=features.exact_name if looks_up else "",
        name_terms=features.name_terms if looks_up else (),
        substrings=plan.substrings if RecallPath.KEYWORD in group.paths else (),
        domain_names=features.domain_names if RecallPath.DOMAIN in group.paths else frozenset(),
        domain_text=features.domain_text if RecallPath.DOMAIN in group.paths else "",
        pool=group.pool,
        with_key_files=group.with_key_files,
        include_superseded=plan.include_superseded,
        times=tuple([(each.start, each.end) for each in plan.times]) if plan.neighbours else (),
        with_neighbours=plan.neighbours,
        with_tokens=len(features.tokens) > 0 or len(features.bridge_tokens) > 0,
        bridge=_group_bridge(group, features.bridge) if features.bridge is not None else None,
        spelling=features.spelling if looks_up else None,
        with_others=plan.writer_cap < CAPPED and group.name != DOMAINS,
    )


def echo_hashes(text: str) -> frozenset[int]:
    """Hashes of the texts that repeat the query, also as rows of earlier versions have them."""
    (echo, tailless), whole = echo_and_stem(text), prose(text)
    echoes = {echo, code(text)}
    # Rows of text with signs are folded as prose and keep final marks.
    if echo == prose(echo):
        stem = prose(tailless)
        echoes |= {whole, *([f"{stem}{mark}" for mark in _MARKS] if stem else ())}
    return frozenset([short_hash(normal_hash(form)) for form in echoes])


def _group_bridge(group: GroupPlan, bridge: Bridge) -> Bridge | None:
    """The query's bridge for the paths that the group has."""
    if RecallPath.KEYWORD not in group.paths:
        return None
    return bridge if RecallPath.VECTOR in group.paths else replace(bridge, vector=None, prose=None)


def is_name(text: str) -> bool:
    """Whether a text is one compound name in ASCII, as in code: joined words, camel case or numbered."""
    word = text.strip()
    return _WORD_OF_CODE.fullmatch(word) is not None and _JOINT.search(word) is not None


def exact_name(text: str) -> str:
    """Return the text if it is one name, which is looked up if few memories hold it. Empty for any other.

    A name has no space in it, and of Chinese two to four characters between its joints: a longer run is a sentence. An
    emoji is a name as well.
    """
    word = text.strip()
    if not _NAME_CHARACTERS.fullmatch(word):
        return ""
    runs = _CJK_RUN.findall(word)
    return word if all(len(run) in _CJK_NAME_CHARACTERS for run in runs) else ""


def _looked_for(
    named: tuple[str, ...], asked: tuple[str, ...], rarest: Callable[[Sequence[str], int], tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the named terms, then the query's; for a long query only the rarest of these."""
    both = tuple(dict.fromkeys((*named, *asked)))
    if len(both) <= MAX_TERMS:
        return both
    return named + rarest(both[len(named) : MOST_WEIGHED], MAX_TERMS - len(named))


def _words(*questions: Question) -> dict[str, str]:
    """The terms of texts, each once, with the word of its first occurrence."""
    words: dict[str, str] = {}
    for question in questions:
        for term, word in question.words:
            words.setdefault(term, word)
    return words
