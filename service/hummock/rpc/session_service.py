"""SessionService: conversations and their messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest
from hummock.core.memory import LearnStatus
from hummock.core.session import (
    AppendMessage,
    ChangeSession,
    CreateSession,
    DeleteMessage,
    DeleteSession,
    LearnedSide,
    LearnedTurn,
    LearnTurnCommand,
    PromptRole,
    Session,
    SessionMessage,
    TurnSide,
    UpdateMessage,
)
from hummock.memories.messages import Messages
from hummock.memories.sessions import Sessions
from hummock.rpc import values
from hummock.rpc.call import CallContext, Require, inside, project_read
from hummock.rpc.memory_messages import secrets_found
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_token
from hummock_client.v1 import context_service_pb2, session_pb2
from hummock_client.v1 import session_service_pb2 as pb

_UPDATABLE = ("title", "archived")
_MESSAGE_FIELDS = ("content", "raw")
_DEFAULT_MESSAGES = 20
_REPLY_BYTES = 3 * 1024 * 1024
"""Most bytes of stored messages in one reply; on the wire they take little more."""


_SIDE_STATUS: Final[Mapping[LearnStatus, context_service_pb2.TurnSideStatus.ValueType]] = {
    LearnStatus.CREATED: context_service_pb2.TURN_SIDE_STATUS_CREATED,
    LearnStatus.UNCHANGED: context_service_pb2.TURN_SIDE_STATUS_UNCHANGED,
    LearnStatus.QUOTED: context_service_pb2.TURN_SIDE_STATUS_QUOTED,
    LearnStatus.SMALL_TALK: context_service_pb2.TURN_SIDE_STATUS_SMALL_TALK,
    LearnStatus.HELD: context_service_pb2.TURN_SIDE_STATUS_HELD,
}


class SessionServicer:
    """Each method is a call of the sessions."""

    def __init__(self, sessions: Sessions, messages: Messages, require: Require) -> None:
        self._sessions = sessions
        self._messages = messages
        self._require = require

    def GetOrCreateActiveSession(
        self, request: pb.GetOrCreateActiveSessionRequest, call: CallContext
    ) -> pb.GetOrCreateActiveSessionResponse:
        """Returns the active session."""
        active = self._sessions.active(values.project_name("project", request.project))
        return pb.GetOrCreateActiveSessionResponse(session=session(active.session), created=active.is_new)

    def CreateSession(self, request: pb.CreateSessionRequest, call: CallContext) -> pb.CreateSessionResponse:
        """Creates a session."""
        written = self._sessions.create(create_session(request))
        return pb.CreateSessionResponse(session=session(written.session), seq=written.seq)

    def GetSession(self, request: pb.GetSessionRequest, call: CallContext) -> pb.GetSessionResponse:
        """Returns one session."""
        project = values.project_name("project", request.project)
        with inside(project, self._require):
            return pb.GetSessionResponse(
                session=session(self._sessions.get(project, values.identifier("id", request.id)))
            )

    def ListSessions(self, request: pb.ListSessionsRequest, call: CallContext) -> pb.ListSessionsResponse:
        """Returns the sessions in pages."""
        project = project_read(request, self._require)
        behind = page_number(request, request.page_token)
        size = values.page_size(request.page_size)
        page = self._sessions.page(project, behind, size, archived=request.archived)
        return pb.ListSessionsResponse(
            sessions=map(session, page.sessions),
            next_page_token="" if page.next_behind is None else page_token(request, str(page.next_behind)),
        )

    def UpdateSession(self, request: pb.UpdateSessionRequest, call: CallContext) -> pb.UpdateSessionResponse:
        """Changes the named fields of a session."""
        with inside(request.project, self._require):
            written = self._sessions.change(change_session(request))
        return pb.UpdateSessionResponse(session=session(written.session), seq=written.seq)

    def DeleteSession(self, request: pb.DeleteSessionRequest, call: CallContext) -> pb.DeleteSessionResponse:
        """Removes a session and its messages."""
        with inside(request.project, self._require):
            deleted = self._sessions.delete(delete_session(request))
        return pb.DeleteSessionResponse(seq=deleted.seq, message_count=deleted.message_count)

    def AppendMessage(self, request: pb.AppendMessageRequest, call: CallContext) -> pb.AppendMessageResponse:
        """Appends a message."""
        with inside(request.project, self._require):
            appended = self._sessions.append(append_message(request))
        return pb.AppendMessageResponse(id=appended.message_id, position=appended.position, seq=appended.seq)

    def UpdateMessage(self, request: pb.UpdateMessageRequest, call: CallContext) -> pb.UpdateMessageResponse:
        """Changes the named texts of a message, and the memory that it was learnt as."""
        with inside(request.project, self._require):
            written = self._messages.update(update_message(request, call.deadline, call.caller.writer))
        updated = written.reply
        return pb.UpdateMessageResponse(
            id=request.message.id,
            position=updated.position,
            seq=written.seq,
            memory_id=updated.memory_id,
            held_for=updated.held_for,
            deleted_count=updated.deleted_count,
        )

    def DeleteMessage(self, request: pb.DeleteMessageRequest, call: CallContext) -> pb.DeleteMessageResponse:
        """Removes a message, and the memory that it was learnt as."""
        with inside(request.project, self._require):
            written = self._messages.delete(delete_message(request))
        return pb.DeleteMessageResponse(seq=written.seq, deleted_count=written.reply.deleted_count)

    def ListMessages(self, request: pb.ListMessagesRequest, call: CallContext) -> pb.ListMessagesResponse:
        """Returns messages in pages, the newest page first."""
        project = values.project_name("project", request.project)
        with inside(project, self._require):
            page = self._sessions.messages(
                project,
                values.identifier("session_id", request.session_id),
                page_number(request, request.page_token),
                values.page_size(request.page_size, _DEFAULT_MESSAGES),
                characters=request.max_characters or None,
                most_bytes=_REPLY_BYTES,
            )
        return pb.ListMessagesResponse(
            messages=messages(page.messages),
            next_page_token=page_token(request, str(page.messages[0].position)) if page.has_before else "",
        )

    def WatchMessages(self, request: pb.WatchMessagesRequest, call: CallContext) -> Steps:
        """Sends the newest messages, then each that is appended, changed or deleted."""
        project = values.project_name("project", request.project)
        if request.HasField("after_revision") and not request.HasField("after_position"):
            raise InvalidRequest("after_position", "is not set; after_revision needs it")
        with inside(project, self._require):
            session = self._sessions.get(project, values.identifier("session_id", request.session_id))
            position = self._first_position(request, session)
        revision = request.after_revision if request.HasField("after_revision") else session.revision
        news, is_first = self._sessions.news(project, session, position, revision), True
        while True:
            with inside(project, self._require):
                appended, changed = news.read(_REPLY_BYTES)
            if not (appended or changed or is_first):
                yield UNTIL_WRITTEN
                continue
            is_first = False
            yield pb.WatchMessagesResponse(
                messages=messages(one for one in appended if not one.is_deleted),
                position=news.position,
                caught_up=news.is_current,
                updated_messages=messages(one for one in changed if not one.is_deleted),
                deleted_ids=[one.id for one in changed if one.is_deleted],
                revision=news.revision,
            )

    def _first_position(self, request: pb.WatchMessagesRequest, session: Session) -> int:
        if request.HasField("after_position"):
            return request.after_position
        newest = request.newest if request.HasField("newest") else _DEFAULT_MESSAGES
        return self._sessions.position_before(request.project, session, newest, _REPLY_BYTES)


def create_session(request: pb.CreateSessionRequest) -> CreateSession:
    """A session to create."""
    return CreateSession(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("id", request.id),
        title=values.identifier("title", request.title),
    )


def change_session(request: pb.UpdateSessionRequest) -> ChangeSession:
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


def delete_session(request: pb.DeleteSessionRequest) -> DeleteSession:
    """A session to remove."""
    return DeleteSession(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("id", request.id),
    )


def append_message(request: pb.AppendMessageRequest) -> AppendMessage:
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


def update_message(
    request: pb.UpdateMessageRequest, deadline: Deadline = NO_DEADLINE, writer: str = ""
) -> UpdateMessage:
    """Parse an update of the fields that the mask names; `writer` is the name of the caller's token."""
    named = frozenset(request.update_mask.paths)
    if not named or not named.issubset(_MESSAGE_FIELDS):
        raise InvalidRequest("update_mask", f"must name one or more of {', '.join(_MESSAGE_FIELDS)}, and nothing else")
    if "content" in named and not request.message.content.strip():
        raise InvalidRequest("message.content", "is blank")
    return UpdateMessage(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("session_id", request.session_id),
        message_id=values.identifier("message.id", request.message.id),
        content=request.message.content if "content" in named else None,
        raw=request.message.raw if "raw" in named else None,
        deletes_following=request.delete_following,
        deadline=deadline,
        writer=writer,
    )


def delete_message(request: pb.DeleteMessageRequest) -> DeleteMessage:
    """A message to delete."""
    return DeleteMessage(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        session_id=values.identifier("session_id", request.session_id),
        message_id=values.identifier("id", request.id),
        deletes_following=request.delete_following,
    )


def session(stored: Session) -> session_pb2.ChatSession:
    """A session."""
    return session_pb2.ChatSession(
        id=stored.id,
        title=stored.title,
        create_time=values.timestamp(stored.create_time),
        update_time=values.timestamp(stored.update_time),
        archived=stored.is_archived,
        message_count=stored.message_count,
        last_position=stored.last_position,
        revision=stored.revision,
    )


def messages(stored: Iterable[SessionMessage]) -> list[session_pb2.ChatMessage]:
    """Messages, in order."""
    return [
        session_pb2.ChatMessage(
            id=one.id,
            position=one.position,
            role=context_service_pb2.PromptRole.ValueType(one.role),
            content=one.content,
            raw=one.raw,
            send_time=values.timestamp(one.send_time),
        )
        for one in stored
    ]


def turn_command(
    request: context_service_pb2.LearnTurnRequest, deadline: Deadline = NO_DEADLINE, writer: str = ""
) -> LearnTurnCommand:
    """Parse a turn to be learnt; `writer` is the name of the caller's token."""
    user, assistant = _parse_side("user", request.user), _parse_side("assistant", request.assistant)
    if user.message_id and user.message_id == assistant.message_id:
        raise InvalidRequest("assistant.message_id", "is that of the user's message; make a new one")
    if request.replace_answer and not (user.message_id and assistant.message_id):
        field = "assistant.message_id" if user.message_id else "user.message_id"
        raise InvalidRequest(field, "is empty; replace_answer needs it")
    return LearnTurnCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request) if request.request_id else b"",
        session_id=values.identifier("session_id", request.session_id),
        user=user,
        assistant=assistant,
        used_memory_ids=values.identifiers("used_memory_ids", request.used_memory_ids),
        replaces_answer=request.replace_answer,
        is_deferred=request.embedding == context_service_pb2.EMBEDDING_MODE_DEFERRED,
        deadline=deadline,
        writer=writer,
        files=values.files("files", request.files),
        time_zone=values.time_zone("time_zone", request.time_zone),
    )


def turn_response(learned: LearnedTurn) -> context_service_pb2.LearnTurnResponse:
    """The result of a turn, as a reply."""
    return context_service_pb2.LearnTurnResponse(
        seq=learned.seq, user=_side_result(learned.user), assistant=_side_result(learned.assistant)
    )


def _parse_side(field: str, sent: context_service_pb2.TurnSide) -> TurnSide:
    if not sent.text.strip():
        raise InvalidRequest(f"{field}.text", "is blank")
    return TurnSide(
        text=sent.text,
        message_id=values.identifier(f"{field}.message_id", sent.message_id),
        raw=sent.raw,
        emotion_label=sent.emotion_label,
        speaker=values.identifier(f"{field}.speaker", sent.speaker),
        create_time=values.time(f"{field}.create_time", sent, "create_time"),
    )


def _side_result(learned: LearnedSide) -> context_service_pb2.TurnSideResult:
    return context_service_pb2.TurnSideResult(
        message_id=learned.message_id,
        position=learned.position,
        memory_id=learned.memory_id,
        status=_SIDE_STATUS[learned.status],
        secrets=map(secrets_found, learned.secrets),
        held_for=learned.held_for,
    )
