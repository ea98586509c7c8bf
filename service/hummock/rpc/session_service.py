"""SessionService: conversations and their messages."""

from __future__ import annotations

from collections.abc import Iterable

from hummock.core.errors import InvalidRequest
from hummock.core.session import (
    AppendMessage,
    ChangeSession,
    CreateSession,
    DeleteSession,
    LearnedSide,
    LearnedTurn,
    LearnTurnCommand,
    PromptRole,
    Session,
    SessionMessage,
    TurnSide,
)
from hummock.memories.sessions import Sessions
from hummock.rpc import values
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_token
from hummock.v1 import context_service_pb2, session_pb2
from hummock.v1 import session_service_pb2 as pb

_UPDATABLE = ("title", "archived")
_DEFAULT_PAGE_SIZE = 100
_DEFAULT_MESSAGES = 20
_REPLY_BYTES = 8 * 1024 * 1024
"""Of messages as stored; on the wire they take little more."""


class SessionServicer:
    """Each method is a call of the sessions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def GetOrCreateActive(
        self, request: pb.SessionServiceGetOrCreateActiveRequest
    ) -> pb.SessionServiceGetOrCreateActiveResponse:
        """Returns the active session."""
        active = self._sessions.active(values.project_name("project", request.project))
        return pb.SessionServiceGetOrCreateActiveResponse(session=session(active.session), created=active.is_new)

    def Create(self, request: pb.SessionServiceCreateRequest) -> pb.SessionServiceCreateResponse:
        """Creates a session."""
        written = self._sessions.create(create_session(request))
        return pb.SessionServiceCreateResponse(session=session(written.session), seq=written.seq)

    def Get(self, request: pb.SessionServiceGetRequest) -> pb.SessionServiceGetResponse:
        """Returns one session."""
        project = values.project_name("project", request.project)
        found = self._sessions.get(project, values.identifier("id", request.id))
        return pb.SessionServiceGetResponse(session=session(found))

    def List(self, request: pb.SessionServiceListRequest) -> pb.SessionServiceListResponse:
        """Returns the sessions in pages."""
        project = values.project_name("project", request.project)
        behind = page_number(request, request.page_token)
        size = request.page_size or _DEFAULT_PAGE_SIZE
        page = self._sessions.page(project, behind, size, archived=request.archived)
        return pb.SessionServiceListResponse(
            sessions=map(session, page.sessions),
            next_page_token="" if page.next_behind is None else page_token(request, str(page.next_behind)),
        )

    def Update(self, request: pb.SessionServiceUpdateRequest) -> pb.SessionServiceUpdateResponse:
        """Changes the named fields of a session."""
        written = self._sessions.change(change_session(request))
        return pb.SessionServiceUpdateResponse(session=session(written.session), seq=written.seq)

    def Delete(self, request: pb.SessionServiceDeleteRequest) -> pb.SessionServiceDeleteResponse:
        """Removes a session and its messages."""
        deleted = self._sessions.delete(delete_session(request))
        return pb.SessionServiceDeleteResponse(seq=deleted.seq, message_count=deleted.message_count)

    def AppendMessage(self, request: pb.SessionServiceAppendMessageRequest) -> pb.SessionServiceAppendMessageResponse:
        """Appends a message."""
        appended = self._sessions.append(append_message(request))
        return pb.SessionServiceAppendMessageResponse(
            id=appended.message_id, position=appended.position, seq=appended.seq
        )

    def ListMessages(self, request: pb.SessionServiceListMessagesRequest) -> pb.SessionServiceListMessagesResponse:
        """Returns messages in pages, the newest page first."""
        page = self._sessions.messages(
            values.project_name("project", request.project),
            values.identifier("session_id", request.session_id),
            page_number(request, request.page_token),
            request.page_size or _DEFAULT_MESSAGES,
            characters=request.max_characters or None,
            most_bytes=_REPLY_BYTES,
        )
        return pb.SessionServiceListMessagesResponse(
            messages=messages(page.messages),
            next_page_token=page_token(request, str(page.messages[0].position)) if page.has_before else "",
        )

    def Watch(self, request: pb.SessionServiceWatchRequest) -> Steps:
        """Sends the newest messages, then each that is appended."""
        project = values.project_name("project", request.project)
        session = self._sessions.get(project, values.identifier("session_id", request.session_id))
        position = _first_position(request, session)
        is_first = True
        while True:
            found = self._sessions.behind(project, session, position, _REPLY_BYTES)
            if found or is_first:
                position = found[-1].position if found else position
                is_first = False
                yield pb.SessionServiceWatchResponse(messages=messages(found))
            else:
                yield UNTIL_WRITTEN


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


def session(stored: Session) -> session_pb2.Session:
    """A session."""
    return session_pb2.Session(
        id=stored.id,
        title=stored.title,
        create_time=values.timestamp(stored.create_time),
        update_time=values.timestamp(stored.update_time),
        archived=stored.is_archived,
        message_count=stored.message_count,
    )


def messages(stored: Iterable[SessionMessage]) -> list[session_pb2.SessionMessage]:
    """Messages, in order."""
    return [
        session_pb2.SessionMessage(
            id=one.id,
            position=one.position,
            role=context_service_pb2.PromptRole.ValueType(one.role),
            content=one.content,
            raw=one.raw,
            send_time=values.timestamp(one.send_time),
        )
        for one in stored
    ]


def turn_command(request: context_service_pb2.LearnRequest) -> LearnTurnCommand:
    """A turn to be learnt."""
    sent = request.turn
    user, assistant = _parse_side("turn.user", sent.user), _parse_side("turn.assistant", sent.assistant)
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


def turn_response(learned: LearnedTurn) -> context_service_pb2.LearnResponse:
    """What became of a turn."""
    turn = context_service_pb2.TurnResult(user=_side_result(learned.user), assistant=_side_result(learned.assistant))
    return context_service_pb2.LearnResponse(seq=learned.seq, turn=turn)


def _parse_side(field: str, sent: context_service_pb2.TurnSide) -> TurnSide:
    if not sent.text.strip():
        raise InvalidRequest(f"{field}.text", "is blank")
    return TurnSide(
        text=sent.text,
        message_id=values.identifier(f"{field}.message_id", sent.message_id),
        raw=sent.raw,
        emotion_label=sent.emotion_label,
        speaker=values.identifier(f"{field}.speaker", sent.speaker),
    )


def _side_result(learned: LearnedSide) -> context_service_pb2.TurnSideResult:
    return context_service_pb2.TurnSideResult(
        message_id=learned.message_id,
        position=learned.position,
        memory_id=learned.memory_id,
        status=context_service_pb2.LearnStatus.ValueType(learned.status),
    )


def _first_position(request: pb.SessionServiceWatchRequest, session: Session) -> int:
    if request.HasField("after_position"):
        return request.after_position
    newest = request.newest if request.HasField("newest") else _DEFAULT_MESSAGES
    return max(0, session.message_count - newest)
