"""Records of a project that are taken in."""

from __future__ import annotations

import numpy as np

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin
from hummock.core.project import ProjectInfo
from hummock.core.prompt import PromptRole
from hummock.core.session import Session, SessionMessage
from hummock.core.transfer import Given, GivenChunk, GivenMemory, GivenMessage, GivenProject, GivenRemoval
from hummock.rpc.parse import values
from hummock.rpc.parse.memory import draft
from hummock.rpc.parse.request import check
from hummock.rpc.parse.settings import project_settings
from hummock.v1 import transfer_pb2 as pb

_FLOAT_BYTES = 4


def given(record: pb.TransferRecord) -> Given | None:
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


def _project(sent: pb.TransferHeader) -> GivenProject:
    info = ProjectInfo(
        tech_stack=tuple(sent.tech_stack),
        path=sent.path,
        tech_stack_origin=Origin(sent.tech_stack_origin) if sent.tech_stack_origin else None,
        path_origin=Origin(sent.path_origin) if sent.path_origin else None,
    )
    return GivenProject(info=info, settings=project_settings(sent.settings))


def _memory(sent: pb.TransferMemory) -> GivenMemory:
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


def _session(sent: pb.TransferSession) -> Session:
    created = values.time("session.create_time", sent, "create_time") or 0.0
    return Session(
        id=values.identifier("session.id", sent.id),
        title=values.identifier("session.title", sent.title),
        create_time=created,
        update_time=created,
        is_archived=sent.archived,
    )


def _message(sent: pb.TransferMessage) -> GivenMessage:
    message = SessionMessage(
        id=values.identifier("message.id", sent.id),
        role=PromptRole(sent.role),
        content=sent.content,
        raw=sent.raw,
        send_time=values.time("message.send_time", sent, "send_time") or 0.0,
        memory_id=values.identifier("message.memory_id", sent.memory_id),
    )
    return GivenMessage(session_id=values.identifier("message.session_id", sent.session_id), message=message)


def _chunk(at: int, sent: pb.TransferChunk) -> GivenChunk:
    if len(sent.values) % _FLOAT_BYTES:
        field = f"memory.chunks[{at}].values"
        raise InvalidRequest(field, f"has {len(sent.values)} bytes; float32 takes 4 for each component")
    return GivenChunk(values=np.frombuffer(sent.values, "<f4").astype(np.float32), tokens=sent.tokens)
