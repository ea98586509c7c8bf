from hummock.render.compose import compose, marked
from hummock.render.context import CONTEXT_BUDGET_TOKENS, render_context
from hummock.render.forms import FORMS
from hummock.render.headings import Wording, locale_of, wording_of
from hummock.render.listing import render_index, render_memories
from hummock.render.prompt import conversation, joined
from hummock.render.selection import Frame, Section, Selected
from hummock.render.stable import render_stable
from hummock.render.tools import search
from hummock.render.waterfall import WATERFALL_BUDGET_TOKENS, render_waterfall

__all__ = [
    "CONTEXT_BUDGET_TOKENS",
    "FORMS",
    "WATERFALL_BUDGET_TOKENS",
    "Frame",
    "Section",
    "Selected",
    "Wording",
    "compose",
    "conversation",
    "joined",
    "locale_of",
    "marked",
    "render_context",
    "render_index",
    "render_memories",
    "render_stable",
    "render_waterfall",
    "search",
    "wording_of",
]
