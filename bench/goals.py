"""The rows of the short table, in their order, with the goal of each: what `make bench` tells a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Compared = Literal["ratio", "difference", "value"]
"""What a goal limits: our figure divided by the other, our figure less the other, or our figure alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A peer, or the least that the work can take, measured in the same run.

    Attributes:
        name: Name, with the version.
        value: Time or rate, above 0.
        unit: Unit of the value.
    """

    name: str
    value: float
    unit: str = "ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A row's name and its goal.

    Attributes:
        part: Part of the bench that measures it.
        what: What is measured, in words of the field.
        limit: The goal; None if the row has none.
        compared: What the limit holds for.
        at_least: Whether larger is better.
        unit: Unit of our figure.
    """

    part: str
    what: str
    limit: float | None = None
    compared: Compared = "value"
    at_least: bool = False
    unit: str = "ms"

    def __str__(self) -> str:
        if self.limit is None:
            return "–"
        units = {"ratio": " ×", "difference": f" {self.unit} more", "value": f" {self.unit}".rstrip()}
        return f"{'≥' if self.at_least else '≤'} {self.limit:,.10g}{units[self.compared]}"


_RECALL = "Recall among 100,000 memories"
GOALS: Mapping[str, Goal] = {
    "recall in process": Goal(part="recall", what=f"{_RECALL}, in process, p50", limit=0.3, compared="ratio"),
    "recall": Goal(part="recall", what=f"{_RECALL}, over gRPC, p50", limit=0.75, compared="ratio"),
    "wire": Goal(
        part="recall",
        what="Recall over gRPC, against in process plus a bare reply, p50",
        limit=0.7,
        compared="difference",
    ),
    "cached": Goal(part="recall", what="Recall over gRPC, answered from the cache, p50"),
    "clients": Goal(part="load", what="Recalls of 16 clients, one process", limit=1300, at_least=True, unit="calls/s"),
    "readers": Goal(part="load", what="Recalls of 16 clients, a process for each core", unit="calls/s"),
    "Chinese": Goal(
        part="model", what="Recall by a Chinese text, models included, p50", limit=1.3, compared="difference"
    ),
    "English": Goal(
        part="model", what="Recall by an English text, models included, p50", limit=1.3, compared="difference"
    ),
    "render": Goal(part="render", what="Render of 50 Chinese memories into 4,000 tokens, p50", limit=1.2),
    "turn": Goal(part="turn", what="RenderTurn in a project with 1,000 learnt entries, p50", limit=6),
    "learn": Goal(part="learn", what="One durable Learn over gRPC, p50", limit=2),
    "writers": Goal(
        part="learn", what="Durable Learns of 64 writers, over gRPC", limit=2000, at_least=True, unit="memories/s"
    ),
    "stream": Goal(part="bulk", what="LearnStream with vectors", limit=12_000, at_least=True, unit="memories/s"),
    "start": Goal(part="start", what="Start of the service until its first answer", unit="s"),
    **{
        f"goodput {times}": Goal(
            part="overload",
            what=f"Recalls answered at {times} × the peak rate",
            limit=0.8,
            compared="ratio",
            at_least=True,
            unit="calls/s",
        )
        for times in (2, 5, 10)
    },
    "quiet": Goal(part="flood", what="A quiet caller's recall in a flood of another's, p95", limit=3, compared="ratio"),
    "xquad zh": Goal(part="quality", what="Recall@10 of Chinese questions, XQuAD", at_least=True, unit=""),
    "cosqa code": Goal(part="quality", what="Recall@10 of questions about code, CoSQA", at_least=True, unit=""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A row of the short table.

    Attributes:
        name: Key of its goal in GOALS.
        what: What was measured.
        ours: Our figure.
        unit: Unit of both figures.
        beside: Name of what was measured beside it, with its version; empty if nothing was.
        theirs: Figure of that; None if nothing was.
        ratio: Ours divided by theirs.
        goal: The goal for people, `–` if there is none.
        reached: Whether the goal is kept; None if there is none.
    """

    name: str
    what: str
    ours: float
    unit: str
    beside: str
    theirs: float | None
    ratio: float | None
    goal: str
    reached: bool | None

    @classmethod
    def of(cls, name: str, ours: float, beside: Judge | None = None, more: str = "") -> Headline:
        """The row of a goal of GOALS; `more` is added to what was measured."""
        goal = GOALS[name]
        ratio = ours / beside.value if beside else None
        value = ours
        if beside is not None and ratio is not None and goal.compared != "value":
            value = ratio if goal.compared == "ratio" else ours - beside.value
        reached = None
        if goal.limit is not None:
            reached = value >= goal.limit if goal.at_least else value <= goal.limit
        return cls(
            name=name,
            what=f"{goal.what}{more}",
            ours=ours,
            unit=goal.unit,
            beside=beside.name if beside else "",
            theirs=beside.value if beside else None,
            ratio=ratio,
            goal=str(goal),
            reached=reached,
        )

    def cells(self) -> tuple[str, ...]:
        """The row for people: what, ours, the other, the ratio and the goal; what misses its goal is bold."""
        mark = "**" if self.reached is False else ""
        ours = f"{mark}{_shown(self.ours, self.unit)}{mark}"
        if self.theirs is None or self.ratio is None:
            return self.what, ours, "–", "–", self.goal
        ratio = f"{self.ratio:.2f}"
        if GOALS[self.name].compared == "difference":
            ratio += f" ({self.ours - self.theirs:+.2f} {self.unit})"
        return self.what, ours, f"{self.beside}: {_shown(self.theirs, self.unit)}", ratio, self.goal


def _shown(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}".rstrip()
