"""SessionService: conversations and their messages."""

from __future__ import annotations

from hummock.core.session import Session
from hummock.rpc.page_token import page_number, page_token
from hummock.rpc.parse import session as parse_session
from hummock.rpc.parse import values
from hummock.rpc.present import session as present_session
from hummock.rpc.reply_stream import UNTIL_WRITTEN, Steps
from hummock.usecases.sessions import Sessions
from hummock.v1 import session_service_pb2 as pb

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
        return pb.SessionServiceGetOrCreateActiveResponse(
            session=present_session.session(active.session), created=active.is_new
        )

    def Create(self, request: pb.SessionServiceCreateRequest) -> pb.SessionServiceCreateResponse:
        """Creates a session."""
        written = self._sessions.create(parse_session.create_session(request))
        return pb.SessionServiceCreateResponse(session=present_session.session(written.session), seq=written.seq)

    def Get(self, request: pb.SessionServiceGetRequest) -> pb.SessionServiceGetResponse:
        """Returns one session."""
        project = values.project_name("project", request.project)
        found = self._sessions.get(project, values.identifier("id", request.id))
        return pb.SessionServiceGetResponse(session=present_session.session(found))

    def List(self, request: pb.SessionServiceListRequest) -> pb.SessionServiceListResponse:
        """Returns the sessions in pages."""
        project = values.project_name("project", request.project)
        behind = page_number(request, request.page_token)
        size = request.page_size or _DEFAULT_PAGE_SIZE
        page = self._sessions.page(project, behind, size, archived=request.archived)
        return pb.SessionServiceListResponse(
            sessions=map(present_session.session, page.sessions),
            next_page_token="" if page.next_behind is None else page_token(request, str(page.next_behind)),
        )

    def Update(self, request: pb.SessionServiceUpdateRequest) -> pb.SessionServiceUpdateResponse:
        """Changes the named fields of a session."""
        written = self._sessions.change(parse_session.change_session(request))
        return pb.SessionServiceUpdateResponse(session=present_session.session(written.session), seq=written.seq)

    def Delete(self, request: pb.SessionServiceDeleteRequest) -> pb.SessionServiceDeleteResponse:
        """Removes a session and its messages."""
        deleted = self._sessions.delete(parse_session.delete_session(request))
        return pb.SessionServiceDeleteResponse(seq=deleted.seq, message_count=deleted.message_count)

    def AppendMessage(self, request: pb.SessionServiceAppendMessageRequest) -> pb.SessionServiceAppendMessageResponse:
        """Appends a message."""
        appended = self._sessions.append(parse_session.append_message(request))
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
            messages=present_session.messages(page.messages),
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
                yield pb.SessionServiceWatchResponse(messages=present_session.messages(found))
            else:
                yield UNTIL_WRITTEN


def _first_position(request: pb.SessionServiceWatchRequest, session: Session) -> int:
    if request.HasField("after_position"):
        return request.after_position
    newest = request.newest if request.HasField("newest") else _DEFAULT_MESSAGES
    return max(0, session.message_count - newest)
