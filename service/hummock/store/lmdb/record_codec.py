"""Records as they lie in the store.

Records are MessagePack arrays. They evolve by addition only: a new field goes to the end and has a default, so that a
record lacking it reads well, and what an older version does not know it skips.
"""

from __future__ import annotations

import msgspec

from hummock.core.memory import (
    CodeFragment,
    Detail,
    DomainKnowledge,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
)
from hummock.core.project import Project, ProjectInfo

SCHEMA = 1


class SpaceRecord(msgspec.Struct, array_like=True, frozen=True):
    """An embedding space and its number in keys."""

    number: int
    id: str
    model: str
    dim: int
    token_dim: int


class DirectoryRecord(msgspec.Struct, array_like=True, frozen=True):
    """What a directory is; `schema` stays first for all time.

    `analyzer` is the version that made its terms. Directories that do not say so were made by the first one.
    """

    schema: int
    active_space: int
    spaces: tuple[SpaceRecord, ...]
    analyzer: int = 1


class Reanalysed(msgspec.Struct, array_like=True, frozen=True):
    """How far the terms of a directory are made anew: memories before this one of this project are done."""

    project: int
    doc: int


class SchemaRecord(msgspec.Struct, array_like=True, frozen=True):
    """The start of a DirectoryRecord of any version."""

    schema: int


class ProjectRecord(msgspec.Struct, array_like=True):
    """A project; what counts up never goes back."""

    name: str
    create_time: float
    active_space: int
    tech_stack: tuple[str, ...] = ()
    path: str = ""
    seq: int = 0
    content_seq: int = 0
    next_doc: int = 1
    next_term: int = 0
    kinds: dict[int, int] = {}
    ops_after: int = 0
    """Operations of all later writes are there."""
    tech_stack_origin: int = 0
    path_origin: int = 0
    """Who said them; 0 where nobody did, or it was not noted."""
    entries_seq: int = 0
    """Of the newest write that stored or removed an ENTRY."""


class MemoryRecord(msgspec.Struct, array_like=True, frozen=True):
    """A memory without its payload; `text` is its key in `by_text`, empty when it has none."""

    id: str
    kind: int
    origin: int
    title: str
    summary: str
    tags: tuple[str, ...]
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
    text: bytes = b""
    session_position: int = -1


class LearningRecordRecord(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """LearningRecord."""

    question: str
    answer: str
    source_files: tuple[str, ...]


class DomainKnowledgeRecord(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """DomainKnowledge."""

    domain: str
    aliases: tuple[str, ...]
    summary: str
    key_files: tuple[str, ...]


class CodeFragmentRecord(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """CodeFragment."""

    path: str
    start_line: int
    end_line: int
    language: str
    symbol: str


DetailRecord = LearningRecordRecord | DomainKnowledgeRecord | CodeFragmentRecord | None


class PayloadRecord(msgspec.Struct, array_like=True, frozen=True):
    """A memory's body."""

    content: str
    raw: str
    detail: DetailRecord = None


class RequestRecord(msgspec.Struct, array_like=True, frozen=True):
    """A write that was accepted under a request_id."""

    fingerprint: bytes
    seq: int
    reply: bytes
    time: float


encode = msgspec.msgpack.Encoder().encode
decode_schema = msgspec.msgpack.Decoder(SchemaRecord).decode
decode_directory = msgspec.msgpack.Decoder(DirectoryRecord).decode
decode_reanalysed = msgspec.msgpack.Decoder(Reanalysed).decode
decode_project = msgspec.msgpack.Decoder(ProjectRecord).decode
decode_memory = msgspec.msgpack.Decoder(MemoryRecord).decode
decode_payload = msgspec.msgpack.Decoder(PayloadRecord).decode
decode_request = msgspec.msgpack.Decoder(RequestRecord).decode


def memory_record(memory: Memory, text: bytes, session_position: int) -> MemoryRecord:
    """The record of a memory."""
    return MemoryRecord(
        id=memory.id,
        kind=int(memory.kind),
        origin=int(memory.origin),
        title=memory.index.title,
        summary=memory.index.summary,
        tags=memory.index.tags,
        session_id=memory.session_id,
        speaker=memory.speaker,
        event_time=memory.event_time,
        emotion_label=memory.emotion_label,
        trust=memory.trust,
        supersedes=memory.supersedes,
        source_hash=memory.source_hash,
        create_time=memory.create_time,
        update_time=memory.update_time,
        content_hash=memory.content_hash,
        fingerprint=memory.fingerprint,
        token_count=memory.token_count,
        chunk_count=memory.chunk_count,
        text=text,
        session_position=session_position,
    )


def memory_of(record: MemoryRecord, payload: PayloadRecord | None) -> Memory:
    """The memory of a record."""
    return Memory(
        id=record.id,
        kind=_KINDS[record.kind],
        origin=_ORIGINS[record.origin],
        index=MemoryIndex(title=record.title, summary=record.summary, tags=record.tags),
        payload=None if payload is None else payload_of(payload),
        session_id=record.session_id,
        speaker=record.speaker,
        event_time=record.event_time,
        emotion_label=record.emotion_label,
        trust=record.trust,
        supersedes=record.supersedes,
        source_hash=record.source_hash,
        create_time=record.create_time,
        update_time=record.update_time,
        content_hash=record.content_hash,
        fingerprint=record.fingerprint,
        token_count=record.token_count,
        chunk_count=record.chunk_count,
    )


# A look-up is a fifth of a call of the enum.
_KINDS = {int(kind): kind for kind in MemoryKind}
_ORIGINS = {int(origin): origin for origin in Origin}


def payload_record(payload: Payload) -> PayloadRecord:
    """The record of a payload."""
    return PayloadRecord(content=payload.content, raw=payload.raw, detail=_detail_record(payload.detail))


def payload_of(record: PayloadRecord) -> Payload:
    """The payload of a record."""
    return Payload(content=record.content, raw=record.raw, detail=_detail_of(record.detail))


def _detail_record(detail: Detail) -> DetailRecord:
    match detail:
        case LearningRecord():
            return LearningRecordRecord(detail.question, detail.answer, detail.source_files)
        case DomainKnowledge():
            return DomainKnowledgeRecord(detail.domain, detail.aliases, detail.summary, detail.key_files)
        case CodeFragment():
            return CodeFragmentRecord(detail.path, detail.start_line, detail.end_line, detail.language, detail.symbol)
        case None:
            return None


def _detail_of(record: DetailRecord) -> Detail:
    match record:
        case LearningRecordRecord():
            return LearningRecord(question=record.question, answer=record.answer, source_files=record.source_files)
        case DomainKnowledgeRecord():
            return DomainKnowledge(
                domain=record.domain, aliases=record.aliases, summary=record.summary, key_files=record.key_files
            )
        case CodeFragmentRecord():
            return CodeFragment(
                path=record.path,
                start_line=record.start_line,
                end_line=record.end_line,
                language=record.language,
                symbol=record.symbol,
            )
        case None:
            return None


def info_of(record: ProjectRecord) -> ProjectInfo:
    """A project's information."""
    return ProjectInfo(
        tech_stack=record.tech_stack,
        path=record.path,
        tech_stack_origin=_ORIGINS.get(record.tech_stack_origin),
        path_origin=_ORIGINS.get(record.path_origin),
    )


def project_of(record: ProjectRecord, emb_space: str) -> Project:
    """The project of a record."""
    return Project(
        name=record.name,
        info=info_of(record),
        create_time=record.create_time,
        seq=record.seq,
        content_seq=record.content_seq,
        emb_space=emb_space,
        kinds={MemoryKind(kind): count for kind, count in sorted(record.kinds.items()) if count > 0},
    )
