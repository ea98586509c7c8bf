"""What a rendering is asked for and what it answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from hummock.core.errors import InvalidRequest
from hummock.core.memory import MemoryKind
from hummock.core.recall import Degradation, Intent, RecallQuery, Receipt

MAX_BUDGET_TOKENS = 1_000_000


class RenderForm(IntEnum):
    """The form of a rendered section."""

    CONTEXT = 1
    WATERFALL = 2


class Locale(IntEnum):
    """The language of headings."""

    ZH = 1
    EN = 2


class Tier(IntEnum):
    """How much of a memory was rendered."""

    FULL = 1
    INDEX = 2
    DROPPED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderQuery:
    """A rendering as it was asked for: either of a recall, or of memories by id.

    `budget_tokens` of None means the form's own; `locale` of None follows the query's script.
    """

    project: str
    recall: RecallQuery | None = None
    memory_ids: tuple[str, ...] = ()
    form: RenderForm = RenderForm.CONTEXT
    budget_tokens: int | None = None
    locale: Locale | None = None

    def __post_init__(self) -> None:
        if (self.recall is None) == (not self.memory_ids):
            raise InvalidRequest("source", "must be either recall or memories")
        if self.budget_tokens is not None and not 1 <= self.budget_tokens <= MAX_BUDGET_TOKENS:
            raise InvalidRequest("budget_tokens", f"is {self.budget_tokens}; it must be 1 to {MAX_BUDGET_TOKENS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedMemory:
    """What became of one memory; `score` is 0 when it was named by id, `reason` is for people."""

    memory_id: str
    kind: MemoryKind
    tier: Tier
    token_count: int
    reason: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool that a model can be offered; `input_schema` is JSON schema."""

    name: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A prompt section.

    Attributes:
        token_count: Estimated tokens of the text.
        over_budget: True when the best memory alone is larger than the budget and was rendered all the same.
        memories: Every memory that was considered, in the order of the text.
        intent: None without a recall, as is `receipt`.
    """

    text: str
    token_count: int
    budget_tokens: int
    over_budget: bool
    memories: tuple[RenderedMemory, ...]
    tools: tuple[ToolDefinition, ...]
    missing_ids: tuple[str, ...]
    intent: Intent | None
    receipt: Receipt | None
    degraded: tuple[Degradation, ...]
    render_elapsed_s: float
    seq: int
