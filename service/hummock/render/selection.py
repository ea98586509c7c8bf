"""What goes into a rendering and what comes out of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hummock.core.memory import Memory, MemoryKind
from hummock.core.project import ProjectInfo
from hummock.core.render import Quotas, RenderedMemory, Tier, ToolDefinition
from hummock.render.headings import Wording
from hummock.text.tokens import TokenCounter


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
            trust=self.memory.trust,
            origin=self.memory.origin,
        )

    def dropped(self, reason: str) -> RenderedMemory:
        """That it was left out."""
        return self.rendered(Tier.DROPPED, 0, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What every form is told beside the memories.

    Attributes:
        wording: The language.
        budget_tokens: Upper bound on the tokens of the whole text.
        info: None where the project is not known, or stands elsewhere already.
        as_of: The "now" of ages, in Unix seconds.
        utc_offset_minutes: By which the reader's clock is ahead.
        read_tool: The name of the tool that reads a memory.
        force_best: Whether a form that always shows the best memory in full does so.
        standing: The kinds of the memories that stand in front already, each as often as it does: they count against
            quotas, and numbers go on behind them.
    """

    wording: Wording
    budget_tokens: int
    counter: TokenCounter
    info: ProjectInfo | None = None
    as_of: float = 0.0
    utc_offset_minutes: int = 0
    quotas: Quotas = field(default_factory=Quotas)
    read_tool: str = "read_memory"
    force_best: bool = True
    standing: tuple[MemoryKind, ...] = ()


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


Form = Callable[[tuple[Selected, ...], Frame], Section]
"""Writes memories, best first and without duplicates, into a text within the frame's budget."""
