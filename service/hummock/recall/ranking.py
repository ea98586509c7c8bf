"""The groups of one recall in order, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.candidates import Gathered
from hummock.core.recall import Degradation, Plan
from hummock.recall.diversify import Picked
from hummock.recall.fuse import Fused
from hummock.recall.gather import Probe


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """What a recall knows when its hits are chosen; groups are in the plan's order.

    Attributes:
        plan: What was asked for.
        probe: The query in the forms that the paths need.
        gathered: Every group's candidates.
        fused: Those that are left, in order.
        picked: The hits.
        cross_encoded: How many candidates the cross-encoder read.
        degraded: What could not be done.
    """

    plan: Plan
    probe: Probe
    gathered: Gathered
    fused: tuple[Fused, ...]
    picked: tuple[Picked, ...]
    cross_encoded: int
    degraded: tuple[Degradation, ...]
