"""The learning loop: what is injected, what events make of the state, what replaying them shows."""

from __future__ import annotations

from hummock.learn.digest import digest
from hummock.learn.fold import fold, merged
from hummock.learn.inject import decide, idle, injected_ids, plain
from hummock.learn.rebuilt import Rebuilt
from hummock.learn.record import record
from hummock.learn.references import ProjectReferences
from hummock.learn.replay import ForkedHistory

__all__ = [
    "ForkedHistory",
    "ProjectReferences",
    "Rebuilt",
    "decide",
    "digest",
    "fold",
    "idle",
    "injected_ids",
    "merged",
    "plain",
    "record",
]
