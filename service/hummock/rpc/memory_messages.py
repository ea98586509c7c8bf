"""Messages of memories, parsed and presented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from hummock.core.access import LOCAL, Caller, Verb
from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest
from hummock.core.memory import (
    Changes,
    CodeFragment,
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
    Origin,
    Payload,
    QueryVector,
)
from hummock.memories.forget import ForgetCommand
from hummock.memories.garden import ReviewCommand
from hummock.rpc import values
from hummock.rpc.conversion import message_of, value_of
from hummock.rpc.message_tables import Layout, encode, table_of
from hummock.rpc.validation import check, placed
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
_CHANGEABLE = (
    *("title", "summary", "tags", "content", "raw", "detail", "origin", "session_id", "speaker", "event_time"),
    *("emotion_label", "trust", "supersedes", "source_hash", "metadata", "expire_time", "pinned", "files", "time_zone"),
)
_CLEARABLE = ("detail", "event_time", "expire_time")
"""Fields that an update may name and leave unset, which clears them."""


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
        # Not by `values.write`, which would add 4 % to the time of this.
        project=values.project_name("project", request.project),
        request_id=request.request_id.lower(),
        fingerprint=values.fingerprint(request) if request.request_id else b"",
        lessons=_lessons(request.memories, writer),
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
        index=MemoryIndex(title=sent.title, summary=sent.summary, tags=values.tags("tags", sent.tags)),
        payload=Payload(content=sent.content, raw=sent.raw, detail=_detail(sent)),
        session_id=values.identifier("session_id", sent.session_id),
        speaker=values.identifier("speaker", sent.speaker),
        event_time=values.time("event_time", sent, "event_time"),
        emotion_label=sent.emotion_label,
        trust=_trust(sent),
        supersedes=values.identifiers("supersedes", sent.supersedes),
        create_time=values.time("create_time", sent, "create_time"),
        source_hash=sent.source_hash,
        metadata=values.metadata("metadata", sent.metadata),
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
    fields = [field for path in paths for field in (_KIND_OF_DETAIL if path == "detail" else (path,))]
    FieldMask(paths=fields).MergeMessage(request.memory, sent)
    check(sent, "memory.", only=("id", *fields))
    try:
        changes: dict[str, Any] = {path: _new_value(path, sent) for path in paths}
        changes |= {f"{path}_set": True for path in paths if path in _CLEARABLE}
        return values.identifier("id", sent.id), Changes(
            **changes,
            writer=caller.writer,
            is_unproven=not caller.may(Verb.INDEX, request.project),
            lacks_admin=not caller.may(Verb.ADMIN, request.project),
        )
    except InvalidRequest as error:
        raise placed(error, "memory.") from None


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
        **values.write(request),
        ids=values.identifiers("ids", request.ids),
        where=where,
        contains=request.contains,
        with_sessions=request.with_sessions,
    )


def review_command(
    request: memory_service_pb2.ApproveReviewRequest | memory_service_pb2.RejectReviewRequest,
) -> ReviewCommand:
    """The command that decides on what waits. Raises: InvalidRequest."""
    if not (request.ids or request.replacements):
        raise InvalidRequest("ids", "is empty, and so is replacements; say what is decided")
    return ReviewCommand(
        **values.write(request),
        ids=values.identifiers("ids", request.ids),
        pairs=tuple(
            (
                values.identifier(f"replacements[{place}].newer_id", pair.newer_id),
                values.identifier(f"replacements[{place}].older_id", pair.older_id),
            )
            for place, pair in enumerate(request.replacements)
        ),
    )


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
    now = None if event.memory is None else memory(event.memory, with_raw=with_raw)
    return message_of(memory_service_pb2.MemoryEvent, event, change=event.type, id=event.memory_id, memory=now)


def learn_response(learned: Learned) -> context_service_pb2.LearnResponse:
    """The stored memories, as a reply."""
    return context_service_pb2.LearnResponse(
        seq=learned.seq,
        results=[
            context_service_pb2.LearnResult(
                id=result.id,
                status=context_service_pb2.LearnStatus.ValueType(result.status),
                duplicate_of=result.duplicate_of,
                secrets=map(partial(message_of, context_service_pb2.SecretsFound), result.secrets),
                held_for=result.held_for,
                pin_ignored=result.pin_ignored,
            )
            for result in learned.results
        ],
        pending_count=learned.pending,
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
        raise placed(error, f"memories[{index}].") from None


def _kind(sent: memory_pb2.Memory) -> MemoryKind:
    return _KIND_OF[sent.kind] if sent.kind else _KIND_OF_DETAIL.get(sent.WhichOneof("detail") or "", MemoryKind.NOTE)


def _origin(sent: memory_pb2.Memory) -> Origin:
    return _ORIGIN_OF[sent.origin or Origin.MANUAL]


def _trust(sent: memory_pb2.Memory) -> float:
    return sent.trust if sent.HasField("trust") else 1.0


def _detail(sent: memory_pb2.Memory) -> Detail:
    name = sent.WhichOneof("detail")
    return value_of(_DETAILS[name], getattr(sent, name)) if name else None


def _mask(paths: Sequence[str]) -> tuple[str, ...]:
    allowed = ", ".join(_CHANGEABLE)
    if not paths:
        raise InvalidRequest("update_mask", f"names no field; it may name {allowed}")
    for path in paths:
        if path not in _CHANGEABLE:
            raise InvalidRequest("update_mask", f"names {path[:64]!r}, which cannot be changed; it may name {allowed}")
    return tuple(paths)


def _new_value(path: str, sent: memory_pb2.Memory) -> object:
    match path:
        case "tags":
            return values.tags(path, sent.tags)
        case "detail":
            return _detail(sent)
        case "origin":
            return _origin(sent)
        case "session_id" | "speaker":
            return values.identifier(path, getattr(sent, path))
        case "event_time" | "expire_time":
            return values.time(path, sent, path)
        case "trust":
            return _trust(sent)
        case "supersedes":
            return values.identifiers(path, sent.supersedes)
        case "metadata":
            return values.metadata(path, sent.metadata)
        case "files":
            return values.files(path, sent.files)
        case "time_zone":
            return values.time_zone(path, sent.time_zone)
    return getattr(sent, path)
