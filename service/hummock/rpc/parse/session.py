"""Requests about sessions, and turns to be learnt."""

from __future__ import annotations

from hummock.core.errors import InvalidRequest
from hummock.core.prompt import PromptRole
from hummock.core.session import (
    AppendMessage,
    ChangeSession,
    CreateSession,
    DeleteSession,
    LearnTurnCommand,
    TurnSide,
)
from hummock.rpc.parse import values
from hummock.v1 import context_service_pb2
from hummock.v1 import session_service_pb2 as pb

_UPDATABLE = ("title", "archived")


def create_session(request: pb.SessionServiceCreateRequest) -> CreateSession:
    """A session to create."""
    return CreateSession(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("id", request.id),
        title=values.identifier("title", request.title),
    )


def change_session(request: pb.SessionServiceUpdateRequest) -> ChangeSession:
    """The fields that the mask names."""
    named = frozenset(request.update_mask.paths)
    if not named or not named.issubset(_UPDATABLE):
        raise InvalidRequest("update_mask", f"must name one or more of {', '.join(_UPDATABLE)}, and nothing else")
    return ChangeSession(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("session.id", request.session.id),
        title=values.identifier("session.title", request.session.title) if "title" in named else None,
        is_archived=request.session.archived if "archived" in named else None,
    )


def delete_session(request: pb.SessionServiceDeleteRequest) -> DeleteSession:
    """A session to remove."""
    return DeleteSession(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("id", request.id),
    )


def append_message(request: pb.SessionServiceAppendMessageRequest) -> AppendMessage:
    """A message to append."""
    return AppendMessage(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("session_id", request.session_id),
        message_id=values.identifier("id", request.id),
        role=PromptRole(request.role),
        content=request.content,
        raw=request.raw,
    )


def turn_command(request: context_service_pb2.LearnRequest) -> LearnTurnCommand:
    """A turn to be learnt."""
    sent = request.turn
    user, assistant = _side("turn.user", sent.user), _side("turn.assistant", sent.assistant)
    if user.message_id and user.message_id == assistant.message_id:
        raise InvalidRequest("turn.assistant.message_id", "is that of the user's message; make a new one")
    return LearnTurnCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request) if request.request_id else b"",
        session_id=values.identifier("turn.session_id", sent.session_id),
        user=user,
        assistant=assistant,
        used_memory_ids=values.identifiers("turn.used_memory_ids", sent.used_memory_ids),
    )


def _side(field: str, sent: context_service_pb2.TurnSide) -> TurnSide:
    if not sent.text.strip():
        raise InvalidRequest(f"{field}.text", "is blank")
    return TurnSide(
        text=sent.text,
        message_id=values.identifier(f"{field}.message_id", sent.message_id),
        raw=sent.raw,
        emotion_label=sent.emotion_label,
        speaker=values.identifier(f"{field}.speaker", sent.speaker),
    )
