"""Which entries a turn's words are held against: those that they may speak of, the least learnt first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hummock.core.learning import LearningSettings, Profile

_KEYWORD_WORTH = 10
_COOLDOWN_WORTH = 5
_MISS_WORTH = 10

_UNKNOWN = Profile()


def select(
    near: Iterable[str], profiles: Mapping[str, Profile], turn: int, settings: LearningSettings
) -> tuple[str, ...]:
    """The entries to analyse, those of the highest priority first, equal ones as they came.

    Args:
        near: Ids of entries that the words may be about (the coarse filter), the nearest first.
        profiles: What is known of them.
        turn: Now, on the clock of `LearningState.turns`.
        settings: How many, and the numbers of the priority.
    """
    ranked = sorted(
        dict.fromkeys(near), key=lambda memory_id: -priority(profiles.get(memory_id, _UNKNOWN), turn, settings)
    )
    return tuple(ranked[: settings.candidates])


def priority(profile: Profile, turn: int, settings: LearningSettings) -> int:
    """Higher for an entry with fewer keywords; lower for one that was analysed of late, or in vain."""
    missing = settings.keyword_target - min(len(profile.keywords), settings.keyword_target)
    since = max(0, turn - profile.last_analyzed_turn)
    cooling = max(0, settings.analysis_cooldown_turns - since)
    return missing * _KEYWORD_WORTH - cooling * _COOLDOWN_WORTH - profile.miss_count * _MISS_WORTH
