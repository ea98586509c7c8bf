"""Memories that are sent: to be learnt, or to change one that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from google.protobuf.field_mask_pb2 import FieldMask

from hummock.core.errors import InvalidRequest
from hummock.core.learn import Changes, LearnCommand, Lesson
from hummock.core.memory import (
    CodeFragment,
    Detail,
    DomainKnowledge,
    Draft,
    LearningRecord,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
    QueryVector,
)
from hummock.rpc.parse import values
from hummock.rpc.parse.request import check
from hummock.v1 import context_service_pb2, memory_pb2, memory_service_pb2

# A look-up takes a fifth of the time of an enum's call.
_KINDS = {int(kind): kind for kind in MemoryKind}
_ORIGINS = {int(origin): origin for origin in Origin}


def learn_command(request: context_service_pb2.LearnRequest) -> LearnCommand:
    """A Learn."""
    return LearnCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        lessons=_lessons(request.memories),
        # Nobody asks for it where there is no request_id, and it costs as much as parsing does.
        fingerprint=values.fingerprint(request) if request.request_id else b"",
    )


def memory_changes(request: memory_service_pb2.MemoryServiceUpdateRequest) -> tuple[str, Changes]:
    """The id of the memory, and the new values of the fields that the mask names."""
    paths = _mask(request.update_mask.paths)
    if not request.memory.id:
        raise InvalidRequest("memory.id", "is empty; say which memory")
    sent = memory_pb2.MemoryInput(id=request.memory.id)
    FieldMask(paths=paths).MergeMessage(request.memory, sent)
    check(sent, "memory.", only=("id", *paths))
    with _inside("memory."):
        changes = Changes()
        for path in paths:
            changes = _CHANGES[path](changes, sent)
        return values.identifier("id", sent.id), changes


def _lessons(sent: Sequence[memory_pb2.MemoryInput]) -> tuple[Lesson, ...]:
    with_vector = [one for one in sent if one.HasField("vector")]
    # None where one of them is wrong: it is found again at its place, so that the first mistake is the one named.
    vectors = values.vectors([one.vector for one in with_vector])
    unused = iter(vectors or ())
    return tuple(_lesson(index, one, unused if vectors else None) for index, one in enumerate(sent))


def _lesson(index: int, sent: memory_pb2.MemoryInput, vectors: Iterator[QueryVector] | None) -> Lesson:
    try:
        made = draft(sent)
        if not sent.HasField("vector"):
            return Lesson(draft=made)
        return Lesson(draft=made, vector=next(vectors) if vectors else values.vector("vector", sent.vector))
    except InvalidRequest as error:
        raise InvalidRequest(f"memories[{index}].{error.field}", error.rule) from error


def draft(sent: memory_pb2.MemoryInput) -> Draft:
    """A memory that is to be stored. Raises: InvalidRequest."""
    return Draft(
        id=values.identifier("id", sent.id),
        kind=_KINDS[sent.kind],
        origin=_origin(sent),
        index=MemoryIndex(title=sent.index.title, summary=sent.index.summary, tags=_tags(sent)),
        payload=_payload(sent),
        session_id=values.identifier("session_id", sent.session_id),
        speaker=values.identifier("speaker", sent.speaker),
        event_time=values.time("event_time", sent, "event_time"),
        emotion_label=sent.emotion_label,
        trust=_trust(sent),
        supersedes=values.identifiers("supersedes", sent.supersedes),
        create_time=values.time("create_time", sent, "create_time"),
        source_hash=sent.source_hash,
    )


def _origin(sent: memory_pb2.MemoryInput) -> Origin:
    return _ORIGINS[sent.origin or Origin.MANUAL]


def _trust(sent: memory_pb2.MemoryInput) -> float:
    return sent.trust if sent.HasField("trust") else 1.0


def _tags(sent: memory_pb2.MemoryInput) -> tuple[str, ...]:
    return values.tags("index.tags", sent.index.tags)


def _payload(sent: memory_pb2.MemoryInput) -> Payload:
    return Payload(content=sent.payload.content, raw=sent.payload.raw, detail=_detail(sent.payload))


def _detail(sent: memory_pb2.MemoryPayload) -> Detail:
    match sent.WhichOneof("detail"):
        case "learning_record":
            record = sent.learning_record
            return LearningRecord(
                question=record.question, answer=record.answer, source_files=tuple(record.source_files)
            )
        case "domain_knowledge":
            known = sent.domain_knowledge
            return DomainKnowledge(
                domain=known.domain,
                aliases=tuple(known.aliases),
                summary=known.summary,
                key_files=tuple(known.key_files),
            )
        case "code_fragment":
            code = sent.code_fragment
            return CodeFragment(
                path=code.path,
                start_line=code.start_line,
                end_line=code.end_line,
                language=code.language,
                symbol=code.symbol,
            )
        case _:
            return None


@contextmanager
def _inside(prefix: str) -> Iterator[None]:
    """Puts the place of a memory before the fields of its errors."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(prefix + error.field, error.rule) from error


def _mask(paths: Sequence[str]) -> tuple[str, ...]:
    allowed = ", ".join(_CHANGES)
    if not paths:
        raise InvalidRequest("update_mask", f"names no field; it may name {allowed}")
    for path in paths:
        if path not in _CHANGES:
            raise InvalidRequest("update_mask", f"names {path[:64]!r}, which cannot be changed; it may name {allowed}")
    return tuple(paths)


def _index(changes: Changes, sent: memory_pb2.MemoryInput) -> Changes:
    return replace(changes, title=sent.index.title, summary=sent.index.summary, tags=_tags(sent))


def _event_time(changes: Changes, sent: memory_pb2.MemoryInput) -> Changes:
    return replace(changes, event_time=values.time("event_time", sent, "event_time"), event_time_set=True)


_CHANGES: dict[str, Callable[[Changes, memory_pb2.MemoryInput], Changes]] = {
    "index": _index,
    "index.title": lambda changes, sent: replace(changes, title=sent.index.title),
    "index.summary": lambda changes, sent: replace(changes, summary=sent.index.summary),
    "index.tags": lambda changes, sent: replace(changes, tags=_tags(sent)),
    "payload": lambda changes, sent: replace(changes, payload=_payload(sent)),
    "payload.content": lambda changes, sent: replace(changes, content=sent.payload.content),
    "origin": lambda changes, sent: replace(changes, origin=_origin(sent)),
    "session_id": lambda changes, sent: replace(changes, session_id=values.identifier("session_id", sent.session_id)),
    "speaker": lambda changes, sent: replace(changes, speaker=values.identifier("speaker", sent.speaker)),
    "event_time": _event_time,
    "emotion_label": lambda changes, sent: replace(changes, emotion_label=sent.emotion_label),
    "trust": lambda changes, sent: replace(changes, trust=_trust(sent)),
    "supersedes": lambda changes, sent: replace(changes, supersedes=values.identifiers("supersedes", sent.supersedes)),
    "source_hash": lambda changes, sent: replace(changes, source_hash=sent.source_hash),
}
