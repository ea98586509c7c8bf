"""Messages of settings and of transfers, parsed and presented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import Message

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Memory, Origin
from hummock.core.project import ProjectInfo
from hummock.core.recall import DecayMode
from hummock.core.render import PartialQuotas
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.core.settings import (
    SETTING_PATHS,
    FormBudgets,
    HistorySettings,
    PresetSettings,
    ProjectSettings,
    Setting,
    Value,
)
from hummock.core.transfer import (
    Given,
    GivenChunk,
    GivenMemory,
    GivenMessage,
    GivenProject,
    GivenRemoval,
    Imported,
    KeptMemory,
)
from hummock.rpc import values
from hummock.rpc.memory_messages import draft, fill_payload
from hummock.rpc.status import violations_of
from hummock.rpc.validation import check
from hummock.v1 import context_service_pb2, memory_pb2, project_service_pb2, settings_pb2, transfer_pb2

_MOST_SHOWN: Final = 64
_CONVERTED: Final[Mapping[str, Callable[[Any], object]]] = {
    "origins": lambda numbers: frozenset(map(Origin, numbers)),
    "decay_mode": lambda number: DecayMode(number) if number else None,
}


def project_settings(sent: settings_pb2.ProjectSettings) -> ProjectSettings:
    """The settings that are set in a message."""
    return ProjectSettings(
        chat=PresetSettings(**_said(sent.chat)),
        code=PresetSettings(**_said(sent.code)),
        agent=PresetSettings(**_said(sent.agent)),
        codex=PresetSettings(**_said(sent.codex)),
        budget_tokens=FormBudgets(**_said(sent.budget_tokens)),
        quotas=PartialQuotas(**_said(sent.quotas)),
        history=HistorySettings(**_said(sent.history)),
    )


def setting_paths(mask: Sequence[str]) -> frozenset[str]:
    """The paths that a mask names; a group stands for all of its own. Raises: InvalidRequest."""
    if not mask:
        raise InvalidRequest("update_mask", 'names no setting; it may name paths such as "chat.top_k", or "chat"')
    paths: set[str] = set()
    for named in mask:
        found = [path for path in SETTING_PATHS if path == named or path.startswith(f"{named}.")]
        if not found:
            raise InvalidRequest("update_mask", f"names {named[:_MOST_SHOWN]!r}, which is no setting")
        paths.update(found)
    return frozenset(paths)


def _said(group: Message) -> dict[str, Any]:
    return {field.name: _CONVERTED.get(field.name, _itself)(value) for field, value in group.ListFields()}


def _itself(value: Any) -> object:
    return value


def wire_settings(own: ProjectSettings) -> settings_pb2.ProjectSettings:
    """What a project says itself; all else is unset."""
    message = settings_pb2.ProjectSettings()
    for path in SETTING_PATHS:
        value = own.value(path)
        if value is None:
            continue
        group, name = path.split(".")
        if isinstance(value, frozenset):
            getattr(getattr(message, group), name).extend(sorted(value))
        else:
            setattr(getattr(message, group), name, value)
    return message


def settings(shown: Iterable[Setting]) -> list[settings_pb2.Setting]:
    """Every value that applies."""
    return [
        settings_pb2.Setting(
            path=setting.path,
            value=values.json_value(_plain(setting.value)),
            origin=settings_pb2.SettingOrigin.ValueType(setting.origin),
            default_value=values.json_value(_plain(setting.default)),
        )
        for setting in shown
    ]


def _plain(value: Value) -> object:
    match value:
        case frozenset():
            return [origin.name for origin in sorted(value)]
        case DecayMode():
            return value.name
        case _:
            return value


_FLOAT_BYTES = 4


def given(record: transfer_pb2.TransferRecord) -> Given | None:
    """The part of a project that a record holds; None for the end of an export. Raises: InvalidRequest."""
    check(record)
    match record.WhichOneof("record"):
        case "header":
            return _project(record.header)
        case "memory":
            return _memory(record.memory)
        case "removed_id":
            return GivenRemoval(memory_id=values.identifier("removed_id", record.removed_id))
        case "session":
            return _session(record.session)
        case "message":
            return _message(record.message)
        case "end":
            return None
    raise InvalidRequest("", "is no record of a kind that is known here")


def _project(sent: transfer_pb2.TransferHeader) -> GivenProject:
    info = ProjectInfo(
        tech_stack=tuple(sent.tech_stack),
        path=sent.path,
        tech_stack_origin=Origin(sent.tech_stack_origin) if sent.tech_stack_origin else None,
        path_origin=Origin(sent.path_origin) if sent.path_origin else None,
    )
    return GivenProject(info=info, settings=project_settings(sent.settings))


def _memory(sent: transfer_pb2.TransferMemory) -> GivenMemory:
    try:
        made = draft(sent.memory)
    except InvalidRequest as error:
        error.move_into("memory.memory.")
        raise
    return GivenMemory(
        draft=made,
        update_time=values.time("memory.update_time", sent, "update_time"),
        session_position=sent.session_position if sent.HasField("session_position") else None,
        emb_space=sent.emb_space,
        chunks=tuple(_chunk(at, chunk) for at, chunk in enumerate(sent.chunks)),
    )


def _session(sent: transfer_pb2.TransferSession) -> Session:
    created = values.time("session.create_time", sent, "create_time") or 0.0
    return Session(
        id=values.identifier("session.id", sent.id),
        title=values.identifier("session.title", sent.title),
        create_time=created,
        update_time=created,
        is_archived=sent.archived,
    )


def _message(sent: transfer_pb2.TransferMessage) -> GivenMessage:
    message = SessionMessage(
        id=values.identifier("message.id", sent.id),
        role=PromptRole(sent.role),
        content=sent.content,
        raw=sent.raw,
        send_time=values.time("message.send_time", sent, "send_time") or 0.0,
        memory_id=values.identifier("message.memory_id", sent.memory_id),
    )
    return GivenMessage(session_id=values.identifier("message.session_id", sent.session_id), message=message)


def _chunk(at: int, sent: transfer_pb2.TransferChunk) -> GivenChunk:
    if len(sent.values) % _FLOAT_BYTES:
        field = f"memory.chunks[{at}].values"
        raise InvalidRequest(field, f"has {len(sent.values)} bytes; float32 takes 4 for each component")
    return GivenChunk(values=np.frombuffer(sent.values, "<f4").astype(np.float32), tokens=sent.tokens)


VERSION = 1


def header(info: ProjectInfo, settings: ProjectSettings) -> transfer_pb2.TransferRecord:
    """The first record."""
    made = transfer_pb2.TransferHeader(
        version=VERSION,
        tech_stack=info.tech_stack,
        path=info.path,
        tech_stack_origin=_origin(info.tech_stack_origin),
        path_origin=_origin(info.path_origin),
        settings=wire_settings(settings),
    )
    return transfer_pb2.TransferRecord(header=made)


def memory(kept: KeptMemory, emb_space: str) -> transfer_pb2.TransferRecord:
    """A memory with all that was asked for."""
    record = transfer_pb2.TransferRecord()
    message = record.memory
    _fill_input(message.memory, kept.memory)
    values.set_timestamp(message.update_time, kept.memory.update_time)
    if kept.session_position >= 0:
        message.session_position = kept.session_position
    if kept.embeddings:
        message.emb_space = emb_space
    for embedding in kept.embeddings:
        message.chunks.add(values=embedding.vector.astype("<f4").tobytes(), tokens=embedding.tokens.tobytes())
    return record


def conversation(part: Session | GivenMessage) -> transfer_pb2.TransferRecord:
    """A session, or a message of one."""
    record = transfer_pb2.TransferRecord()
    if isinstance(part, Session):
        session = record.session
        session.id, session.title, session.archived = part.id, part.title, part.is_archived
        values.set_timestamp(session.create_time, part.create_time)
        return record
    message, sent = record.message, part.message
    message.session_id, message.id, message.memory_id = part.session_id, sent.id, sent.memory_id
    message.role = context_service_pb2.PromptRole.ValueType(sent.role)
    message.content, message.raw = sent.content, sent.raw
    values.set_timestamp(message.send_time, sent.send_time)
    return record


def import_response(numbers: Sequence[int], imported: Imported) -> project_service_pb2.ProjectServiceImportResponse:
    """What became of the lines of these numbers."""
    return project_service_pb2.ProjectServiceImportResponse(
        seq=imported.seq,
        created_count=imported.created,
        updated_count=imported.updated,
        unchanged_count=imported.unchanged,
        removed_count=imported.removed,
        embedded_count=imported.embedded,
        session_count=imported.sessions,
        message_count=imported.messages,
        failures=[import_failure(numbers[place], error) for place, error in imported.failures],
    )


def import_failure(number: int, error: InvalidRequest) -> project_service_pb2.ImportFailure:
    """Why a line was not taken in."""
    first = violations_of(error)[0]
    return project_service_pb2.ImportFailure(number=number, field=first.field, message=first.rule)


def _origin(origin: Origin | None) -> memory_pb2.Origin.ValueType:
    return memory_pb2.ORIGIN_UNSPECIFIED if origin is None else memory_pb2.Origin.ValueType(origin)


def _fill_input(message: memory_pb2.MemoryInput, stored: Memory) -> None:
    """Writes what a memory was made from into an empty message."""
    message.id = stored.id
    message.kind = memory_pb2.MemoryKind.ValueType(stored.kind)
    message.origin = memory_pb2.Origin.ValueType(stored.origin)
    message.index.title = stored.index.title
    message.index.summary = stored.index.summary
    message.index.tags.extend(stored.index.tags)
    message.session_id = stored.session_id
    message.speaker = stored.speaker
    message.emotion_label = stored.emotion_label
    message.trust = stored.trust
    message.supersedes.extend(stored.supersedes)
    message.source_hash = stored.source_hash
    values.set_timestamp(message.create_time, stored.create_time)
    if stored.event_time is not None:
        values.set_timestamp(message.event_time, stored.event_time)
    if stored.payload is not None:
        fill_payload(message.payload, stored.payload)
