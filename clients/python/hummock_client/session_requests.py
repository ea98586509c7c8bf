"""Requests about sessions from plain arguments; both clients send what these make."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.field_mask_pb2 import FieldMask

from hummock.v1 import context_service_pb2 as context_pb
from hummock.v1 import session_service_pb2 as pb
from hummock_client.requests import new_request_id


def create(project: str, session_id: str, title: str, request_id: str | None) -> pb.SessionServiceCreateRequest:
    """A session to create; a request_id is made when none is given."""
    return pb.SessionServiceCreateRequest(
        project=project, id=session_id, title=title, request_id=_request_id(request_id)
    )


def update(
    project: str, session_id: str, title: str | None, archived: bool | None, request_id: str | None
) -> pb.SessionServiceUpdateRequest:
    """New values of a session; None keeps what is there."""
    named = {"title": title, "archived": archived}
    return pb.SessionServiceUpdateRequest(
        project=project,
        session=pb.SessionUpdate(id=session_id, title=title or "", archived=archived or False),
        update_mask=FieldMask(paths=[name for name, value in named.items() if value is not None]),
        request_id=_request_id(request_id),
    )


def delete(project: str, session_id: str, request_id: str | None) -> pb.SessionServiceDeleteRequest:
    """The removal of a session; a request_id is made when none is given."""
    return pb.SessionServiceDeleteRequest(project=project, id=session_id, request_id=_request_id(request_id))


def append(
    project: str,
    session_id: str,
    content: str,
    *,
    role: context_pb.PromptRole.ValueType,
    raw: str,
    message_id: str,
    request_id: str | None,
) -> pb.SessionServiceAppendMessageRequest:
    """A message to append; a request_id is made when none is given."""
    return pb.SessionServiceAppendMessageRequest(
        project=project,
        session_id=session_id,
        id=message_id,
        role=role,
        content=content,
        raw=raw,
        request_id=_request_id(request_id),
    )


def watch(
    project: str, session_id: str, newest: int | None, after_position: int | None
) -> pb.SessionServiceWatchRequest:
    """A watch of a session's messages."""
    return pb.SessionServiceWatchRequest(
        project=project, session_id=session_id, newest=newest, after_position=after_position
    )


def learn_turn(
    project: str,
    session_id: str,
    user: str | context_pb.TurnSide,
    assistant: str | context_pb.TurnSide,
    used_memory_ids: Iterable[str],
    request_id: str | None,
) -> context_pb.LearnRequest:
    """A finished turn; a request_id is made when none is given."""
    turn = context_pb.Turn(
        session_id=session_id, user=_side(user), assistant=_side(assistant), used_memory_ids=used_memory_ids
    )
    return context_pb.LearnRequest(project=project, turn=turn, request_id=_request_id(request_id))


def _side(said: str | context_pb.TurnSide) -> context_pb.TurnSide:
    return context_pb.TurnSide(text=said) if isinstance(said, str) else said


def _request_id(given: str | None) -> str:
    return new_request_id() if given is None else given
