"""SessionService: conversations and their messages."""

from __future__ import annotations

from collections.abc import Iterable

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest
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
from hummock.rpc.conversion import message_of, value_of
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_token
from hummock_client.v1 import context_service_pb2, session_pb2
from hummock_client.v1 import session_service_pb2 as pb

_UPDATABLE = ("title", "archived")
_MESSAGE_FIELDS = ("content", "raw")
_DEFAULT_MESSAGES = 20
_REPLY_BYTES = 3 * 1024 * 1024
"""Most bytes of stored messages in one reply; on the wire they take little more."""


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
        return pb.GetOrCreateActiveSessionResponse(session=_session(active.session), created=active.is_new)

    def CreateSession(self, request: pb.CreateSessionRequest, call: CallContext) -> pb.CreateSessionResponse:
        """Creates a session."""
        written = self._sessions.create(
            CreateSession(
                **values.write(request),
                session_id=values.identifier("id", request.id),
                title=values.identifier("title", request.title),
            )
        )
        return pb.CreateSessionResponse(session=_session(written.session), seq=written.seq)

    def GetSession(self, request: pb.GetSessionRequest, call: CallContext) -> pb.GetSessionResponse:
        """Returns one session."""
        project = values.project_name("project", request.project)
        with inside(project, self._require):
            return pb.GetSessionResponse(
                session=_session(self._sessions.get(project, values.identifier("id", request.id)))
            )

    def ListSessions(self, request: pb.ListSessionsRequest, call: CallContext) -> pb.ListSessionsResponse:
        """Returns the sessions in pages."""
        project = project_read(request, self._require)
        behind = page_number(request, request.page_token)
        size = values.page_size(request.page_size)
        page = self._sessions.page(project, behind, size, archived=request.archived)
        return pb.ListSessionsResponse(
            sessions=map(_session, page.sessions), next_page_token=page_token(request, page.next_behind)
        )

    def UpdateSession(self, request: pb.UpdateSessionRequest, call: CallContext) -> pb.UpdateSessionResponse:
        """Changes the named fields of a session."""
        with inside(request.project, self._require):
            named = values.mask(request.update_mask.paths, _UPDATABLE)
            written = self._sessions.change(
                ChangeSession(
                    **values.write(request),
                    session_id=values.identifier("session.id", request.session.id),
                    title=values.identifier("session.title", request.session.title) if "title" in named else None,
                    is_archived=request.session.archived if "archived" in named else None,
                )
            )
        return pb.UpdateSessionResponse(session=_session(written.session), seq=written.seq)

    def DeleteSession(self, request: pb.DeleteSessionRequest, call: CallContext) -> pb.DeleteSessionResponse:
        """Removes a session and its messages."""
        with inside(request.project, self._require):
            deleted = self._sessions.delete(
                DeleteSession(**values.write(request), session_id=values.identifier("id", request.id))
            )
        return message_of(pb.DeleteSessionResponse, deleted)

    def AppendMessage(self, request: pb.AppendMessageRequest, call: CallContext) -> pb.AppendMessageResponse:
        """Appends a message."""
        with inside(request.project, self._require):
            appended = self._sessions.append(
                value_of(
                    AppendMessage,
                    request,
                    **values.write(request),
                    session_id=values.identifier("session_id", request.session_id),
                    message_id=values.identifier("id", request.id),
                    role=PromptRole(request.role),
                )
            )
        return message_of(pb.AppendMessageResponse, appended, id=appended.message_id)

    def UpdateMessage(self, request: pb.UpdateMessageRequest, call: CallContext) -> pb.UpdateMessageResponse:
        """Changes the named texts of a message, and the memory that it was learnt as."""
        with inside(request.project, self._require):
            written = self._messages.update(update_message(request, call.deadline, call.caller.writer))
        return message_of(pb.UpdateMessageResponse, written.reply, id=request.message.id, seq=written.seq)

    def DeleteMessage(self, request: pb.DeleteMessageRequest, call: CallContext) -> pb.DeleteMessageResponse:
        """Removes a message, and the memory that it was learnt as."""
        with inside(request.project, self._require):
            written = self._messages.delete(
                DeleteMessage(
                    **values.write(request),
                    session_id=values.identifier("session_id", request.session_id),
                    message_id=values.identifier("id", request.id),
                    deletes_following=request.delete_following,
                )
            )
        return message_of(pb.DeleteMessageResponse, written.reply, seq=written.seq)

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
            messages=_messages(page.messages),
            next_page_token=page_token(request, page.messages[0].position if page.has_before else None),
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
                messages=_messages(one for one in appended if not one.is_deleted),
                position=news.position,
                caught_up=news.is_current,
                updated_messages=_messages(one for one in changed if not one.is_deleted),
                deleted_ids=[one.id for one in changed if one.is_deleted],
                revision=news.revision,
            )

    def _first_position(self, request: pb.WatchMessagesRequest, session: Session) -> int:
        if request.HasField("after_position"):
            return request.after_position
        newest = request.newest if request.HasField("newest") else _DEFAULT_MESSAGES
        return self._sessions.position_before(request.project, session, newest, _REPLY_BYTES)


def update_message(
    request: pb.UpdateMessageRequest, deadline: Deadline = NO_DEADLINE, writer: str = ""
) -> UpdateMessage:
    """Parse an update of the fields that the mask names; `writer` is the name of the caller's token."""
    named = values.mask(request.update_mask.paths, _MESSAGE_FIELDS)
    if "content" in named and not request.message.content.strip():
        raise InvalidRequest("message.content", "is blank")
    return UpdateMessage(
        **values.write(request),
        session_id=values.identifier("session_id", request.session_id),
        message_id=values.identifier("message.id", request.message.id),
        content=request.message.content if "content" in named else None,
        raw=request.message.raw if "raw" in named else None,
        deletes_following=request.delete_following,
        deadline=deadline,
        writer=writer,
    )


def _session(stored: Session) -> session_pb2.ChatSession:
    """A session."""
    return message_of(session_pb2.ChatSession, stored, archived=stored.is_archived)


def _messages(stored: Iterable[SessionMessage]) -> list[session_pb2.ChatMessage]:
    """Messages, in order."""
    return [message_of(session_pb2.ChatMessage, one) for one in stored]


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
        **values.write(request),
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
    status = context_service_pb2.TurnSideStatus.Value(f"TURN_SIDE_STATUS_{learned.status.name}")
    return message_of(context_service_pb2.TurnSideResult, learned, status=status)
