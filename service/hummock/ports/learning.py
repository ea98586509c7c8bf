"""Ports of stored learning: reads, and the log that writes append to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from hummock.core.learning import LearningChanges, LearningEvent, LearningState, LoggedEvent, Profile, Usage


class LearningView(Protocol):
    """The state that folding an event reads, as of one moment."""

    def state(self) -> LearningState:
        """What concerns the whole project."""

    def turn(self, scope: str) -> int | None:
        """The scope's newest turn; None for one that has had none."""

    def used(self, scope: str, memory_id: str) -> Usage | None:
        """Return the scope's usage of a memory; None if it never used it."""

    def profile(self, memory_id: str) -> Profile | None:
        """Return the profile of a memory; None if it was never analysed and has no keywords."""


class LearningRows(LearningView, Protocol):
    """All that a project has learnt."""

    def usage(self, scope: str) -> dict[str, Usage]:
        """Return the scope's usage by memory id, ordered by UTF-8 bytes."""

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        """All profiles with their memory ids, in the order of their UTF-8 bytes."""

    def scopes(self) -> Iterator[tuple[str, int]]:
        """All scopes that have had a turn, with their newest; in no particular order."""


class LearningReader(LearningRows, Protocol):
    """A project's learning with its log. An unknown project has learnt nothing."""

    def version(self) -> tuple[int, int]:
        """Number of the project, which no later one of its name has, and of its newest event.

        Usage, profiles and settings are equal in equal versions.
        """

    def events(self, after: int, limit: int) -> list[LoggedEvent]:
        """The events behind the one of number `after` (0: the first), up to `limit` further; oldest first.

        Numbers have no gaps but for what is damaged, which is left out.
        """


class LearningUnit(LearningReader, Protocol):
    """Learning within a unit of work: reads see its own writes and the state at its beginning."""

    def append(self, event: LearningEvent, changes: LearningChanges, time: float | None = None) -> None:
        """Log an event and store its changes; `changes.state.events` is its number, a time of None means now.

        Use `log.record`, which folds the event.
        """

    def rewrite(self, number: int, event: LearningEvent) -> None:
        """Puts another event in the place of one that is logged; its time stays, and so does all that it changed."""

    def drop_scope(self, scope: str) -> None:
        """Removes the turn and the usage of a scope that no event names any more."""
