"""Sessions that answer with one session of one message, whatever they are asked."""

from __future__ import annotations

from hummock.core.session import (
    Active,
    AppendedMessage,
    AppendMessage,
    ChangeSession,
    CreateSession,
    DeletedMessages,
    DeletedSession,
    DeleteMessage,
    DeleteSession,
    MessagePage,
    PromptRole,
    Session,
    SessionMessage,
    SessionPage,
    UpdatedMessage,
    UpdateMessage,
    WrittenSession,
)
from hummock.ports.writes import Written

SESSION = Session(id="s", title="还款方式", create_time=1.0, update_time=2.0, message_count=1)
MESSAGE = SessionMessage(
    id="m", role=PromptRole.USER, content="还款方式", raw="", send_time=2.0, position=1, memory_id="u"
)


class FixedSessions:
    """Stands in for the use case."""

    def active(self, project: str) -> Active:
        return Active(session=SESSION, is_new=False)

    def create(self, asked: CreateSession) -> WrittenSession:
        return WrittenSession(session=SESSION, seq=1)

    def get(self, project: str, session_id: str) -> Session:
        return SESSION

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> SessionPage:
        return SessionPage(sessions=(SESSION,), next_behind=None)

    def change(self, asked: ChangeSession) -> WrittenSession:
        return WrittenSession(session=SESSION, seq=2)

    def delete(self, asked: DeleteSession) -> DeletedSession:
        return DeletedSession(message_count=1, seq=3)

    def append(self, asked: AppendMessage) -> AppendedMessage:
        return AppendedMessage(message_id=asked.message_id or "m", position=1, seq=4)

    def messages(
        self, project: str, session_id: str, before: int | None, limit: int, *, characters: int | None, most_bytes: int
    ) -> MessagePage:
        return MessagePage(messages=(MESSAGE,), has_before=False)

    def position_before(self, project: str, session: Session, newest: int, most_bytes: int) -> int:
        return max(0, session.last_position - newest)

    def news(self, project: str, session: Session, position: int, revision: int) -> FixedNews:
        return FixedNews(position)


class FixedNews:
    """Stands in for what comes of a session: its message, where that stands behind the position."""

    is_current = True
    revision = 0

    def __init__(self, position: int) -> None:
        self.position = position

    def read(self, most_bytes: int) -> tuple[tuple[SessionMessage, ...], tuple[SessionMessage, ...]]:
        appended = (MESSAGE,) if self.position < MESSAGE.position else ()
        self.position = max(self.position, MESSAGE.position)
        return appended, ()


class FixedMessages:
    """Stands in for the use case that changes messages."""

    def update(self, asked: UpdateMessage) -> Written[UpdatedMessage]:
        updated = UpdatedMessage(position=1, memory_id="u", held_for=(), deleted_count=0)
        return Written(seq=5, reply=updated)

    def delete(self, asked: DeleteMessage) -> Written[DeletedMessages]:
        return Written(seq=6, reply=DeletedMessages(deleted_count=1))
