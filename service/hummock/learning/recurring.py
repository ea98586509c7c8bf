"""Finds what people call an entry: phrases that recur in different turns that used it, and in hardly any other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hummock.core.learning import MAX_KEYWORD_CHARACTERS
from hummock.text.keywords import Stretch, stretches

LEAST_TURNS: Final = 2
"""Least number of different turns with a phrase; one mention is never evidence."""

SURE_TURNS: Final = 3
"""Turns from which a phrase may begin or end with a character that is often a word by itself."""

LEAST_EVIDENCE: Final = 6.63
"""Log-likelihood ratio from which a phrase belongs to an entry; one phrase in a hundred reaches it by chance."""

LEAST_SHARE: Final = 0.9
"""Least share of the turns that hold a phrase in which the entry was used."""

MOST_ALIKE: Final = 0.6
"""Turns that share more of their terms (Jaccard) count as repeats of one turn."""

MOST_TURNS: Final = 200
"""Newest turns of an entry that are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class UserText:
    """The user's text of a turn and its terms (`analyzer.query_terms`)."""

    text: str
    terms: frozenset[str]


@dataclass(slots=True, eq=False)
class _Phrase:
    """A phrase as it was written first, the places of the turns that hold it, and its neighbours there."""

    first: Stretch
    turns: list[int] = field(default_factory=list)
    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)

    def is_whole(self) -> bool:
        """Whether it has word boundaries at both ends: its neighbours there are a border or vary."""
        least = SURE_TURNS if self.first.is_doubtful else LEAST_TURNS
        return len(self.turns) >= least and all("" in beside or len(beside) > 1 for beside in (self.before, self.after))


def recurring(
    turns: Sequence[UserText], own: frozenset[str], others: int, others_with: Callable[[frozenset[str]], int]
) -> list[str]:
    """Find phrases that stand for an entry, the best supported first, ties by text.

    A phrase counts if it occurs in LEAST_TURNS different turns that used the entry, begins and ends at word boundaries,
    and occurs with the entry more often than by chance (log-likelihood ratio). Of nested phrases the shortest that also
    occurs alone counts.

    Args:
        turns: Turns that used the entry, oldest first.
        own: Terms of the entry itself, which no phrase may hold.
        others: Number of turns that did not use it.
        others_with: Counts those of them that hold all given terms.

    Source: Dunning, Computational Linguistics 1993.
    """
    said = turns[-MOST_TURNS:]
    supported = {
        key: phrase
        for key, phrase in _phrases(said, own).items()
        if phrase.is_whole()
        and len(phrase.first.text) <= MAX_KEYWORD_CHARACTERS
        and _different(said, phrase.turns) >= LEAST_TURNS
    }
    evidence: dict[str, float] = {}
    for phrase in _that_stand_alone(supported):
        both, elsewhere = _different(said, phrase.turns), others_with(frozenset(phrase.first.terms))
        if both >= LEAST_SHARE * (both + elsewhere):
            ratio = log_likelihood_ratio(both, elsewhere, len(turns) - both, others - elsewhere)
            evidence[phrase.first.text] = ratio
    return sorted(
        (text for text, ratio in evidence.items() if ratio >= LEAST_EVIDENCE), key=lambda text: (-evidence[text], text)
    )


def log_likelihood_ratio(both: int, first: int, second: int, neither: int) -> float:
    """How much more likely two events' counts are if they go together than if they are independent; from 0."""
    cells = _information(both, first, second, neither)
    rows, columns = _information(both + first, second + neither), _information(both + second, first + neither)
    return 2 * (cells - rows - columns)


def _information(*counts: int) -> float:
    total = sum(counts)
    return sum(count * math.log(count / total) for count in counts if count)


def _phrases(said: Sequence[UserText], own: frozenset[str]) -> Mapping[str, _Phrase]:
    counts = Counter(term for turn in said for term in turn.terms)
    found: dict[str, _Phrase] = {}
    for place, turn in enumerate(said):
        for stretch in stretches(turn.text, lambda term: counts[term] >= LEAST_TURNS and term not in own):
            key = " ".join(stretch.terms)
            phrase = found.setdefault(key, _Phrase(stretch))
            phrase.before.add(stretch.before)
            phrase.after.add(stretch.after)
            if not phrase.turns or phrase.turns[-1] != place:
                phrase.turns.append(place)
    return found


def _different(said: Sequence[UserText], places: Iterable[int]) -> int:
    """Count the turns that differ from all earlier ones."""
    kept: list[frozenset[str]] = []
    for place in places:
        terms = said[place].terms
        if all(len(terms & other) <= MOST_ALIKE * len(terms | other) for other in kept):
            kept.append(terms)
    return len(kept)


def _that_stand_alone(phrases: Mapping[str, _Phrase]) -> list[_Phrase]:
    """Drop phrases that occur only within longer ones, and those that contain one occurring alone."""
    longest_first = sorted(phrases.items(), key=lambda item: (-len(item[0]), item[0]))
    alone = {
        key: phrase
        for key, phrase in longest_first
        if set(phrase.turns).difference(
            *(other.turns for longer, other in longest_first if len(longer) > len(key) and _holds(longer, key))
        )
    }
    return [
        phrase
        for key, phrase in alone.items()
        if not any(len(other) < len(key) and _holds(key, other) for other in alone)
    ]


def _holds(longer: str, key: str) -> bool:
    return f" {key} " in f" {longer} "
