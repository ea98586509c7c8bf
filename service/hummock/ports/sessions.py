"""What the store keeps of conversations: reads, and what a write does with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from hummock.core.session import MessagePage, Session, SessionMessage, SessionPage


class Sessions(Protocol):
    """Reads of the sessions of all projects. Each sees every write that was acknowledged before it began."""

    def get(self, project: str, session_id: str) -> Session:
        """One session. Raises: SessionNotFound."""

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> SessionPage:
        """At most `limit` sessions, of those that are archived or those that are not, the one that moved last first.

        A session moves when it is created and with every message. Behind `next_behind` of the page before; None is the
        beginning.
        """

    def all(self, project: str) -> tuple[Session, ...]:
        """All sessions at one moment: the archived ones first, and of either kind what moved last at the end."""

    def message(self, project: str, session_id: str, message_id: str) -> SessionMessage | None:
        """One message; None where the session has none with this id. Raises: SessionNotFound."""

    def before(self, project: str, session_id: str, position: int | None, limit: int, most_bytes: int) -> MessagePage:
        """At most `limit` messages before a position (None: the newest), in the order of time; none that was deleted.

        The page ends before the message that would make it larger than `most_bytes` as stored; one comes at least.

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
        """The messages directly behind a position, in the order of time, as far as `most_bytes` go; one at least.

        Those that were deleted are among them.

        Args:
            project: Of the session.
            session_id: The session.
            position: 0 is the beginning.
            most_bytes: Of the messages as stored.
            number: The session's, where none but that one is meant; None is whichever has the id.
            last: The last position; None is that of the newest message.

        Raises: SessionNotFound.
        """


class SessionWork(Protocol):
    """The changes that a write makes to the sessions of its project, and what it sees of them."""

    def get(self, session_id: str) -> Session | None:
        """A session."""

    def active(self) -> Session | None:
        """The session that changed last of those that are not archived."""

    def message(self, session_id: str, message_id: str) -> SessionMessage | None:
        """A message of a session that is there, also one that was deleted."""

    def behind(self, session_id: str, position: int) -> Iterator[SessionMessage]:
        """The messages of a session that is there behind a position, in the order of time, none that was deleted."""

    def create(self, session: Session) -> None:
        """Stores a session whose id is free; it has moved last."""

    def change(self, session: Session) -> None:
        """Replaces a session's values; its place in the order stays."""

    def append(self, session: Session, message: SessionMessage) -> SessionMessage:
        """Stores a message behind the newest one and replaces the session's values; the session has moved last.

        Returns:
            The message with its position. The session's message_count counts up by itself.
        """

    def learnt(self, session_id: str, message: SessionMessage) -> None:
        """Replaces a message that is there by one that differs in its memory alone."""

    def put(self, session: Session, messages: Sequence[SessionMessage]) -> None:
        """Replaces messages that are there, and the session's values; its place in the order stays."""

    def delete(self, session_id: str) -> None:
        """Makes a session that is there disappear; its messages are left to `clear`."""

    def clear(self, limit: int) -> bool:
        """Removes at most `limit` messages of sessions that were deleted; whether some are left."""
