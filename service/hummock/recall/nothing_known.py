"""Tells whether nothing that was found bears on the query, so that a caller need not guess it from scores.

A recall returns the best there is, also where that is useless. A logistic rule over columns that exist says how likely
the nearest memory answers: its calibrated similarity, how far it stands out, its late interaction, and whether the
query names something that no memory holds. It changes neither the hits nor their order. Source of the numbers:
docs/decisions/046.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.embedding import Calibration
from hummock.recall.fuse import Fused
from hummock.recall.prefer import LATE_A_SIMILARITY, LATE_AT_NOTHING
from hummock.recall.query_features import QueryFeatures
from hummock.text.word_lists import ENGLISH_STOP_WORDS


class Weights(NamedTuple):
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
LATIN: Final = Weights(bias=-4.3, similarity=4.0, lead=3.7, late=3.3, unheld_name=-2.9, least=-1.5, least_mixed=-2.1)
HAN: Final = Weights(bias=-1.6, similarity=3.1, lead=2.6, late=0.0, unheld_name=-2.7, least=-0.95, least_mixed=-1.05)
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
    groups: Sequence[Fused], features: QueryFeatures, text: str, calibration: Calibration
) -> Unanswered | None:
    """Return the finding that no candidate answers; None if one may, or if that cannot be told.

    It cannot be told without a query vector and token vectors, and while memories wait for their vectors. What the
    query names may answer: a domain, a name or a time; so may a candidate that holds every word of it.

    Args:
        groups: The recall's groups, with all candidates.
        features: The query.
        text: Its text.
        calibration: From cosine to similarity.
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
    cosines, late_scores, texts, sizes, echoes = [], [], [], [], 0
    for group in groups:
        cosines.append(group.candidates.cosine)
        late_scores.append(group.late)
        texts.append(group.candidates.rows["text_hash"])
        sizes.append(len(group.candidates.rows))
        echoes += group.tally.echoes
    ends = np.cumsum(sizes)
    similarity = np.nan_to_num(calibration.similarity(np.concatenate(cosines), han=features.is_han))
    late = np.concatenate(late_scores)
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
