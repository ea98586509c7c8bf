"""Search across languages: translates the words of a query, and scores candidates in the other language by that.

Stored memories stay as they are. The translation of a Chinese query is read by the model that knows English; for any
other query the model that knows Chinese reads the query itself. The translated words are searched for alongside those
of the query. Each candidate is scored in its own language: candidates in the query's language as if there were no
translation, all others by the translation. Source of the numbers: docs/decisions/034.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Bridge, Bridged, Candidates, Credit, FoundBy
from hummock.core.embedding import Across, Embedding, EmbeddingSpace
from hummock.core.memory import MemoryKind
from hummock.core.project import GivenNames
from hummock.core.recall import GlossedTerm, KeywordMode, Plan, RecallQuery
from hummock.ports.store import Snapshot
from hummock.recall.plan import joins_paths, kinds_of
from hummock.recall.query_features import MAX_TERMS, QueryFeatures, is_name
from hummock.recall.rerank import late_scores
from hummock.text.glossary import Gloss
from hummock.text.inverse_glossary import NO_OWN_TERMS, OwnTerms, own_terms
from hummock.text.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Weights of a translated query for texts of its language.

    Attributes:
        unrelated_prose: Its cosine with unrelated prose; similarity counts from there, unless the space reads across.
        prose_share: Its share in the similarity of prose; the original query has the rest.
        prose_words: Added to that similarity for the best match of the translated words. Scored as words instead, poor
            matches of the original query would set the weight of all words.
        unrelated_code: Its cosine with unrelated code. Code takes the better of both similarities, since its comments
            may be in the query's language.
        code_words: Added to the similarity of code for the best match of the translated words.
    """

    prose_share: float
    prose_words: float
    unrelated_prose: float = 0.0
    unrelated_code: float = 0.0
    code_words: float = 0.0


# A word that was glossed wrongly says more in prose than one of code does.
TO_ENGLISH = Scale(unrelated_code=0.15, unrelated_prose=0.05, prose_share=0.3, code_words=0.15, prose_words=0.08)
# Measured with bge-small-zh on English questions; there is no Chinese code.
TO_CHINESE = Scale(unrelated_prose=0.3, prose_share=1.0, prose_words=0.2)
# With a model that reads all languages and is not misled by the script; the space knows its cosines.
ACROSS_TO_ENGLISH = Scale(prose_share=1.0, code_words=0.15, prose_words=0.08)
ACROSS_TO_CHINESE = Scale(prose_share=1.0, prose_words=0.2)

ENOUGH = 0.5
"""Share of the translated part of the query from which a match counts in full; less counts proportionally."""

MOSTLY = 0.6
"""Share of Chinese from which a query is translated; a query that is half English names its subject in English."""

HALF = 0.5
"""Share of Chinese from which a query is a Chinese one to a space that reads across."""

OF_AS_SIMILAR = 0.6
"""Share of the scores of texts in the query's own language that one as similar in the other language is credited with,
at most."""

_TABLES_KEPT = 64
"""Number of most recently used projects whose tables are cached."""
_ANY_ENGLISH = ("the", "a", "is", "to", "of", "and", "in", "for", "return", "if", "import", "def", "fun", "class")


def gloss_of(query: RecallQuery, question: Question, project: Snapshot, space: EmbeddingSpace) -> Gloss | None:
    """Translate the words of a query; None if no term is known, or if no memory is in the other language.

    Where a model reads all languages, a query without known terms has a translation without words: the query itself.

    The project's own terms, named in both languages, are included. A query that is mostly Chinese is translated to
    English, unless the project holds nothing but Chinese: its memories say so, or it holds none of the translated words
    and none of the most frequent ones. A query without any Chinese is translated to Chinese where two models make the
    space, unless it is a name, if the project holds one of the translated words. A query for one path alone, or for
    substrings, gets that path's order and no translation (1.1-10).
    """
    if not joins_paths(query) or query.keyword_mode is not KeywordMode.TERMS:
        return None
    to_chinese = question.han_share < HALF if space.across else not question.is_han
    if to_chinese and (not space.token_mark or is_name(query.text)):
        return None
    if not to_chinese and not space.across and question.han_share < MOSTLY:
        return None
    if not project.foreign(kinds_of(query), _foreign_mark(space, to_chinese=to_chinese)):
        return None
    terms = _terms(project)
    said = terms.inverse_gloss(query.text) if to_chinese else terms.gloss(query.text)
    others: tuple[str, ...] = () if to_chinese else _ANY_ENGLISH
    if said is not None:
        stems = [stem for concept in said.concepts for stem in concept.stems]
        # Most projects in that language hold the first of them.
        if project.holds_any((*others, *stems)):
            return said
    return Gloss(text="", concepts=(), version="", is_chinese=to_chinese) if space.across else None


def _foreign_mark(space: EmbeddingSpace, *, to_chinese: bool) -> int:
    mark = (space.token_mark > 0) - (space.token_mark < 0)
    return mark if to_chinese else -mark


def _terms(project: Snapshot) -> OwnTerms:
    names = project.given_names()
    return _own_terms(names) if names.groups else NO_OWN_TERMS


@lru_cache(_TABLES_KEPT)
def _own_terms(names: GivenNames) -> OwnTerms:
    return own_terms(names.groups)


def query_gloss(said: Gloss | None) -> str | None:
    """The part of a translation that a model reads.

    None for one in Chinese, where the query itself says more to the model, and for one without words.
    """
    return None if said is None or said.is_chinese or not said.concepts else said.text


def glossed_terms(said: Gloss | None) -> tuple[GlossedTerm, ...]:
    """The translated terms for the receipt."""
    concepts = () if said is None else said.concepts
    return tuple([GlossedTerm(term=concept.source, words=concept.words) for concept in concepts])


def with_bridge(
    features: QueryFeatures, said: Gloss | None, embedding: Embedding | None, plan: Plan, space: EmbeddingSpace
) -> QueryFeatures:
    """Add the translation's vector and terms to the features, if the query has a gloss."""
    if said is None:
        return features
    read = None if embedding is None else embedding.bridge
    weights, stands_for = _words(said, features.terms)
    bridge = Bridge(
        vector=None if read is None else read.vector,
        terms=tuple(weights)[:MAX_TERMS],
        weights=np.array(list(weights.values())[:MAX_TERMS], np.float32),
        stands_for=np.array(list(stands_for.values())[:MAX_TERMS], np.uint32),
        foreign_mark=_foreign_mark(space, to_chinese=said.is_chinese),
        prose=None if read is None else read.prose,
    )
    tokens = read.tokens if read is not None and plan.late_interaction else space.no_tokens()
    return replace(features, gloss=said, bridge=bridge, bridge_tokens=tokens)


def _words(said: Gloss, own: tuple[str, ...]) -> tuple[dict[str, float], dict[str, int]]:
    """Weights of the translated terms, and the bits of the query's own terms that each stands for; no term twice."""
    place = {term: bit for bit, term in enumerate(own)}
    weights: dict[str, float] = {}
    stands_for: dict[str, int] = {}
    for concept in said.concepts:
        bits = sum({1 << place[term] for term in concept.terms if term in place})
        for stem, weight in zip(concept.stems, concept.weights, strict=True):
            if stem not in place:
                weights[stem] = max(weights.get(stem, 0.0), weight)
                stands_for[stem] = stands_for.get(stem, 0) | bits
    return weights, stands_for


def in_own_language(found: Candidates, space: EmbeddingSpace) -> NDArray[np.bool_] | None:
    """The candidates that the query's own token vectors are for, (n,); None where these are for all."""
    return ~found.bridged.is_foreign if found.bridged is not None and space.token_mark else None


def add_translation_scores(
    found: Candidates, late: NDArray[np.float32], features: QueryFeatures, space: EmbeddingSpace
) -> tuple[Candidates, NDArray[np.float32]]:
    """Return the candidates and their late interaction, with those in the other language scored by the translation.

    Their cosines are converted to those of equally similar texts in the query's language. A candidate without a vector
    is scored by words alone, and translated words then count as the query's own. Candidates found by translated words
    count as found by similarity and must reach the minimum.
    """
    said = found.bridged
    if said is None or not said.is_foreign.any():
        return found, late
    by_words = said.is_foreign & np.isnan(said.cosine)
    found = replace(
        found,
        keyword=np.where(by_words, found.keyword + said.keyword, found.keyword),
        matched=np.where(by_words, found.matched | said.matched, found.matched),
    )
    by_both = said.is_foreign & ~by_words
    if not by_both.any():
        # The caller brought the query's vector, so that no model has read the gloss.
        return found, late
    of_gloss = late_scores(found, replace(features, tokens=features.bridge_tokens), space.token_mark, by_both)
    found_by = found.found_by.copy()
    found_by[by_both & (found.keyword == 0)] &= ~np.uint8(FoundBy.KEYWORD)
    found_by[by_both] |= np.uint8(FoundBy.VECTOR)
    candidates = replace(
        found, cosine=np.where(by_both, _cosine(found, said, features, space), found.cosine), found_by=found_by
    )
    across = space.across and space.across.of_query(features.han_share)
    if across and across.late_gain > 1:
        of_gloss = np.minimum(of_gloss * np.float32(across.late_gain), np.float32(1))
    if across and across.words:
        # Code holds English names, whatever language the question has.
        is_prose = by_both & (found.rows["kind"] != MemoryKind.CODE_FRAGMENT)
        similarity = space.calibration.similarity(candidates.cosine, han=features.is_han)
        words, of_tokens = credit_of(np.stack([candidates.keyword, late]), is_prose, similarity, across)
        of_tokens[~(is_prose & np.isnan(of_gloss))] = np.nan
        candidates = replace(candidates, bridged=replace(said, credit=Credit(words, of_tokens)))
    return candidates, np.where(by_both & ~np.isnan(of_gloss), of_gloss, late)


def credit_of(
    scores: NDArray[np.float32], foreign: NDArray[np.bool_], similarity: NDArray[np.float32], across: Across
) -> NDArray[np.float32]:
    """What texts in the other language are credited with by paths that compare words, which they cannot hold.

    A text has a share of the path's best score, less as it is less similar than the most similar one. It has no more
    than OF_AS_SIMILAR of the scores of texts in the query's own language that are as similar, if there are any: those
    could hold the words.

    Args:
        scores: (paths, n); NaN counts as 0.
        foreign: (n,) the texts to credit; others get 0.
        similarity: (n,) calibrated; NaN without a vector.
        across: What holds for the query.
    """
    similar = np.nan_to_num(similarity).clip(min=0)
    own = np.where(foreign, np.float32(0), np.nan_to_num(scores))
    of_best = similar / max(similar.max(initial=0.0), _TINY)
    order = np.argsort(np.where(foreign, similar * -across.as_similar, -similar), kind="stable")
    most = np.maximum.accumulate(np.where(foreign, -np.inf, own * OF_AS_SIMILAR)[:, order], axis=1)
    credit = across.words * own.max(axis=1, keepdims=True, initial=0.0) * of_best
    credit[:, order] = np.minimum(credit[:, order], np.where(np.isneginf(most), np.inf, most))
    return np.where(foreign, credit, 0).astype(np.float32)


def _cosine(found: Candidates, said: Bridged, features: QueryFeatures, space: EmbeddingSpace) -> NDArray[np.float32]:
    """The cosine that a text in the query's own language would have which is as similar, (n,); NaN without a vector."""
    is_han, calibration = features.is_han, space.calibration
    to_chinese = features.gloss is not None and features.gloss.is_chinese
    scale = _SCALES[to_chinese, space.across is not None]
    is_code = found.rows["kind"] == MemoryKind.CODE_FRAGMENT
    if space.across:
        by_gloss = space.across.of_query(features.han_share).similarity(said.cosine)
    else:
        unrelated = np.where(is_code, np.float32(scale.unrelated_code), np.float32(scale.unrelated_prose))
        by_gloss = (said.cosine - unrelated) / (1 - unrelated)
    own = calibration.similarity(found.cosine, han=is_han)
    mixed = np.float32(scale.prose_share) * by_gloss + np.float32(1 - scale.prose_share) * own
    words = np.where(is_code, np.float32(scale.code_words), np.float32(scale.prose_words)) * _of_best(said, features)
    similarity = np.where(is_code, np.maximum(by_gloss, own), mixed) + words
    base = np.float32(calibration.unrelated_han if is_han else calibration.unrelated_latin)
    cosine: NDArray[np.float32] = (base + (1 - base) * similarity).astype(np.float32)
    return cosine


_SCALES = {
    (False, False): TO_ENGLISH,
    (True, False): TO_CHINESE,
    (False, True): ACROSS_TO_ENGLISH,
    (True, True): ACROSS_TO_CHINESE,
}
"""By whether the translation is Chinese, and whether the space reads across."""


def _of_best(said: Bridged, features: QueryFeatures) -> NDArray[np.float32]:
    """Scores of the candidates by the translated words, (n,) in [0, 1]; the best gets the share of words it holds."""
    glossed = 0 if features.bridge is None else int(np.bitwise_or.reduce(features.bridge.stands_for, initial=0))
    held = int(np.bitwise_count(said.matched).max(initial=0, where=said.is_foreign))
    fit = min(1.0, held / (ENOUGH * glossed.bit_count())) if glossed else 1.0
    best = said.keyword.max(initial=0.0, where=said.is_foreign)
    scores: NDArray[np.float32] = np.float32(fit) * said.keyword / max(best, _TINY)
    return scores


_TINY = np.float32(1e-12)
