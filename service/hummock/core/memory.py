"""Memories as values. Numbers of enums are those of the contract and of the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hummock.core.errors import InvalidRequest
from hummock.core.quick import quick

MAX_ID_BYTES = 256
_MOST_BYTES = 4
"""Of a character in UTF-8."""


class MemoryKind(IntEnum):
    """What a memory is about."""

    LEARNING_RECORD = 1
    DOMAIN_KNOWLEDGE = 2
    CODE_FRAGMENT = 3
    NOTE = 4
    ENTRY = 5


class Origin(IntEnum):
    """Who or what a memory comes from."""

    MANUAL = 1
    SUMMARY = 2
    USER_INPUT = 3
    AI_OUTPUT = 4
    INDEXER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryIndex:
    """The tip of a memory. Tags have no leading "#" and no duplicates."""

    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRecord:
    """A question, its answer and the files that the answer rests on."""

    question: str
    answer: str
    source_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainKnowledge:
    """What is known about a domain; `key_files` are paths or ends of paths."""

    domain: str
    aliases: tuple[str, ...] = ()
    summary: str
    key_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFragment:
    """Where a piece of code stands. Lines count from 1, `end_line` inclusive; 0 means not known."""

    path: str
    start_line: int = 0
    end_line: int = 0
    language: str = ""
    symbol: str = ""

    def __post_init__(self) -> None:
        if 0 < self.end_line < self.start_line:
            raise InvalidRequest(
                "payload.code_fragment.end_line", f"is {self.end_line}, before start_line {self.start_line}"
            )


Detail = LearningRecord | DomainKnowledge | CodeFragment | None

_DETAIL_TYPES: dict[MemoryKind, tuple[str, type | None]] = {
    MemoryKind.LEARNING_RECORD: ("learning_record", LearningRecord),
    MemoryKind.DOMAIN_KNOWLEDGE: ("domain_knowledge", DomainKnowledge),
    MemoryKind.CODE_FRAGMENT: ("code_fragment", CodeFragment),
    MemoryKind.NOTE: ("", None),
    MemoryKind.ENTRY: ("", None),
}
_TEXTS_REQUIRED: dict[MemoryKind, tuple[str, ...]] = {
    MemoryKind.LEARNING_RECORD: ("question", "answer"),
    MemoryKind.DOMAIN_KNOWLEDGE: ("domain", "summary"),
    MemoryKind.CODE_FRAGMENT: ("path",),
}
_CONTENT_REQUIRED = frozenset({MemoryKind.CODE_FRAGMENT, MemoryKind.NOTE, MemoryKind.ENTRY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The body of a memory; `raw` is stored and never searched."""

    content: str = ""
    raw: str = ""
    detail: Detail = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory that is to be stored. Times are Unix seconds; None means not known (`create_time`: now).

    `id` is empty when the server shall make one. Raises InvalidRequest when payload and kind do not fit.
    """

    id: str = ""
    kind: MemoryKind
    origin: Origin = Origin.MANUAL
    index: MemoryIndex = MemoryIndex()
    payload: Payload
    session_id: str = ""
    speaker: str = ""
    event_time: float | None = None
    emotion_label: str = ""
    trust: float = 1.0
    supersedes: tuple[str, ...] = ()
    create_time: float | None = None
    source_hash: str = ""

    def __post_init__(self) -> None:
        if len(self.id) * _MOST_BYTES > MAX_ID_BYTES and len(self.id.encode()) > MAX_ID_BYTES:
            raise InvalidRequest("id", f"has {len(self.id.encode())} bytes; the limit is {MAX_ID_BYTES}")
        name, detail_type = _DETAIL_TYPES[self.kind]
        detail = self.payload.detail
        if detail_type is None:
            if detail is not None:
                raise InvalidRequest("payload.detail", f"a {self.kind.name} has content only")
        elif not isinstance(detail, detail_type):
            raise InvalidRequest(f"payload.{name}", f"is required for {self.kind.name}")
        if self.kind in _CONTENT_REQUIRED:
            self._require("content", self.payload.content)
        for part in _TEXTS_REQUIRED.get(self.kind, ()):
            self._require(f"{name}.{part}", getattr(detail, part))

    def _require(self, part: str, text: str) -> None:
        if not text or text.isspace():
            raise InvalidRequest(f"payload.{part}", f"is required for {self.kind.name}, and not only white space")


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored memory. Times are Unix seconds. `payload` is None in the index view.

    Attributes:
        content_hash: 16 bytes; equal for equal normalised texts.
        fingerprint: 16 bytes; equal when the drafts were equal in every field but the vector.
        token_count: Estimated tokens of the memory rendered in full.
        chunk_count: How many vectors it has.
    """

    id: str
    kind: MemoryKind
    origin: Origin
    index: MemoryIndex
    payload: Payload | None
    session_id: str
    speaker: str
    event_time: float | None
    emotion_label: str
    trust: float
    supersedes: tuple[str, ...]
    source_hash: str
    create_time: float
    update_time: float
    content_hash: bytes
    fingerprint: bytes
    token_count: int
    chunk_count: int


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories may answer; conditions of different fields must all hold, empty means no condition.

    `kinds`, `origins`, `session_ids`, `paths` and `speakers` ask for any of theirs, `tags` for all. A path matches
    whole or as an end ("RepaymentService.java"). Times are Unix seconds, `created_before` exclusive.
    """

    kinds: frozenset[MemoryKind] = frozenset()
    origins: frozenset[Origin] = frozenset()
    tags: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    created_after: float | None = None
    created_before: float | None = None
    excluded_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryVector:
    """A vector that came with a request: (dim,) float32, finite, length 1, and the space that it claims.

    Equal when both are, to the bit.
    """

    values: NDArray[np.float32]
    emb_space: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryVector) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[str, bytes]:
        return self.emb_space, self.values.tobytes()
