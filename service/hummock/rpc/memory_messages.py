"""Messages of memories, parsed and presented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from hummock.core.access import LOCAL, Caller, Verb
from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest
from hummock.core.memory import (
    Changes,
    CodeFragment,
    Deleted,
    Detail,
    DomainKnowledge,
    Draft,
    Filter,
    LearnCommand,
    Learned,
    LearningRecord,
    Lesson,
    Memory,
    MemoryEvent,
    MemoryIndex,
    MemoryKind,
    Metadata,
    Origin,
    Payload,
    QueryVector,
    SecretsFound,
    Updated,
)
from hummock.core.review import Quarantined
from hummock.memories.forget import ForgetCommand, Receipt
from hummock.memories.garden import ReviewCommand
from hummock.memories.replacements import Replacement
from hummock.rpc import values
from hummock.rpc.message_tables import Layout, encode, table_of
from hummock.rpc.validation import check
from hummock.text.template import told
from hummock_client.v1 import context_service_pb2, memory_pb2, memory_service_pb2
from hummock_kernels.messages import HEX, written

# A look-up takes a fifth of the time of an enum's call.
_KIND_OF = {int(kind): kind for kind in MemoryKind}
_ORIGIN_OF = {int(origin): origin for origin in Origin}
_KIND_OF_DETAIL = {
    "learning_record": MemoryKind.LEARNING_RECORD,
    "domain_knowledge": MemoryKind.DOMAIN_KNOWLEDGE,
    "code_fragment": MemoryKind.CODE_FRAGMENT,
}


def learn_command(
    request: context_service_pb2.LearnRequest,
    deadline: Deadline = NO_DEADLINE,
    writer: str = "",
    *,
    is_batch: bool = False,
) -> LearnCommand:
    """Parse a LearnRequest or a batch of a LearnStream; `writer` is the name of the caller's token."""
    default = context_service_pb2.EMBEDDING_MODE_DEFERRED if is_batch else context_service_pb2.EMBEDDING_MODE_INLINE
    return LearnCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        lessons=_lessons(request.memories, writer),
        # Only requests with a request_id need it, and it costs as much as parsing.
        fingerprint=values.fingerprint(request) if request.request_id else b"",
        is_deferred=(request.embedding or default) == context_service_pb2.EMBEDDING_MODE_DEFERRED,
        is_bulk=is_batch,
        deadline=deadline,
    )


def draft(sent: memory_pb2.Memory, writer: str) -> Draft:
    """Parse a memory to store; output-only fields are ignored. Raises: InvalidRequest."""
    return Draft(
        id=values.identifier("id", sent.id),
        kind=_kind(sent),
        origin=_origin(sent),
        index=MemoryIndex(title=sent.title, summary=sent.summary, tags=_tags(sent)),
        payload=_payload(sent),
        session_id=values.identifier("session_id", sent.session_id),
        speaker=values.identifier("speaker", sent.speaker),
        event_time=values.time("event_time", sent, "event_time"),
        emotion_label=sent.emotion_label,
        trust=_trust(sent),
        supersedes=values.identifiers("supersedes", sent.supersedes),
        create_time=values.time("create_time", sent, "create_time"),
        source_hash=sent.source_hash,
        metadata=_metadata(sent),
        expire_time=values.time("expire_time", sent, "expire_time"),
        writer=writer,
        pinned=sent.pinned,
        distinct_from=values.identifiers("distinct_from", sent.distinct_from),
        files=values.files("files", sent.files) if sent.files else (),
        time_zone=values.time_zone("time_zone", sent.time_zone) if sent.time_zone else "",
    )


def memory_changes(request: memory_service_pb2.UpdateMemoryRequest, caller: Caller = LOCAL) -> tuple[str, Changes]:
    """The id of the memory, and the new values of the fields that the mask names; the caller changes them."""
    paths = _mask(request.update_mask.paths)
    if not request.memory.id:
        raise InvalidRequest("memory.id", "is empty; say which memory")
    sent = memory_pb2.Memory(id=request.memory.id)
    fields = _fields_of(paths)
    FieldMask(paths=fields).MergeMessage(request.memory, sent)
    check(sent, "memory.", only=("id", *fields))
    with _inside("memory."):
        changes = Changes(
            writer=caller.writer,
            is_unproven=not caller.may(Verb.INDEX, request.project),
            lacks_admin=not caller.may(Verb.ADMIN, request.project),
        )
        for path in paths:
            changes = _CHANGES[path](changes, sent)
        return values.identifier("id", sent.id), changes


def memories_to_delete(request: memory_service_pb2.DeleteMemoriesRequest) -> tuple[tuple[str, ...], Filter | None]:
    """The ids, or the filter given in their place. Raises: InvalidRequest."""
    if not request.HasField("filter"):
        if not request.ids:
            raise InvalidRequest("ids", "is empty, and there is no filter; say which memories")
        if request.dry_run:
            raise InvalidRequest("dry_run", "goes with a filter")
        return values.identifiers("ids", request.ids), None
    if request.ids:
        raise InvalidRequest("ids", "do not go with a filter; excluded_ids do")
    where = values.memory_filter("filter", request.filter)
    if where == Filter():
        raise InvalidRequest("filter", "has no condition; DeleteProject removes all memories")
    return (), where


def to_forget(request: memory_service_pb2.ForgetRequest) -> ForgetCommand:
    """The command that forgets memories. Raises: InvalidRequest."""
    where = values.memory_filter("filter", request.filter)
    if where == Filter() and not request.ids and not request.contains:
        raise InvalidRequest("", "has no condition: give ids, filter or contains; DeleteProject removes all memories")
    if request.with_sessions and not where.session_ids:
        raise InvalidRequest("with_sessions", "goes with filter.session_ids")
    return ForgetCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        ids=values.identifiers("ids", request.ids),
        where=where,
        contains=request.contains,
        with_sessions=request.with_sessions,
    )


def forget_response(receipt: Receipt, seq: int) -> memory_service_pb2.ForgetResponse:
    """The receipt."""
    return memory_service_pb2.ForgetResponse(
        seq=seq,
        memory_count=receipt.memory_count,
        remaining_count=receipt.remaining_count,
        session_count=receipt.session_count,
        message_count=receipt.message_count,
        event_count=receipt.event_count,
        ids_digest=receipt.ids_digest,
        held_count=receipt.held_count,
    )


def review_command(
    request: memory_service_pb2.ApproveReviewRequest | memory_service_pb2.RejectReviewRequest,
) -> ReviewCommand:
    """The command that decides on what waits. Raises: InvalidRequest."""
    if not (request.ids or request.replacements):
        raise InvalidRequest("ids", "is empty, and so is replacements; say what is decided")
    return ReviewCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        ids=values.identifiers("ids", request.ids),
        pairs=tuple(
            (
                values.identifier(f"replacements[{place}].newer_id", pair.newer_id),
                values.identifier(f"replacements[{place}].older_id", pair.older_id),
            )
            for place, pair in enumerate(request.replacements)
        ),
    )


def replacement(found: Replacement) -> memory_service_pb2.Replacement:
    """A note that probably replaces an older one."""
    return memory_service_pb2.Replacement(
        newer=memory(found.newer), older=memory(found.older), evidence=found.evidence, similarity=found.similarity
    )


def held_memory(held: Quarantined) -> memory_service_pb2.HeldMemory:
    """A memory held for review, with all that it would become."""
    message = memory_service_pb2.HeldMemory(memory=memory(held.memory, with_raw=True), families=held.families)
    values.set_timestamp(message.hold_time, held.hold_time)
    return message


def memory(stored: Memory, superseded_by: Sequence[str] = (), *, with_raw: bool = False) -> memory_pb2.Memory:
    """Convert a memory and the ids of its replacements; the texts are unset in the index view."""
    return memory_pb2.Memory.FromString(
        written(encode((*memory_values([stored])[0], superseded_by)), _TABLES[with_raw])[0]
    )


def memory_values(memories: Iterable[Memory]) -> list[tuple[Memory, object]]:
    """The values of each one's message in the order of `memory_layout`, but for the ids of its replacements."""
    # Most have one text, which takes no call.
    return [
        (one, one.payload and (told(one.payload) if isinstance(one.payload.detail, _SAID) else one.payload.content))
        for one in memories
    ]


def memory_layout(*, with_raw: bool) -> Layout:
    """The order in which `memory_values` has the values of a memory's message, its raw text only where asked for."""
    details = {name: ("", *kind.__struct_fields__) for name, kind in _DETAILS.items()}
    parts: dict[str, Any] = {
        "index": [*MemoryIndex.__struct_fields__],
        "payload": ["content", "raw" if with_raw else "", details],
        "content_hash": ("content_hash", HEX),
        "fingerprint": "",
    }
    return [[parts.get(name, name) for name in Memory.__struct_fields__], "text", "superseded_by"]


_DETAILS = {"learning_record": LearningRecord, "domain_knowledge": DomainKnowledge, "code_fragment": CodeFragment}
_SAID = (LearningRecord, DomainKnowledge)
_TABLES = [
    table_of(memory_pb2.Memory.DESCRIPTOR, {memory_pb2.Memory.DESCRIPTOR: memory_layout(with_raw=with_raw)})
    for with_raw in (False, True)
]


def memory_event(event: MemoryEvent, *, with_raw: bool = False) -> memory_service_pb2.MemoryEvent:
    """The event of one memory, as a message."""
    message = memory_service_pb2.MemoryEvent(
        change=memory_service_pb2.MemoryEventType.ValueType(event.type), id=event.memory_id, seq=event.seq
    )
    if event.memory is not None:
        message.memory.CopyFrom(memory(event.memory, with_raw=with_raw))
    return message


def secrets_found(found: SecretsFound) -> context_service_pb2.SecretsFound:
    """The number of secrets of a kind, as a message."""
    return context_service_pb2.SecretsFound(kind=found.kind, count=found.count, redacted=found.redacted)


def learn_response(learned: Learned) -> context_service_pb2.LearnResponse:
    """The stored memories, as a reply."""
    return context_service_pb2.LearnResponse(
        seq=learned.seq,
        results=[
            context_service_pb2.LearnResult(
                id=result.id,
                status=context_service_pb2.LearnStatus.ValueType(result.status),
                duplicate_of=result.duplicate_of,
                secrets=map(secrets_found, result.secrets),
                held_for=result.held_for,
                pin_ignored=result.pin_ignored,
            )
            for result in learned.results
        ],
        pending_count=learned.pending,
    )


def update_response(updated: Updated) -> memory_service_pb2.UpdateMemoryResponse:
    """The changed memory."""
    return memory_service_pb2.UpdateMemoryResponse(memory=memory(updated.memory), seq=updated.seq)


def delete_response(deleted: Deleted) -> memory_service_pb2.DeleteMemoriesResponse:
    """The removed memories, as a reply."""
    return memory_service_pb2.DeleteMemoriesResponse(
        seq=deleted.seq,
        deleted_count=deleted.deleted_count,
        missing_ids=deleted.missing_ids,
        remaining_count=deleted.remaining_count,
    )


def _lessons(sent: Sequence[memory_pb2.Memory], writer: str) -> tuple[Lesson, ...]:
    with_vector = [one for one in sent if one.HasField("vector")]
    # None where one of them is wrong: it is found again at its place, so that the first mistake is the one named. A
    # single one is read sooner by itself.
    vectors = values.vectors([one.vector for one in with_vector]) if len(with_vector) > 1 else None
    unused = iter(vectors or ())
    return tuple(_lesson(index, one, writer, unused if vectors else None) for index, one in enumerate(sent))


def _lesson(index: int, sent: memory_pb2.Memory, writer: str, vectors: Iterator[QueryVector] | None) -> Lesson:
    try:
        made = draft(sent, writer)
        if not sent.HasField("vector"):
            return Lesson(draft=made)
        return Lesson(draft=made, vector=next(vectors) if vectors else values.vector("vector", sent.vector))
    except InvalidRequest as error:
        raise InvalidRequest(f"memories[{index}].{error.field}", error.rule) from error


def _kind(sent: memory_pb2.Memory) -> MemoryKind:
    return _KIND_OF[sent.kind] if sent.kind else _KIND_OF_DETAIL.get(sent.WhichOneof("detail") or "", MemoryKind.NOTE)


def _origin(sent: memory_pb2.Memory) -> Origin:
    return _ORIGIN_OF[sent.origin or Origin.MANUAL]


def _trust(sent: memory_pb2.Memory) -> float:
    return sent.trust if sent.HasField("trust") else 1.0


def _tags(sent: memory_pb2.Memory) -> tuple[str, ...]:
    return values.tags("tags", sent.tags)


def _metadata(sent: memory_pb2.Memory) -> Metadata:
    return values.metadata("metadata", sent.metadata)


def _payload(sent: memory_pb2.Memory) -> Payload:
    return Payload(content=sent.content, raw=sent.raw, detail=_detail(sent))


def _detail(sent: memory_pb2.Memory) -> Detail:
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


def _fields_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Fields of a message that the paths of a mask name; "detail" names any of its fields."""
    return tuple(field for path in paths for field in (_KIND_OF_DETAIL if path == "detail" else (path,)))


def _event_time(changes: Changes, sent: memory_pb2.Memory) -> Changes:
    return replace(changes, event_time=values.time("event_time", sent, "event_time"), event_time_set=True)


def _expire_time(changes: Changes, sent: memory_pb2.Memory) -> Changes:
    return replace(changes, expire_time=values.time("expire_time", sent, "expire_time"), expire_time_set=True)


_CHANGES: dict[str, Callable[[Changes, memory_pb2.Memory], Changes]] = {
    "title": lambda changes, sent: replace(changes, title=sent.title),
    "summary": lambda changes, sent: replace(changes, summary=sent.summary),
    "tags": lambda changes, sent: replace(changes, tags=_tags(sent)),
    "content": lambda changes, sent: replace(changes, content=sent.content),
    "raw": lambda changes, sent: replace(changes, raw=sent.raw),
    "detail": lambda changes, sent: replace(changes, detail=_detail(sent), detail_set=True),
    "origin": lambda changes, sent: replace(changes, origin=_origin(sent)),
    "session_id": lambda changes, sent: replace(changes, session_id=values.identifier("session_id", sent.session_id)),
    "speaker": lambda changes, sent: replace(changes, speaker=values.identifier("speaker", sent.speaker)),
    "event_time": _event_time,
    "emotion_label": lambda changes, sent: replace(changes, emotion_label=sent.emotion_label),
    "trust": lambda changes, sent: replace(changes, trust=_trust(sent)),
    "supersedes": lambda changes, sent: replace(changes, supersedes=values.identifiers("supersedes", sent.supersedes)),
    "source_hash": lambda changes, sent: replace(changes, source_hash=sent.source_hash),
    "metadata": lambda changes, sent: replace(changes, metadata=_metadata(sent)),
    "expire_time": _expire_time,
    "pinned": lambda changes, sent: replace(changes, pinned=sent.pinned),
    "files": lambda changes, sent: replace(changes, files=values.files("files", sent.files)),
    "time_zone": lambda changes, sent: replace(changes, time_zone=values.time_zone("time_zone", sent.time_zone)),
}
