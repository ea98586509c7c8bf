"""What people call an entry: phrases that come again in different turns which used it, and in hardly any other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hummock.core.learning import MAX_KEYWORD_CHARACTERS
from hummock.text.keywords import Stretch, stretches

LEAST_TURNS: Final = 2
"""Different turns in which a phrase has to stand; one mention is never evidence."""

SURE_TURNS: Final = 3
"""From which a character that is a word by itself as often as not may stand at an end of a phrase."""

LEAST_EVIDENCE: Final = 6.63
"""Log-likelihood ratio from which a phrase is taken to belong to an entry: by chance alone, one in a hundred does."""

LEAST_SHARE: Final = 0.9
"""Least share of the turns that hold a phrase in which the entry was used."""

MOST_ALIKE: Final = 0.6
"""Turns that share more of their terms (Jaccard) are one turn that was said again."""

MOST_TURNS: Final = 200
"""Newest turns of an entry that are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a user said in a turn, and the terms of it (`analyzer.query_terms`)."""

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
        """Whether a word begins and ends with it: what stands beside it is a border, or not always the same."""
        least = SURE_TURNS if self.first.is_doubtful else LEAST_TURNS
        return len(self.turns) >= least and all("" in beside or len(beside) > 1 for beside in (self.before, self.after))


def recurring(
    turns: Sequence[Said], own: frozenset[str], others: int, others_with: Callable[[frozenset[str]], int]
) -> list[str]:
    """Phrases that stand for an entry, the best supported first, equal ones by their text.

    One is evidence when it stands in LEAST_TURNS different turns that used the entry, begins and ends where words do,
    and goes together with the entry so often that chance does not explain it (log-likelihood ratio). Of phrases within
    one another the shortest counts that stands alone, too.

    Args:
        turns: Those that used the entry, the oldest first.
        own: Terms that the entry says itself: they are no news, and no phrase holds one.
        others: How many turns did not use it.
        others_with: How many of these hold all of some terms.

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


def _phrases(said: Sequence[Said], own: frozenset[str]) -> Mapping[str, _Phrase]:
    """All that may be a name in them, by what it says, folded."""
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


def _different(said: Sequence[Said], places: Iterable[int]) -> int:
    """How many of these turns say something else than those before."""
    kept: list[frozenset[str]] = []
    for place in places:
        terms = said[place].terms
        if all(len(terms & other) <= MOST_ALIKE * len(terms | other) for other in kept):
            kept.append(terms)
    return len(kept)


def _that_stand_alone(phrases: Mapping[str, _Phrase]) -> list[_Phrase]:
    """Without those that never stand outside a longer one, and without those that hold one that does."""
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
