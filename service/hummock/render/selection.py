"""What goes into a rendering and what comes out of one."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.memory import Memory
from hummock.core.render import RenderedMemory, Tier, ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """A memory that is to be rendered. `score` is in [0, 1], larger is better; None when nobody ranked it."""

    memory: Memory
    score: float | None = None

    def rendered(self, tier: Tier, token_count: int, reason: str) -> RenderedMemory:
        """What became of it."""
        return RenderedMemory(
            memory_id=self.memory.id,
            kind=self.memory.kind,
            tier=tier,
            token_count=token_count,
            reason=reason,
            score=self.score or 0.0,
        )

    def dropped(self, reason: str) -> RenderedMemory:
        """That it was left out."""
        return self.rendered(Tier.DROPPED, 0, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A rendered text.

    Attributes:
        token_count: Of the whole text.
        over_budget: True when a forced memory alone is larger than the budget.
        memories: All that were selected, in the order of the text.
        tools: Those that the text speaks of.
    """

    text: str = ""
    token_count: int = 0
    over_budget: bool = False
    memories: tuple[RenderedMemory, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
