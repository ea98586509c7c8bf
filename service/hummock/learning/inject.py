"""Chooses the entries of a turn's prompt: a pure function of how they were used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from msgspec.structs import replace

from hummock.core.learning import NEVER, Injection, InjectionStatus, LearningSettings, Usage


def decide(
    usage: Mapping[str, Usage],
    referenced: Collection[str],
    turn: int,
    settings: LearningSettings,
    *,
    most_waiting: int | None = None,
) -> tuple[Injection, ...]:
    """The injection table of a turn.

    Referenced entries are forced in. Of the rest, those referenced more often than `high_above` are always injected,
    the others once more turns than their cooldown have passed since they were sent. An entry last sent in this turn or
    a later one (a turn was regenerated, or a conversation resumed earlier) was not sent in this conversation: like one
    never sent, it has no cooldown.

    Args:
        usage: Usage in the scope, by memory id.
        referenced: Ids that this turn refers to, in the order to try them; used before or not.
        turn: The turn's number.
        settings: The bounds and cooldowns.
        most_waiting: Most rows of entries that are not injected; None for all.

    Returns:
        First the forced ones in their order; then those injected by use, the most often referenced first; then those
        that wait, the most probable first. Ties go by id.
    """
    forced = tuple(_forced(memory_id, usage.get(memory_id, Usage()), turn) for memory_id in dict.fromkeys(referenced))
    coming, waiting = _parted(usage, referenced, turn, settings)
    by_use = (_injecting(one, usage[one], _why(usage[one], turn, settings)) for one in coming)
    return (*forced, *by_use, *(_waiting(one, usage[one], turn, settings) for one in waiting[:most_waiting]))


def injected_ids(
    usage: Mapping[str, Usage], referenced: Collection[str], turn: int, settings: LearningSettings
) -> tuple[str, ...]:
    """Return the ids that `decide` injects, in its order."""
    coming, _ = _parted(usage, referenced, turn, settings)
    return (*dict.fromkeys(referenced), *coming)


def idle(memory_id: str) -> Injection:
    """The row of an entry that the scope has never used."""
    reason = "nobody has referred to it here"
    return Injection(memory_id=memory_id, usage=Usage(), probability=0.0, status=InjectionStatus.IDLE, reason=reason)


def plain(memory_id: str, usage: Usage | None) -> Injection:
    """The row of an entry while learning is off."""
    return _injecting(memory_id, usage or Usage(), "learning is off: every entry comes")


def _forced(memory_id: str, usage: Usage, turn: int) -> Injection:
    frequency = usage.frequency + (usage.counted_turn != turn)
    return Injection(
        memory_id=memory_id,
        usage=replace(usage, frequency=frequency, counted_turn=turn),
        probability=1.0,
        status=InjectionStatus.INJECTING,
        reason="referenced in this turn",
        forced=True,
    )


def _parted(
    usage: Mapping[str, Usage], referenced: Collection[str], turn: int, settings: LearningSettings
) -> tuple[list[str], list[str]]:
    """Split unreferenced entries into those injected by use and those that wait, each in the order of the table."""
    forced = set(referenced)
    high, mid = settings.high_above, settings.mid_above
    mid_cooldown, low_cooldown = settings.mid_cooldown_turns, settings.low_cooldown_turns
    coming: list[tuple[int, str]] = []
    waiting: list[tuple[float, str]] = []
    # A scope may have used a thousand: no call for each.
    for memory_id, used in usage.items():
        since, frequency = turn - used.last_sent_turn, used.frequency
        cooldown = mid_cooldown if frequency > mid else low_cooldown
        if frequency <= high and 0 < since <= cooldown and used.last_sent_turn != NEVER:
            waiting.append((-since / (cooldown + 1), memory_id))
        else:
            coming.append((-frequency, memory_id))
    return (
        [memory_id for _, memory_id in sorted(coming) if memory_id not in forced],
        [memory_id for _, memory_id in sorted(waiting) if memory_id not in forced],
    )


def _cooldown(usage: Usage, settings: LearningSettings) -> int:
    return settings.mid_cooldown_turns if usage.frequency > settings.mid_above else settings.low_cooldown_turns


def _why(usage: Usage, turn: int, settings: LearningSettings) -> str:
    often = _often(usage.frequency)
    if usage.frequency > settings.high_above:
        return f"{often}: more than {settings.high_above}, always"
    if usage.last_sent_turn == NEVER:
        return f"{often}; never sent so far"
    if usage.last_sent_turn >= turn:
        return f"{often}; not sent before this turn"
    return f"{often}; last sent {_turns(turn - usage.last_sent_turn)} ago, more than {_cooldown(usage, settings)}"


def _waiting(memory_id: str, usage: Usage, turn: int, settings: LearningSettings) -> Injection:
    since, cooldown = turn - usage.last_sent_turn, _cooldown(usage, settings)
    return Injection(
        memory_id=memory_id,
        usage=usage,
        probability=since / (cooldown + 1),
        status=InjectionStatus.COOLING_DOWN,
        reason=_why_not(usage.frequency, since, cooldown),
    )


@lru_cache(1024)
def _why_not(frequency: int, since: int, cooldown: int) -> str:
    return f"{_often(frequency)}; last sent {_turns(since)} ago, again after more than {cooldown}"


def _injecting(memory_id: str, usage: Usage, reason: str) -> Injection:
    return Injection(memory_id=memory_id, usage=usage, probability=1.0, status=InjectionStatus.INJECTING, reason=reason)


def _often(frequency: int) -> str:
    return f"referenced {'once' if frequency == 1 else f'{frequency} times'}"


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"
