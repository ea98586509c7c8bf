"""Keywords of entries: which entries are read for them, and what of a learner's answer counts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hummock.core.learning import MAX_KEYWORD_CHARACTERS, KeywordUpdate, LearningSettings, Profile
from hummock.learning.references import NO_PROFILE
from hummock.ports.models import EntryText
from hummock.text.normalise import prose
from hummock.text.word_lists import CHINESE_COMMON_WORDS, ENGLISH_COMMON_WORDS

MAX_NEW_KEYWORDS = 10
"""Most new keywords of an entry at once."""
_KEYWORD_WORTH = 10
_COOLDOWN_WORTH = 5
_MISS_WORTH = 10

_WORD = re.compile(r"\w+")
_COMMON = CHINESE_COMMON_WORDS | ENGLISH_COMMON_WORDS


def select(
    named: Collection[str],
    near: Iterable[str],
    profiles: Mapping[str, Profile],
    turn: int,
    settings: LearningSettings,
) -> tuple[str, ...]:
    """The entries to analyse: those that the turn names, then others; the highest priority first, equal ones as given.

    Args:
        named: Ids of entries that the words refer to.
        near: Ids of others that the words may be about (the coarse filter), the nearest first.
        profiles: What is known of them.
        turn: Now, on the clock of `LearningState.turns`.
        settings: How many, and the numbers of the priority.
    """
    ranked = sorted(
        dict.fromkeys((*named, *near)),
        key=lambda one: (one not in named, -priority(profiles.get(one, NO_PROFILE), turn, settings)),
    )
    return tuple(ranked[: settings.candidates])


def priority(profile: Profile, turn: int, settings: LearningSettings) -> int:
    """Higher for an entry with fewer keywords; lower for one that was analysed of late, or in vain."""
    missing = settings.keyword_target - min(len(profile.keywords), settings.keyword_target)
    since = max(0, turn - profile.last_analyzed_turn)
    cooling = max(0, settings.analysis_cooldown_turns - since)
    return missing * _KEYWORD_WORTH - cooling * _COOLDOWN_WORTH - profile.miss_count * _MISS_WORTH


def checked(given: Iterable[KeywordUpdate], entries: Sequence[EntryText]) -> tuple[KeywordUpdate, ...]:
    """What is learnt of what a learner says of these entries, in their order; nothing where it read one in vain.

    What it says of another entry is left out. A keyword is one line of at most MAX_KEYWORD_CHARACTERS that is more than
    a character and than words that are said of anything, by which an entry would be part of every prompt; it says what
    neither the title nor a keyword says already, whatever the case; and the first MAX_NEW_KEYWORDS of an entry count.
    """
    said: dict[str, tuple[list[str], list[str]]] = {}
    for update in given:
        keywords, hints = said.setdefault(update.memory_id, ([], []))
        keywords.extend(update.keywords)
        hints.extend(update.hints)
    return tuple(_checked(entry, *said[entry.memory_id]) for entry in entries if entry.memory_id in said)


def _checked(entry: EntryText, said: Sequence[str], hinted: Sequence[str]) -> KeywordUpdate:
    # What was a hint may become a keyword, and not the other way round.
    known = (entry.title, *entry.keywords)
    keywords = tuple(_new(said, known))
    hints = tuple(_new(hinted, (*known, *keywords, *entry.hints)))
    return KeywordUpdate(memory_id=entry.memory_id, keywords=keywords, hints=hints)


def _new(said: Iterable[str], before: Iterable[str]) -> Iterator[str]:
    known = {prose(one) for one in before}
    count = 0
    for keyword in said:
        line = " ".join(keyword.split())
        normal = prose(line)
        if count == MAX_NEW_KEYWORDS:
            return
        # What cannot be printed cannot be seen by whoever looks the keywords through.
        is_fit = len(line) <= MAX_KEYWORD_CHARACTERS and line.isprintable() and _says_something(normal)
        if is_fit and normal not in known:
            known.add(normal)
            count += 1
            yield line


def _says_something(normal: str) -> bool:
    words = _WORD.findall(normal)
    return sum(map(len, words)) > 1 and not all(word in _COMMON for word in words)
