"""Search: what an agent asks with one tool, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from hummock.core.memory import Filter
from hummock.core.recall import Degradation, Receipt


class SearchScope(IntEnum):
    """Kinds of data that a search covers."""

    CODE = 1
    KNOWLEDGE = 2
    BOTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search as it was asked for.

    Attributes:
        top_k: None means what the project says of the agent's preset, or else what that says.
        as_of: Unix seconds; None means the clock's.
        until_s: As in a recall.
        session_id: The conversation that it is a part of; empty means none.
        time_zone: As in a recall.
        unseen_first: Whether what this conversation has shown already stands behind the rest.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One result: `type` is "code" or "knowledge", `content` is cut, `metadata` holds plain JSON values."""

    type: str
    memory_id: str
    title: str
    content: str
    score: float
    metadata: Mapping[str, object]
    seen_before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The answer to a search, best first, and the same as text for a model.

    `together_with` are the earlier questions that it was read with, newest first.
    """

    results: tuple[SearchResult, ...]
    text: str
    receipt: Receipt
    degraded: tuple[Degradation, ...]
    together_with: tuple[str, ...] = ()
