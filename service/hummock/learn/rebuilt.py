"""A project's learning in memory: what its events fold to, without a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hummock.core.learning import LearningChanges, LearningState, Profile, Usage
from hummock.core.learning_events import LearningEvent
from hummock.learn.fold import fold


class Rebuilt:
    """The learning after some events; at first after none. It keeps no log."""

    def __init__(self) -> None:
        self._state = LearningState()
        self._turns: dict[str, int] = {}
        self._usage: dict[str, dict[str, Usage]] = {}
        self._profiles: dict[str, Profile] = {}

    def apply(self, event: LearningEvent) -> None:
        """One event more."""
        self._change(fold(self, event))

    def state(self) -> LearningState:
        """What concerns the whole project."""
        return self._state

    def turn(self, scope: str) -> int | None:
        """The scope's newest turn; None for one that has had none."""
        return self._turns.get(scope)

    def used(self, scope: str, memory_id: str) -> Usage | None:
        """How the scope has used a memory; None when it never did."""
        return self._usage.get(scope, {}).get(memory_id)

    def profile(self, memory_id: str) -> Profile | None:
        """What was learnt of a memory; None when it was never analysed and has no keywords."""
        return self._profiles.get(memory_id)

    def scope(self, scope: str) -> Mapping[str, Usage]:
        """All that the scope has used, by memory id, in no particular order; it follows further events."""
        return self._usage.get(scope, {})

    def usage(self, scope: str) -> dict[str, Usage]:
        """All that the scope has used, by memory id, in the order of their UTF-8 bytes."""
        return dict(sorted(self.scope(scope).items()))

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        """All profiles with their memory ids, in the order of their UTF-8 bytes."""
        return iter(sorted(self._profiles.items()))

    def scopes(self) -> Iterator[tuple[str, int]]:
        """All scopes that have had a turn, with their newest."""
        return iter(self._turns.items())

    def _change(self, changes: LearningChanges) -> None:
        self._state = changes.state
        self._turns.update(changes.turns)
        for (scope, memory_id), usage in changes.usage.items():
            self._usage.setdefault(scope, {})[memory_id] = usage
        self._profiles.update(changes.profiles)
        for memory_id in changes.forgotten:
            self._profiles.pop(memory_id, None)
            for used in self._usage.values():
                used.pop(memory_id, None)
