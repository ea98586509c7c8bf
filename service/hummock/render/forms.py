"""The forms by name, each with its budget. A new form is a function and a line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hummock.core.render import RenderForm, Tier
from hummock.render.context import CONTEXT_BUDGET_TOKENS, render_context
from hummock.render.listing import LIST_BUDGET_TOKENS, render_index, render_memories
from hummock.render.selection import Form
from hummock.render.waterfall import WATERFALL_BUDGET_TOKENS, render_waterfall


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOfText:
    """How a form is written.

    Attributes:
        budget_tokens: Where the caller says none.
        tier: The most that it shows of a memory.
        by_kind: Whether it keeps each kind by itself.
    """

    write: Form
    budget_tokens: int
    tier: Tier = Tier.FULL
    by_kind: bool = False


FORMS: Final[dict[RenderForm, FormOfText]] = {
    RenderForm.CONTEXT: FormOfText(write=render_context, budget_tokens=CONTEXT_BUDGET_TOKENS, by_kind=True),
    RenderForm.WATERFALL: FormOfText(write=render_waterfall, budget_tokens=WATERFALL_BUDGET_TOKENS),
    RenderForm.INDEX: FormOfText(write=render_index, budget_tokens=LIST_BUDGET_TOKENS, tier=Tier.INDEX),
    RenderForm.MEMORIES: FormOfText(write=render_memories, budget_tokens=LIST_BUDGET_TOKENS),
    RenderForm.MESSAGES: FormOfText(write=render_memories, budget_tokens=LIST_BUDGET_TOKENS),
}
