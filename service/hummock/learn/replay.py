"""The same history, decided by other numbers. It calls no model and touches nothing that is in use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hummock.core.learning import LearningSettings
from hummock.core.learning_events import Injected, LoggedEvent
from hummock.core.learning_queries import Fork, ForkedTurn
from hummock.learn.inject import injected_ids
from hummock.learn.rebuilt import Rebuilt

MOST_DIFFERING: Final = 1000
"""Turns that a fork lists."""


class ForkedHistory:
    """What would have been injected, had the numbers been others from the beginning.

    What was said, and so what was referred to, stays as it was. What had no room then has none in the fork; whatever
    else it injects is taken to have had room.
    """

    def __init__(self, changed: Callable[[LearningSettings], LearningSettings]) -> None:
        """Args: what the fork makes of the numbers that were in use at a time."""
        self._changed = changed
        self._rebuilt = Rebuilt()
        self._turn_count = 0
        self._injected_count = 0
        self._forked_count = 0
        self._differing_count = 0
        self._differing: list[ForkedTurn] = []

    def apply(self, logged: LoggedEvent) -> None:
        """One event more. Raises: what the numbers raise that do not fit those of the time."""
        event = logged.event
        if isinstance(event, Injected) and self._rebuilt.state().enabled:
            event = self._decided_anew(logged.number, event)
        self._rebuilt.apply(event)

    def report(self) -> Fork:
        """What it came to so far."""
        return Fork(
            settings=self._changed(self._rebuilt.state().settings),
            turn_count=self._turn_count,
            injected_count=self._injected_count,
            forked_injected_count=self._forked_count,
            differing_count=self._differing_count,
            differing=tuple(self._differing),
        )

    def _decided_anew(self, number: int, event: Injected) -> Injected:
        settings = self._changed(self._rebuilt.state().settings)
        injected = injected_ids(self._rebuilt.scope(event.scope), event.referenced_ids, event.turn, settings)
        chosen = set(injected)
        self._note(number, event, injected)
        return replace(
            event,
            injected_ids=injected,
            dropped_ids=tuple(memory_id for memory_id in event.dropped_ids if memory_id in chosen),
        )

    def _note(self, number: int, event: Injected, injected: tuple[str, ...]) -> None:
        self._turn_count += 1
        self._injected_count += len(event.injected_ids)
        self._forked_count += len(injected)
        added = tuple(sorted(set(injected).difference(event.injected_ids)))
        removed = tuple(sorted(set(event.injected_ids).difference(injected)))
        if not added and not removed:
            return
        self._differing_count += 1
        if len(self._differing) < MOST_DIFFERING:
            self._differing.append(
                ForkedTurn(event=number, scope=event.scope, turn=event.turn, added_ids=added, removed_ids=removed)
            )
