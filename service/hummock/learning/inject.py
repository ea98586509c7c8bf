"""Chooses the entries of a turn's prompt: a pure function of how they were used."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import filterfalse, islice

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.learning import NEVER, Injection, InjectionStatus, LearningSettings, Usage


@dataclass(frozen=True, slots=True, eq=False)
class ScopeUsage:
    """How a scope used memories, by id and as columns.

    Attributes:
        ids: Ascending.
        numbers: `frequency` and `last_sent_turn` of each of `ids`, (n, 2) int64.
    """

    by_id: Mapping[str, Usage]
    ids: list[str]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, by_id: Mapping[str, Usage]) -> ScopeUsage:
        """The columns of this usage, which must not change."""
        ids = sorted(by_id)
        numbers = [(used.frequency, used.last_sent_turn) for used in map(by_id.__getitem__, ids)]
        return cls(by_id, ids, np.array(numbers, np.int64).reshape(-1, 2))

    def after(self, changed: Mapping[str, Usage]) -> ScopeUsage:
        """The usage with these memories used as given."""
        if not changed:
            return self
        by_id = {**self.by_id, **changed}
        if len(by_id) > len(self.ids):
            return ScopeUsage.of(by_id)
        numbers = self.numbers.copy()
        places = [bisect_left(self.ids, memory_id) for memory_id in changed]
        numbers[places] = [(used.frequency, used.last_sent_turn) for used in changed.values()]
        return ScopeUsage(by_id, self.ids, numbers)


def decide(
    usage: ScopeUsage,
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
        usage: Usage in the scope.
        referenced: Ids that this turn refers to, in the order to try them; used before or not.
        turn: The turn's number.
        settings: The bounds and cooldowns.
        most_waiting: Most rows of entries that are not injected; None for all.

    Returns:
        First the forced ones in their order; then those injected by use, the most often referenced first; then those
        that wait, the most probable first. Ties go by id.
    """
    by_id = usage.by_id
    forced = [_forced(memory_id, by_id.get(memory_id, Usage()), turn) for memory_id in dict.fromkeys(referenced)]
    coming, waiting = _parted(usage, referenced, turn, settings)
    by_use = [_injecting(one, by_id[one], _why(by_id[one], turn, settings)) for one in coming]
    return (*forced, *by_use, *[_waiting(one, by_id[one], turn, settings) for one in islice(waiting, most_waiting)])


def injected_ids(
    usage: ScopeUsage, referenced: Collection[str], turn: int, settings: LearningSettings
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
    usage: ScopeUsage, referenced: Collection[str], turn: int, settings: LearningSettings
) -> tuple[Iterator[str], Iterator[str]]:
    """Split unreferenced entries into those injected by use and those that wait, each in the order of the table."""
    frequency, last_sent_turn = usage.numbers.T
    since = turn - last_sent_turn
    cooldown = np.where(frequency > settings.mid_above, settings.mid_cooldown_turns, settings.low_cooldown_turns)
    waits = (frequency <= settings.high_above) & (since > 0) & (since <= cooldown) & (last_sent_turn != NEVER)
    coming, waiting = np.flatnonzero(~waits), np.flatnonzero(waits)
    share = since[waiting] / (cooldown[waiting] + 1)
    orders = coming[np.argsort(-frequency[coming], kind="stable")], waiting[np.argsort(-share, kind="stable")]
    named = [map(usage.ids.__getitem__, order.tolist()) for order in orders]
    forced = set(referenced)
    return filterfalse(forced.__contains__, named[0]), filterfalse(forced.__contains__, named[1])


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
