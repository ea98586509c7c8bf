"""Writing an event down: the only way to change what a project has learnt."""

from __future__ import annotations

from hummock.core.learning_events import LearningEvent
from hummock.learn.fold import fold
from hummock.ports.learning import LearningUnit


def record(learning: LearningUnit, event: LearningEvent) -> None:
    """Logs the event and stores what it changes. What it names must exist in the project."""
    learning.append(event, fold(learning, event))
