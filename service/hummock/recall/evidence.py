"""Evidence beside similarity: shared words and verdicts, and whether there is enough of it that anything answers.

A shared word is no evidence by itself: any text holds "the", and one in twenty "question". What counts is how much of
the query's subject a candidate's words cover, and how rare they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.embedding import Calibration
from hummock.core.recall import Plan, Preset
from hummock.recall.plan import KEEPS_ALL
from hummock.recall.query_features import QueryFeatures
from hummock.text.word_lists import ENGLISH_STOP_WORDS

if TYPE_CHECKING:
    from hummock.recall.fuse import Fused

ENOUGH_SHARE = 0.5
"""Share of the weight of the query's terms, weighted by rarity, from which words alone are enough evidence."""

ENOUGH_WORTH = 0.8
"""Rarity that is enough evidence for long queries and for bilingual ones; a term that no memory holds has rarity 1."""

STANDING_OUT = 2.5
"""Ratio of the best similarity to the next at which a candidate stands out, and needs less of a preset's minimum."""

_ANY = 1e-3
"""Threshold for CODEX, in place of both: any content word suffices, since entries are called by names, often short
ones."""


def evidence(found: Candidates, plan: Plan, features: QueryFeatures) -> NDArray[np.float32]:
    """Return each candidate's evidence of words, (n,), at least 0, enough from 1; (0,) if the plan ignores it.

    The less of the query's script the model knows, the less evidence is required. For candidates without a similarity
    any content word is enough; without a query vector, any term.
    """
    if plan.min_similarity <= KEEPS_ALL:
        return np.empty(0, np.float32)
    if features.vector is None or not len(features.term_weights) or not len(found.rarity):
        holds_any: NDArray[np.float32] = (found.matched != 0).astype(np.float32)
        return holds_any
    told = features.term_weights * found.rarity
    bits = (found.matched[:, None] >> np.arange(len(told), dtype=np.uint32)) & np.uint32(1)
    # Not by BLAS, which raised invalid-value warnings here for valid numbers.
    held = np.where(bits, told, 0).sum(axis=1, dtype=np.float64)
    # Words without content are no evidence, however many a candidate holds.
    known = _ANY if plan.preset is Preset.CODEX else max(features.known_share, _ANY)
    enough = min(ENOUGH_SHARE * float(told.sum(dtype=np.float64)), ENOUGH_WORTH) * known
    said = np.array(held / enough if enough > 0 else held, np.float32)
    said[np.isnan(found.cosine) & (held > 0)] = 1
    return said


def best_cosine(groups: Iterable[Candidates], plan: Plan, features: QueryFeatures, calibration: Calibration) -> float:
    """Return the cosine of the most similar candidate of all groups if it stands out; else infinity.

    Texts that equal the query do not count, and copies of one text count as one.
    """
    if plan.min_of_best >= plan.min_similarity or features.vector is None:
        return np.inf
    echoes = np.array(list(features.echoes()), np.uint64)
    found = list(groups)
    texts = np.concatenate([group.rows["text_hash"] for group in found] or [np.empty(0, np.uint64)])
    cosines = np.concatenate([group.cosine for group in found] or [np.empty(0, np.float32)])
    is_other = ~np.isnan(cosines) & ~np.isin(texts, echoes)
    if not is_other.any():
        return np.inf
    best = cosines[is_other].max()
    rest = is_other & ~np.isin(texts, texts[is_other & (cosines == best)])
    similarity = calibration.similarity(np.array([best, cosines[rest].max(initial=-1)]), han=features.is_han)
    return float(best) if similarity[0] >= STANDING_OUT * max(similarity[1], 0) else np.inf


MOST_LOSS = 0.4
"""Most of a score that WRONG verdicts take away, as a share, however many there are."""

MOST_GAIN = 0.1
"""Share of a score that HELPFUL adds in the end. Less than MOST_LOSS: use for one query says little about another."""

DOUBT = 4.0
"""Pseudo-count of neutral voices beside those that said HELPFUL: one of them adds .02 to a score, ten .07."""

DOUBT_OF_WRONG = 2.0
"""Pseudo-count of neutral voices beside those that said WRONG. One of them takes .13 off a score, ten .33."""


def verdict_factors(found: Candidates) -> NDArray[np.float32]:
    """The factor of each candidate, (n,) in [1 - MOST_LOSS, 1 + MOST_GAIN].

    The smoothed shares of the HELPFUL and of the WRONG voices, each times its bound.
    """
    helpful, wrong = found.helpful.astype(np.float32), found.wrong.astype(np.float32)
    voices = helpful + wrong
    factors: NDArray[np.float32] = (
        1 + MOST_GAIN * helpful / (voices + DOUBT) - MOST_LOSS * wrong / (voices + DOUBT_OF_WRONG)
    )
    return factors.astype(np.float32)


LATE_AT_NOTHING: Final = 0.40
LATE_A_SIMILARITY: Final = 0.50
"""Late interaction per similarity, on average; with LATE_AT_NOTHING it estimates the score of memories that have
none."""

# A recall returns the best there is, also where that is useless. A logistic rule over columns that exist says how
# likely the nearest memory answers: its calibrated similarity, how far it stands out, its late interaction, and whether
# the query names something that no memory holds. It changes neither the hits nor their order. Source of the numbers:
# docs/decisions/046.


class Answering(NamedTuple):
    """Weights of the log-odds that the nearest memory answers a query.

    Attributes:
        bias: Log-odds of a memory like no other and without similarity.
        similarity: Per calibrated similarity of the nearest memory.
        lead: Per similarity by which it is ahead of the next three, on average.
        late: Per max-sim of its token vectors, the best of all candidates.
        unheld_name: Added if the query names something that no memory holds.
        least: The log-odds below which nothing is known. Not 0: a withheld answer costs more than an idle memory.
        least_mixed: The same if memories in the other language are among the candidates: one that no word leads to may
            answer.
    """

    bias: float
    similarity: float
    lead: float
    late: float
    unheld_name: float
    least: float
    least_mixed: float


# Fitted on the half `tune` of the sets `nothing`, `facts` and `noise`; words that a memory holds added nothing. Of that
# half of these sets, `talk`, `xquad-zh` and `cosqa` no question whose answer was among the hits is below the least
# log-odds.
LATIN: Final = Answering(bias=-4.3, similarity=4.0, lead=3.7, late=3.3, unheld_name=-2.9, least=-1.5, least_mixed=-2.1)
HAN: Final = Answering(bias=-1.6, similarity=3.1, lead=2.6, late=0.0, unheld_name=-2.7, least=-0.95, least_mixed=-1.05)
"""For queries with Chinese characters: token vectors of Chinese are alike, so that late interaction tells nothing."""

NEXT: Final = 3
"""Number of memories after the nearest that it is compared with."""

_NAMED: Final = np.uint8(FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.HOLDER)
_NAME: Final = re.compile(r"(?<=[^\s\"'(])[^A-Za-z0-9]*(?<![A-Za-z0-9])([A-Za-z]*[0-9]\w*|[A-Z][A-Za-z'-]*)")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]+")


class Unanswered(NamedTuple):
    """Finding that nothing is known: the nearest memory by group and row (-1 if there is none), and why."""

    confidence: float
    group: int
    row: int
    reason: str


NOTHING_STORED: Final = Unanswered(1.0, 0, -1, "there is no memory to search")


def nothing_known(
    groups: Sequence[Fused], features: QueryFeatures, text: str, similarity: NDArray[np.float32]
) -> Unanswered | None:
    """Return the finding that no candidate answers; None if one may, or if that cannot be told.

    It cannot be told without a query vector and token vectors, and while memories wait for their vectors. What the
    query names may answer: a domain, a name or a time; so may a candidate that holds every word of it.

    Args:
        groups: The recall's groups, with all candidates.
        features: The query.
        text: Its text.
        similarity: (all candidates,) calibrated, group by group.
    """
    searched, is_mixed, every_word = 0, False, (1 << len(features.terms)) - 1
    for group in groups:
        found = group.candidates
        searched += found.searched + found.in_window
        is_mixed |= found.bridged is not None and bool(found.bridged.is_foreign.any())
        holds_all = every_word > 0 and (found.matched == every_word).any()
        if found.pending or holds_all or (found.found_by & _NAMED).any() or (group.time_match >= 1).any():
            return None
    if groups and not searched:
        return NOTHING_STORED
    if not groups or features.vector is None or not len(features.tokens):
        return None
    late_scores, texts, sizes, echoes = [], [], [], 0
    for group in groups:
        late_scores.append(group.late)
        texts.append(group.candidates.rows["text_hash"])
        sizes.append(len(group.candidates.rows))
        echoes += group.tally.echoes
    ends = np.cumsum(sizes)
    similarity, late = np.nan_to_num(similarity), np.concatenate(late_scores)
    if echoes:
        is_echo = np.isin(np.concatenate(texts), np.fromiter(features.echoes(), np.uint64))
        similarity[is_echo], late[is_echo] = 0, 0
    if not len(similarity):
        return Unanswered(1.0, 0, -1, "no memory was found")
    order = np.argsort(-similarity, kind="stable")[: NEXT + 1]
    best, rest = float(similarity[order[0]]), similarity[order[1:]]
    others = float(rest.mean()) if len(rest) else 0.0
    weights = HAN if features.is_han else LATIN
    # Token vectors of the model of the other language are not comparable.
    is_mixed |= bool(np.isnan(late).any())
    least = weights.least_mixed if is_mixed else weights.least
    late = np.where(np.isnan(late), LATE_AT_NOTHING + LATE_A_SIMILARITY * similarity, late)
    odds = weights.bias + weights.similarity * best + weights.lead * (best - others) + weights.late * float(late.max())
    # Most recalls end here: not even a missing name would make it doubtful.
    if odds + weights.unheld_name >= least:
        return None
    group_place = int(np.searchsorted(ends, order[0], side="right"))
    row = int(order[0]) - (int(ends[group_place - 1]) if group_place else 0)
    name = unheld_name(groups[group_place].candidates, row, features, text)
    odds += weights.unheld_name if name else 0.0
    if odds >= least:
        return None
    reason = f"its similarity is {best:.2f}, and that of the next ones {others:.2f}"
    reason = f'no memory holds "{name}"; {reason}' if name else reason
    return Unanswered(1 / (1 + math.exp(odds)), group_place, row, reason)


def unheld_name(found: Candidates, nearest: int, features: QueryFeatures, text: str) -> str:
    """Return a name or number of the query that no memory of the project holds; empty if there is none.

    A name is a word with a digit, or a capitalised word behind the first. In an English text of which most words are
    capitalised none is one. Corrected words are held, and to a memory in the other language none is missing.
    """
    names = set(_NAME.findall(text))
    if not names or len(found.rarity) != len(features.terms):
        return ""
    if found.bridged is not None and found.bridged.is_foreign[nearest]:
        return ""
    words = _WORD.findall(text)
    if text.isascii() and 2 * sum(map(str.istitle, words)) > len(words):
        return ""
    corrected: list[int] = []
    for correction in features.meant:
        corrected += correction.places
    # A term that no memory holds has a rarity of 1, and no other has.
    for place in np.flatnonzero(found.rarity >= 1).tolist():
        word = features.words[place]
        if word in names and place not in corrected and word.lower() not in ENGLISH_STOP_WORDS:
            return word
    return ""
