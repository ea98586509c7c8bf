"""Requests and results of renderings and of the search that a model asks for, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import asdict

from hummock.core.errors import InvalidRequest
from hummock.core.learning import TurnDecision
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import Degradation, Intent, NothingKnown, RecallQuery, Receipt
from hummock.core.session import HistoryQuery, PromptMessage, PromptTarget, PromptTemplate
from hummock.core.tools import ToolDefinition

MAX_BUDGET_TOKENS = 1_000_000
MAX_PREFIX_MEMORIES = 128
READ_TOOLS = ("read_memory", "read_memory_artifact")


class RenderForm(IntEnum):
    """The form of a rendered section."""

    CONTEXT = 1
    WATERFALL = 2
    INDEX = 3
    MEMORIES = 4
    MESSAGES = 5


class Locale(IntEnum):
    """The language of headings."""

    ZH = 1
    EN = 2


class Tier(IntEnum):
    """Amount of a memory that was rendered."""

    FULL = 1
    INDEX = 2
    DROPPED = 3


class MemoryMark(IntEnum):
    """Remark on a memory for the reader."""

    STALE = 1
    UNVERIFIED = 2
    INSTRUCTION_LIKE = 3
    LIKELY_REPLACED = 4
    PINNED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Quotas of the context form: how many memories of a kind, and how much of each text.

    `text_characters` cuts each at so many from its beginning, as the form's document has it; 0 shows its best lines.
    """

    domains: int = 3
    learning_records: int = 5
    code_fragments: int = 10
    text_characters: int = 0


LITERAL_QUOTAS = Quotas(code_fragments=3, text_characters=500)
"""Quotas of the form's document: of ten fragments three are shown, and each text to its 500th character (S0-24)."""


class PartialQuotas(Struct, array_like=True, frozen=True, kw_only=True):
    """Some of the quotas; None says nothing."""

    domains: int | None = None
    learning_records: int | None = None
    code_fragments: int | None = None
    text_characters: int | None = None

    def filled(self, below: PartialQuotas) -> Quotas:
        """Fill unset quotas from `below`, and then from the defaults."""
        said = {**asdict(below), **{name: quota for name, quota in asdict(self).items() if quota is not None}}
        usual = LITERAL_QUOTAS if said["text_characters"] else Quotas()
        return replace(usual, **{name: quota for name, quota in said.items() if quota is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMemory:
    """A memory that turns have recalled: how many, and which was the last."""

    memory_id: str
    turns: int
    last_turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixState:
    """State of the turns so far; the caller passes it from one rendering to the next.

    Attributes:
        turn: Renderings so far.
        base_turn: Turn in which the prefix was built.
        as_of: The "now" of the prefix, in Unix seconds, so that its marks do not change.
        locale: Language of the whole text, even if a later turn is written in another.
        prefix_ids: Memories of the prefix, in order, at most `MAX_PREFIX_MEMORIES`. A turn without room for all of them
            does not change this list.
        seen: Recalled memories, the most often recalled first, at most `MAX_PREFIX_MEMORIES`.
        prefix_tokens: Tokens of the prefix, summed over the turns since it was built; `all_tokens` of the whole text.
    """

    turn: int
    base_turn: int
    as_of: float
    locale: Locale
    prefix_ids: tuple[str, ...]
    seen: tuple[SeenMemory, ...] = ()
    prefix_tokens: int = 0
    all_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPlacement:
    """A request for a stable prefix. `state` is None in the first turn; `rebase` rebuilds the prefix."""

    state: PrefixState | None = None
    rebase: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderCommit:
    """Marks a rendering as the prompt of a turn, so that it counts; fields as in `ObserveCommand`."""

    scope: str
    turn: int
    request_id: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderQuery:
    """A rendering request: either of a recall, or of memories by id.

    Attributes:
        budget_tokens: None means the project's setting, or else the form's default.
        locale: None follows the query's script.
        prompt: Prompt to insert the section into; None for none. At most one of it and `template` is given.
        target: The role of that prompt.
        history: Earlier messages, for MESSAGES only.
        session: Source of the history instead; for MESSAGES only.
        current: The user's message of this turn; required for MESSAGES and only allowed there.
        read_ids: Memories to show before all others, in full.
        tail: Request for a stable prefix; None for none.
        as_of: The "now" of ages in Unix seconds; None means the clock's.
        utc_offset_minutes: Offset of the reader's clock; 0 means the time zone of the recall, or else the project's.
        read_tool: Name of the tool that reads a memory, one of `READ_TOOLS`.
        commit: None for a preview, which is not counted.
        must_exist: Whether an unknown project is an error; else its text is empty.
    """

    project: str
    recall: RecallQuery | None = None
    memory_ids: tuple[str, ...] = ()
    form: RenderForm = RenderForm.CONTEXT
    budget_tokens: int | None = None
    locale: Locale | None = None
    prompt: str | None = None
    template: PromptTemplate | None = None
    target: PromptTarget | None = None
    history: tuple[PromptMessage, ...] = ()
    current: PromptMessage | None = None
    read_ids: tuple[str, ...] = ()
    quotas: PartialQuotas = field(default_factory=PartialQuotas)
    tail: TailPlacement | None = None
    as_of: float | None = None
    utc_offset_minutes: int = 0
    read_tool: str = READ_TOOLS[0]
    session: HistoryQuery | None = None
    commit: RenderCommit | None = None
    must_exist: bool = False

    def __post_init__(self) -> None:
        if (self.recall is None) == (not self.memory_ids):
            raise InvalidRequest("source", "must be either recall or memories")
        if self.commit is not None and self.recall is None:
            raise InvalidRequest("recall", "is required for a turn: what is said decides which entries are referred to")
        if self.budget_tokens is not None and not 1 <= self.budget_tokens <= MAX_BUDGET_TOKENS:
            raise InvalidRequest("budget_tokens", f"is {self.budget_tokens}; it must be 1 to {MAX_BUDGET_TOKENS}")
        if self.form is RenderForm.MESSAGES:
            if self.current is None:
                raise InvalidRequest("current", "is required for MESSAGES")
            if self.target is not None:
                raise InvalidRequest("target", "is not for MESSAGES, whose memories are a message of their own")
            if self.session is not None and self.history:
                raise InvalidRequest("history", "is what the session gives; leave one of them out")
        elif self.current is not None or self.history or self.session is not None:
            field = "current" if self.current else "history" if self.history else "session"
            raise InvalidRequest(field, f"is for MESSAGES, not for {self.form.name}")


class RenderedMemory(Struct, frozen=True, kw_only=True):
    """Result for one memory; `score` is 0 when it was named by id, `reason` is for people."""

    memory_id: str
    kind: MemoryKind
    tier: Tier
    token_count: int
    reason: str
    score: float
    trust: float
    origin: Origin
    marks: tuple[MemoryMark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StablePrefix:
    """The stable part of a text, and the state to send with the next turn.

    `rebase_advised` means that it is too small a part of the text and that rebuilding it would help.
    """

    text: str
    token_count: int
    state: PrefixState
    rebase_advised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A prompt section.

    Attributes:
        over_budget: True if forced memories exceed the budget and were rendered anyway.
        memories: Every memory that was considered, in the order of the text.
        messages: The finished prompt; empty if only a section was requested.
        instructions: Text to add to the system prompt if the section mentions tools.
        counter: Name of the token counter.
        intent: None without a recall, as is `receipt`; `decision` without a commit, `prefix` unless it was requested.
        nothing_known: As in `Recalled`.
    """

    text: str
    token_count: int
    budget_tokens: int
    over_budget: bool
    memories: tuple[RenderedMemory, ...]
    tools: tuple[ToolDefinition, ...]
    messages: tuple[PromptMessage, ...]
    instructions: str
    prefix: StablePrefix | None
    missing_ids: tuple[str, ...]
    counter: str
    intent: Intent | None
    receipt: Receipt | None
    degraded: tuple[Degradation, ...]
    render_elapsed_s: float
    seq: int
    decision: TurnDecision | None = None
    nothing_known: NothingKnown | None = None


class SearchScope(IntEnum):
    """Kinds of data that a search covers."""

    CODE = 1
    KNOWLEDGE = 2
    BOTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search request; fields as in `RecallQuery`.

    Attributes:
        top_k: None means the project's setting for the agent's preset, or else the preset's default.
        unseen_first: Whether results already shown in this conversation come last.
    """

    project: str
    text: str
    top_k: int | None = None
    scope: SearchScope = SearchScope.BOTH
    filter: Filter = field(default_factory=Filter)
    min_seq: int = 0
    as_of: float | None = None
    until_s: float | None = field(default=None, compare=False)
    session_id: str = ""
    unseen_first: bool = False
    time_zone: str = ""
    allow_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One result: `type` is "code" or "knowledge", `content` is cut, `metadata` holds plain JSON values.

    `notes` says to a reader who said it and when, each in parentheses after a space; empty for neither.
    """

    type: str
    memory_id: str
    title: str
    content: str
    score: float
    metadata: Mapping[str, object]
    seen_before: bool = False
    likely_replaced_by: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The answer to a search, best first, and the same as text for a model.

    `together_with` are the earlier questions that it was read with, newest first. `nothing_known` is as in `Recalled`.
    """

    results: tuple[SearchResult, ...]
    text: str
    receipt: Receipt
    degraded: tuple[Degradation, ...]
    together_with: tuple[str, ...] = ()
    nothing_known: NothingKnown | None = None
