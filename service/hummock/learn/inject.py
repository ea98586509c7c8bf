"""What a turn's prompt holds of the entries: a pure function of how they were used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from hummock.core.learning import NEVER, Injection, InjectionStatus, LearningSettings, Usage

_FORCED: Final = "referenced in this turn"
_NEVER_SENT: Final = "never sent so far"
_AGAIN: Final = "not sent before this turn"
_UNUSED: Final = "nobody has referred to it here"
_OFF: Final = "learning is off: every entry comes"


def decide(
    usage: Mapping[str, Usage], referenced: Collection[str], turn: int, settings: LearningSettings
) -> tuple[Injection, ...]:
    """The injection table of a turn.

    What the turn refers to is forced in. Of the rest, what was referenced more often than `high_above` always comes;
    the others when more turns than their cooldown have passed since they were sent. What was last sent in this turn or
    a later one (a turn was generated again, or a conversation taken up earlier) was not sent in this conversation: like
    what was never sent, it has no cooldown to wait for.

    Args:
        usage: All that the scope has used, by memory id.
        referenced: Ids that this turn refers to, in the order in which they are to be tried; used before or not.
        turn: The turn's number.
        settings: The bounds and cooldowns.

    Returns:
        A row for each id of either. First the forced ones in their order; then those that are injected by use, the most
        often referenced first, equal ones by id; then the others by id.
    """
    forced = tuple(_forced(memory_id, usage.get(memory_id, Usage())) for memory_id in dict.fromkeys(referenced))
    others = [
        _by_use(memory_id, usage[memory_id], turn, settings) for memory_id in sorted(set(usage).difference(referenced))
    ]
    injected = sorted((row for row in others if row.injected), key=lambda row: -row.usage.frequency)
    return (*forced, *injected, *(row for row in others if not row.injected))


def idle(memory_id: str) -> Injection:
    """The row of an entry that the scope has never used."""
    return Injection(memory_id=memory_id, usage=Usage(), probability=0.0, status=InjectionStatus.IDLE, reason=_UNUSED)


def plain(memory_id: str, usage: Usage | None) -> Injection:
    """The row of an entry while learning is off."""
    return _injecting(memory_id, usage or Usage(), _OFF)


def _forced(memory_id: str, usage: Usage) -> Injection:
    counted = Usage(frequency=usage.frequency + 1, last_sent_turn=usage.last_sent_turn)
    return Injection(
        memory_id=memory_id,
        usage=counted,
        probability=1.0,
        status=InjectionStatus.INJECTING,
        reason=_FORCED,
        forced=True,
    )


def _by_use(memory_id: str, usage: Usage, turn: int, settings: LearningSettings) -> Injection:
    count = usage.frequency
    often = f"referenced {_times(count)}"
    if count > settings.high_above:
        return _injecting(memory_id, usage, f"{often}: more than {settings.high_above}, always")
    if usage.last_sent_turn == NEVER:
        return _injecting(memory_id, usage, f"{often}; {_NEVER_SENT}")
    since = turn - usage.last_sent_turn
    if since <= 0:
        return _injecting(memory_id, usage, f"{often}; {_AGAIN}")
    cooldown = settings.mid_cooldown_turns if count > settings.mid_above else settings.low_cooldown_turns
    sent = f"{often}; last sent {_turns(since)} ago"
    if since > cooldown:
        return _injecting(memory_id, usage, f"{sent}, more than {cooldown}")
    return Injection(
        memory_id=memory_id,
        usage=usage,
        probability=since / (cooldown + 1),
        status=InjectionStatus.COOLING_DOWN,
        reason=f"{sent}, again after more than {cooldown}",
    )


def _injecting(memory_id: str, usage: Usage, reason: str) -> Injection:
    return Injection(memory_id=memory_id, usage=usage, probability=1.0, status=InjectionStatus.INJECTING, reason=reason)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"
