"""The time budget of one recall: durations of its stages, and which of the next ones still fit before the deadline."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from threading import Lock

from hummock.core.deadline import Estimate
from hummock.core.recall import Degradation, StageTime
from hummock.ports.models import Clock

RESERVE_S = 0.005
"""Least time reserved for making and sending the reply, in seconds."""

RESERVED_SHARE = 0.05
"""Share of the time that is kept in reserve, if that is more than the fixed reserve."""

DEADLINE = "DEADLINE"
"""Reason of a degradation for lack of time."""

GATHER, GATHER_BY_VECTOR, GATHER_ALL, SCAN = "gather", "gather_by_vector", "gather_all", "scan"
"""Kinds of searches by cost: by words, also by vector, also with token vectors; SCAN reads texts."""

_DEARER = {GATHER: GATHER_BY_VECTOR, GATHER_BY_VECTOR: GATHER_ALL}
"""The next more expensive kind, whose cost bounds that of a search never made before."""

PROJECTS = 1024
"""Projects whose stages are remembered; a search's time depends on its project."""

_FADING = 1 / 256
"""Share by which the estimate of a stage shrinks each time the stage is skipped. A stage expected to take twice the
remaining time is tried again after some 180 calls, and may then cost one of them its deadline."""

Costs = defaultdict[str, Estimate]


class StageCosts:
    """Expected times of each stage in each project. Safe to call from several threads."""

    def __init__(self, projects: int = PROJECTS) -> None:
        """Remember the costs of this many projects, the most recently used."""
        self._projects = projects
        self._costs: OrderedDict[str, Costs] = OrderedDict()
        self._lock = Lock()

    def of(self, project: str) -> Costs:
        """A project's estimates by the names of stages; they change as recalls are made."""
        with self._lock:
            costs = self._costs.pop(project, None)
            if costs is None:
                costs = defaultdict(Estimate)
            self._costs[project] = costs
            if len(self._costs) > self._projects:
                self._costs.popitem(last=False)
            return costs


class StageBudget:
    """Measures the stages of one recall, which follow one another; one that runs again adds to its time.

    What gives way to the deadline does so in a fixed order, and nothing that gives way earlier runs where something
    that gives way later was left out: more time never takes a stage away.

    Attributes:
        left_out: The degradation for each path that was left out, in the order of the decisions.
    """

    def __init__(self, clock: Clock, costs: Costs, until_s: float | None) -> None:
        """`until_s` is when the caller stops waiting, on the clock's monotonic scale; None means never."""
        self._monotonic = clock.monotonic
        self._costs = costs
        self._start = clock.monotonic()
        self._until_s = None if until_s is None else until_s - max(RESERVE_S, RESERVED_SHARE * (until_s - self._start))
        self._runs: list[tuple[str, str, float]] = []
        self.left_out: dict[str, Degradation] = {}

    def done(self, stage: str, kind: str = "") -> None:
        """Takes the time since the end of the stage before as this one's; `kind` is what costs are known by."""
        self._runs.append((stage, kind or stage, self._monotonic()))

    def end(self) -> tuple[tuple[StageTime, ...], float]:
        """The stages that ran, in their order, and the seconds from the first to the last; estimates follow now."""
        since, runs = self._start, []
        took_s: dict[str, float] = {}
        for stage, kind, until in self._runs:
            took_s[stage] = took_s.get(stage, 0.0) + until - since
            runs.append((self._costs[kind], until - since))
            since = until
        Estimate.add_each(runs)
        times = [StageTime(stage=stage, elapsed_s=elapsed_s) for stage, elapsed_s in took_s.items()]
        return tuple(times), since - self._start

    def until_s_of_the_least(self, *after: str) -> float | None:
        """Deadline of the stage that gives way first, so that these stages can follow; None without a deadline.

        It is in the past if anything else had to be left out.
        """
        if self.left_out:
            return -math.inf
        return None if self._until_s is None else self._until_s - self._expected_s(after)

    def left_s(self, *after: str) -> float | None:
        """The time that there is for a stage where these follow, perhaps below 0; None without a deadline."""
        return None if self._until_s is None else self._until_s - self._expected_s(after) - self._monotonic()

    def fits(self, path: str, *stages: str) -> bool:
        """Whether there is time for these stages; if not, the path is left out.

        What gives way earlier than something that was left out already is left out too.
        """
        if self._until_s is None:
            return True
        left_s = self._until_s - self._monotonic()
        if path in self.left_out:
            return False
        if self.left_out:
            self.leave_out(path, f"{' and '.join(self.left_out)} had to be left out before it")
            return False
        expected_s = self._expected_s(stages)
        if expected_s <= left_s:
            return True
        for stage in stages:
            # A stage that runs anyway is measured again at once.
            self._cost(stage).fade(_FADING)
        self.leave_out(path, f"it and what follows would take {_ms(expected_s)} of the {_ms(left_s)} that were left")
        return False

    def leave_out(self, path: str, message: str) -> None:
        """Record that a path was left out for lack of time."""
        self.left_out[path] = Degradation(path=path, reason=DEADLINE, message=message)

    def _expected_s(self, stages: tuple[str, ...]) -> float:
        return Estimate.together_s([self._cost(stage) for stage in stages])

    def _cost(self, stage: str) -> Estimate:
        cost = self._costs[stage]
        return cost if cost.expected_s or stage not in _DEARER else self._cost(_DEARER[stage])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
