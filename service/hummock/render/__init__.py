from hummock.render.context import CONTEXT_BUDGET_TOKENS, render_context
from hummock.render.headings import Wording, locale_of, wording_of
from hummock.render.selection import Section, Selected
from hummock.render.waterfall import WATERFALL_BUDGET_TOKENS, render_waterfall

__all__ = [
    "CONTEXT_BUDGET_TOKENS",
    "WATERFALL_BUDGET_TOKENS",
    "Section",
    "Selected",
    "Wording",
    "locale_of",
    "render_context",
    "render_waterfall",
    "wording_of",
]
