"""Ports of stored conversations: reads, and changes within a write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from hummock.core.session import MessagePage, Session, SessionMessage, SessionPage


class Sessions(Protocol):
    """Reads of the sessions of all projects. Each sees every write that was acknowledged before it began."""

    def get(self, project: str, session_id: str) -> Session:
        """One session. Raises: SessionNotFound."""

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> SessionPage:
        """Return at most `limit` sessions, archived or not, the most recently moved first.

        A session moves when it is created and with every message. `behind` is `next_behind` of the previous page; None
        is the beginning.
        """

    def all(self, project: str) -> tuple[Session, ...]:
        """Return all sessions at one moment: archived ones first, each kind with the most recently moved last."""

    def message(self, project: str, session_id: str, message_id: str) -> SessionMessage | None:
        """One message; None where the session has none with this id. Raises: SessionNotFound."""

    def before(self, project: str, session_id: str, position: int | None, limit: int, most_bytes: int) -> MessagePage:
        """Return at most `limit` messages before a position (None: the newest), in order of time, without deleted ones.

        The page is at most `most_bytes` as stored, but has at least one message.

        Raises: SessionNotFound.
        """

    def behind(
        self,
        project: str,
        session_id: str,
        position: int,
        most_bytes: int,
        number: int | None = None,
        last: int | None = None,
    ) -> tuple[SessionMessage, ...]:
        """Return the messages directly after a position, in order of time, up to `most_bytes`; at least one.

        Deleted ones are included.

        Args:
            project: The session's project.
            session_id: The session.
            position: 0 is the beginning.
            most_bytes: Most bytes of the messages as stored.
            number: Number of the session, to exclude another one with the same id; None accepts any.
            last: The last position; None is that of the newest message.

        Raises: SessionNotFound.
        """


class SessionWork(Protocol):
    """Sessions of a project within a write: changes, and reads that see them."""

    def get(self, session_id: str) -> Session | None:
        """A session."""

    def active(self) -> Session | None:
        """Return the most recently moved session that is not archived."""

    def message(self, session_id: str, message_id: str) -> SessionMessage | None:
        """Return a message of an existing session, even a deleted one."""

    def behind(self, session_id: str, position: int) -> Iterator[SessionMessage]:
        """Yield the messages of an existing session after a position, in order of time, without deleted ones."""

    def create(self, session: Session) -> None:
        """Store a session with an unused id, as the most recently moved."""

    def change(self, session: Session) -> None:
        """Replaces a session's values; its place in the order stays."""

    def append(self, session: Session, message: SessionMessage) -> SessionMessage:
        """Append a message and replace the session's values; the session becomes the most recently moved.

        Returns:
            The message with its position. The session's message_count is incremented here.
        """

    def learnt(self, session_id: str, message: SessionMessage) -> None:
        """Replace an existing message by one that differs only in its memory."""

    def put(self, session: Session, messages: Sequence[SessionMessage]) -> None:
        """Replace existing messages and the session's values; its place in the order stays."""

    def delete(self, session_id: str) -> None:
        """Remove an existing session from all reads; `clear` deletes its messages."""

    def clear(self, limit: int) -> bool:
        """Removes at most `limit` messages of sessions that were deleted; whether some are left."""
