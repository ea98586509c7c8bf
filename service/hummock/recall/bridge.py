"""A bridge from a Chinese query to what is not written in Chinese: its gloss, and what that says of candidates.

Stored memories stay as they are. The gloss is embedded by the model that reads English, its words are looked for beside
those of the query, and each candidate is scored in its own language: Chinese texts as if there were no gloss, all
others by what both say. Where the numbers come from: docs/decisions/034.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Bridge, Bridged, Candidates, FoundBy
from hummock.core.embedding import Calibration, Embedding, EmbeddingSpace
from hummock.core.memory import MemoryKind
from hummock.core.recall import GlossedTerm, KeywordMode, Plan, RecallQuery
from hummock.ports.models import QueryGloss
from hummock.ports.store import Recallable
from hummock.recall.plan import joins_paths
from hummock.recall.query_features import MAX_TERMS, QueryFeatures
from hummock.recall.rerank import late_scores
from hummock.text.analyzer import query_terms
from hummock.text.glossary import Gloss, gloss
from hummock.text.normalise import is_han

UNRELATED_CODE = 0.15
UNRELATED_PROSE = 0.05
"""Cosine of a bridge with code and with prose that have nothing to do with it; similarity counts from there."""

PROSE_SHARE = 0.3
"""Share of the bridge in the similarity of prose: a word that was glossed wrongly says more there than one of code.
Code takes the better of both, since comments in it may be Chinese."""

CODE_WORDS = 0.15
PROSE_WORDS = 0.08
"""What the best match of the gloss's words adds to a similarity. Were they scored as words, words of the query that
hardly match would decide how much all words weigh."""

ALTERNATIVE_WEIGHT = 0.5
"""Of words that a term may have besides its likeliest one, each of which counts."""

_GLOSSES_KEPT = 512
_ANY_ENGLISH = ("the", "a", "is", "to", "of", "and", "in", "for", "return", "if", "import", "def", "fun", "class")

_glossed = lru_cache(_GLOSSES_KEPT)(gloss)


def gloss_of(query: RecallQuery, store: Recallable) -> Gloss | None:
    """The query in English words; None where it is not Chinese, where no term is known, and where nothing is English.

    Who asks for one path alone, or for substrings, gets that path's order and no bridge (1.1-10). A project that holds
    none of the gloss's words and none of the most frequent ones has nothing that is not Chinese.
    """
    if not joins_paths(query) or query.keyword_mode is not KeywordMode.TERMS or not is_han(query.text):
        return None
    said = _glossed(query.text)
    if said is None:
        return None
    stems = [stem for concept in said.concepts for stem in concept.stems]
    return said if store.holds_any(query.project, (*stems, *_ANY_ENGLISH)) else None


def query_gloss(said: Gloss | None) -> QueryGloss | None:
    """What a model reads of a gloss."""
    return None if said is None else QueryGloss(said.text, said.coverage)


def glossed_terms(said: Gloss | None) -> tuple[GlossedTerm, ...]:
    """What a receipt says of a gloss."""
    concepts = () if said is None else said.concepts
    return tuple(GlossedTerm(term=concept.source, words=concept.words) for concept in concepts)


def with_bridge(
    features: QueryFeatures, said: Gloss | None, embedding: Embedding | None, plan: Plan, space: EmbeddingSpace
) -> QueryFeatures:
    """The features with the query's bridge, where it has a gloss."""
    if said is None:
        return features
    read = None if embedding is None else embedding.bridge
    weights, stands_for = _words(said, features.terms)
    bridge = Bridge(
        vector=None if read is None else read.vector,
        terms=tuple(weights)[:MAX_TERMS],
        weights=np.array(list(weights.values())[:MAX_TERMS], np.float32),
        stands_for=np.array(list(stands_for.values())[:MAX_TERMS], np.uint32),
        is_marked=space.token_mark > 0,
    )
    tokens = read.tokens if read is not None and plan.late_interaction else space.no_tokens()
    return replace(features, gloss=said, bridge=bridge, bridge_tokens=tokens)


def _words(said: Gloss, own: tuple[str, ...]) -> tuple[dict[str, float], dict[str, int]]:
    """Weights of the gloss's terms, and the bits of the query's own terms that each stands for; none twice."""
    place = {term: bit for bit, term in enumerate(own)}
    weights: dict[str, float] = {}
    stands_for: dict[str, int] = {}
    for concept in said.concepts:
        bits = sum({1 << place[term] for term in query_terms(concept.source) if term in place})
        for stem, likelihood in zip(concept.stems, concept.weights, strict=True):
            if stem in place:
                continue
            weight = likelihood if likelihood == 1 else ALTERNATIVE_WEIGHT * likelihood
            weights[stem] = max(weights.get(stem, 0.0), weight)
            stands_for[stem] = stands_for.get(stem, 0) | bits
    return weights, stands_for


def crossed(
    found: Candidates, late: NDArray[np.float32], features: QueryFeatures, space: EmbeddingSpace
) -> tuple[Candidates, NDArray[np.float32]]:
    """The candidates, and late interaction of each, with what the bridge says of those that are not in Chinese.

    Their cosines are those that Chinese texts as similar would have. What has no vector is known by its words alone,
    among which those of the gloss then count as the query's own. What the gloss's words found is found by similarity,
    and has to reach the minimum.
    """
    said = found.bridged
    if said is None or not said.is_foreign.any():
        return found, late
    by_words = said.is_foreign & np.isnan(said.cosine)
    by_both = said.is_foreign & ~by_words
    of_gloss = late_scores(found, replace(features, tokens=features.bridge_tokens), space.token_mark)
    found_by = found.found_by.copy()
    found_by[by_both & (found.keyword == 0)] &= ~np.uint8(FoundBy.KEYWORD)
    found_by[by_both] |= np.uint8(FoundBy.VECTOR)
    candidates = replace(
        found,
        cosine=np.where(by_both, _cosine(found, said, space.calibration), found.cosine),
        keyword=np.where(by_words, found.keyword + said.keyword, found.keyword),
        matched=np.where(by_words, found.matched | said.matched, found.matched),
        found_by=found_by,
    )
    return candidates, np.where(by_both & ~np.isnan(of_gloss), of_gloss, late)


def _cosine(found: Candidates, said: Bridged, calibration: Calibration) -> NDArray[np.float32]:
    """The cosine that a Chinese text would have which is as similar, (n,) float32; NaN without a vector."""
    is_code = found.kind == MemoryKind.CODE_FRAGMENT
    unrelated = np.where(is_code, np.float32(UNRELATED_CODE), np.float32(UNRELATED_PROSE))
    by_gloss = (said.cosine - unrelated) / (1 - unrelated)
    own = calibration.similarity(found.cosine, han=True)
    mixed = np.float32(PROSE_SHARE) * by_gloss + np.float32(1 - PROSE_SHARE) * own
    best = said.keyword.max(initial=0.0, where=said.is_foreign)
    of_words = np.where(is_code, np.float32(CODE_WORDS), np.float32(PROSE_WORDS)) * said.keyword / max(best, _TINY)
    similarity = np.where(is_code, np.maximum(by_gloss, own), mixed) + of_words
    base = np.float32(calibration.unrelated_han)
    cosine: NDArray[np.float32] = (base + (1 - base) * similarity).astype(np.float32)
    return cosine


_TINY = np.float32(1e-12)
