"""Selects hits worth a reader's time: a recall returns the best that there is, and that may be nothing useful.

A score says how a hit compares with the best of its group. It is no measure of whether that one is any good: in a
question of everyday words half the project holds most of its terms ("what is the ... of"). Two other things are: how
similar the meaning is, by the model's calibration, and how many words that tell something the hit holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hummock.core.candidates import FoundBy
from hummock.core.recall import Hit
from hummock.render.passage import told_terms
from hummock.text.analyzer import query_terms
from hummock.text.normalise import is_han

LEAST_SIMILARITY: Final = 0.2
"""Least similarity of a hit worth its tokens. The best hit of unrelated questions in both languages had at most .22,
mostly below .15."""

LEAST_SHARE: Final = 0.5
LEAST_WORDS: Final = 2
"""Share of the query's telling words that does instead, and how many of them; one where the query has no more."""

LEAST_OF_BEST: Final = 0.4
"""Share of the best score of its group, ages and verdicts apart, below which a hit only follows because there is room
for ten."""

LEAST_ACROSS: Final = 0.05
"""The similarity that does for the closest hit in the other script: there no word can match, and models see less. Of 13
questions asked in the other language it was the answer in 10, at .05 to .40."""

ANSWERS: Final = 0.5
"""The similarity from which a hit in the query's own script answers: closeness alone then speaks for none in the other.
Of 149 Chinese questions whose answer was English, the best of 300 unrelated Chinese texts had .43 at most."""

_NAMED: Final = FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.HOLDER


def drawbacks(hits: Sequence[Hit], query: str) -> list[str]:
    """What speaks against showing each hit of a group, for people; empty for those worth showing.

    Hits in Chinese and others are compared among themselves. The closest of the other script is shown unless one of the
    query's own answers. What the query names is shown, and what was found without a vector, as there is nothing to hold
    against it but its words.
    """
    told = frozenset(told_terms(query))
    is_other = [_is_chinese(hit) != is_han(query) for hit in hits]
    is_answered = any(hit.similarity >= ANSWERS for hit, other in zip(hits, is_other, strict=True) if not other)
    against = [""] * len(hits)
    for side in (False, True):
        places = [place for place, other in enumerate(is_other) if other is side and not _is_named(hits[place])]
        best = max((_bare(hits[place]) for place in places), default=0.0)
        closest = max((hits[place].similarity for place in places), default=0.0)
        for place in places:
            is_closest_across = side and LEAST_ACROSS <= hits[place].similarity == closest
            is_answer_across = is_closest_across and not is_answered
            against[place] = "" if is_answer_across else _drawback(hits[place], told, best)
    return against


def _drawback(hit: Hit, told: frozenset[str], best: float) -> str:
    if (score := _bare(hit)) < LEAST_OF_BEST * best:
        return f"left out: its relevance {score:.2f} is far below the best, {best:.2f}"
    if not hit.cosine or hit.similarity >= LEAST_SIMILARITY:
        return ""
    said = (*hit.matched_terms, *(correction.asked for correction in hit.corrections))
    words = len(told.intersection(query_terms(" ".join(said))))
    if told and words >= max(LEAST_SHARE * len(told), min(LEAST_WORDS, len(told))):
        return ""
    holds = f"it holds {words} of {len(told)} words"
    return f"left out: its similarity {hit.similarity:.2f} is below {LEAST_SIMILARITY}, and {holds}"


def _is_chinese(hit: Hit) -> bool:
    return is_han(f"{hit.memory.index.title}\n{hit.memory.index.summary}")


def _is_named(hit: Hit) -> bool:
    return bool(hit.found_by & _NAMED)


def _bare(hit: Hit) -> float:
    """Its score, age and verdicts apart."""
    return hit.score / (hit.decay * hit.verdict) if hit.decay else hit.score
