"""Sessions: created, listed, changed and removed, and messages appended to them and read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from hummock.core.errors import MessageIdTaken, SessionExists, SessionNotFound
from hummock.core.memory import WriteCommand
from hummock.core.session import (
    Active,
    AppendedMessage,
    AppendMessage,
    ChangeSession,
    CreateSession,
    DeletedSession,
    DeleteSession,
    MessagePage,
    PromptRole,
    Session,
    SessionMessage,
    WrittenSession,
)
from hummock.ports.models import Clock
from hummock.ports.sessions import SessionWork
from hummock.ports.store import Store
from hummock.ports.writes import Claim, UnitOfWork, WriteRequest, Written
from hummock.text.credentials import as_stored

Reply = TypeVar("Reply")

TITLE_CHARACTERS = 40

# Control characters except tabs, and those that change the writing direction.
_UNSEEN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_CLEARED_AT_ONCE = 1024
"""Messages that one write removes; other writes wait some milliseconds for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    """Reply of a write, kept for repeats of its request_id, that says only that it happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReply:
    """Reply of a write that leaves a session, kept for repeats of its request_id."""

    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteReply:
    """Reply of a removal, kept for repeats; `is_left` says that messages were still to be removed."""

    message_count: int
    is_left: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearReply:
    """Whether messages of removed sessions are still there."""

    is_left: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendReply:
    """Reply of an append, kept for repeats."""

    message_id: str
    position: int


def written(
    store: Store,
    command: WriteCommand,
    reply_type: type[Reply],
    apply: Callable[[UnitOfWork], Reply],
    *,
    creates: bool = False,
    is_bulk: bool = False,
    claim: Claim | None = None,
) -> Written[Reply]:
    """Write to the command's project; returns when it is durable. The arguments are those of `WriteRequest`."""
    request = WriteRequest(
        request_id=command.request_id,
        fingerprint=command.fingerprint,
        reply_type=reply_type,
        apply=apply,
        creates=creates,
        is_bulk=is_bulk,
        claim=claim,
    )
    return store.write(command.project, request).result()


class Sessions:
    """Keeps sessions. Safe to call from several threads."""

    def __init__(self, store: Store, clock: Clock, make_id: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._make_id = make_id
        # Reads are the store's own, without a step between; see `ports.Sessions`.
        self.get, self.page = store.sessions.get, store.sessions.page

    def active(self, project: str) -> Active:
        """Return the most recently used session that is not archived, or a new one. Raises: StorageFull."""
        newest = self._store.sessions.page(project, None, 1, archived=False).sessions
        if newest:
            return Active(session=newest[0], is_new=False)
        made = self._new(project, self._make_id(), "")

        def apply(work: UnitOfWork) -> Active:
            known = work.sessions.active()
            if known is None:
                work.sessions.create(made)
            return Active(session=known or made, is_new=known is None)

        return written(self._store, WriteCommand(project=project), Active, apply, creates=True).reply

    def create(self, asked: CreateSession) -> WrittenSession:
        """Create a session. Raises: SessionExists, RequestIdReused, StorageFull."""
        made = self._new(asked.project, asked.session_id or self._make_id(), asked.title)

        def apply(work: UnitOfWork) -> SessionReply:
            if work.sessions.get(made.id) is not None:
                raise SessionExists(made.id)
            work.sessions.create(made)
            return SessionReply(session=made)

        done = written(self._store, asked, SessionReply, apply, creates=True)
        return WrittenSession(session=done.reply.session, seq=done.seq)

    def change(self, asked: ChangeSession) -> WrittenSession:
        """Change a session. Raises: SessionNotFound, RequestIdReused, StorageFull."""
        self._require_project(asked.project, asked.session_id)

        def apply(work: UnitOfWork) -> SessionReply:
            session, policy = present(work.sessions, asked.session_id), work.settings().secret_policy()
            changed = replace(
                session,
                title=session.title if asked.title is None else as_stored(asked.title, policy),
                title_position=session.title_position if asked.title is None else 0,
                is_archived=session.is_archived if asked.is_archived is None else asked.is_archived,
            )
            work.sessions.change(changed)
            return SessionReply(session=changed)

        done = written(self._store, asked, SessionReply, apply)
        return WrittenSession(session=done.reply.session, seq=done.seq)

    def delete(self, asked: DeleteSession, claim: Claim | None = None) -> DeletedSession:
        """Remove a session in one write, and its messages in as many as it takes. Memories stay.

        If the service is killed in between, the session is gone, and the next removal in the project deletes the rest.
        `claim` is set if no caller asked for it, and guards the write.

        Raises: SessionNotFound, RequestIdReused, ClaimLost.
        """
        self._require_project(asked.project, asked.session_id)

        def apply(work: UnitOfWork) -> DeleteReply:
            session = present(work.sessions, asked.session_id)
            work.sessions.delete(session.id)
            return DeleteReply(message_count=session.message_count, is_left=work.sessions.clear(_CLEARED_AT_ONCE))

        done = written(self._store, asked, DeleteReply, apply, claim=claim)
        seq = clear_sessions(self._store, asked.project, claim) if done.reply.is_left else done.seq
        return DeletedSession(message_count=done.reply.message_count, seq=seq)

    def append(self, asked: AppendMessage) -> AppendedMessage:
        """Append a message. Raises: SessionNotFound, MessageIdTaken, RequestIdReused, StorageFull."""
        self._require_project(asked.project, asked.session_id)
        policy = self._store.settings(asked.project).secret_policy()
        message = SessionMessage(
            id=asked.message_id or self._make_id(),
            role=asked.role,
            content=as_stored(asked.content, policy),
            raw=as_stored(asked.raw, policy),
            send_time=self._clock.now(),
        )

        def apply(work: UnitOfWork) -> AppendReply:
            placed = place(work.sessions, asked.session_id, message, "id")
            return AppendReply(message_id=placed.id, position=placed.position)

        done = written(self._store, asked, AppendReply, apply)
        return AppendedMessage(message_id=done.reply.message_id, position=done.reply.position, seq=done.seq)

    def messages(
        self, project: str, session_id: str, before: int | None, limit: int, *, characters: int | None, most_bytes: int
    ) -> MessagePage:
        """Return the newest messages before a position (None: of all), in order of time, at most `limit`.

        They have at most so many characters together (None is no limit), and bytes as stored; the newest always comes.

        Raises: SessionNotFound.
        """
        page = self._store.sessions.before(project, session_id, before, limit, most_bytes)
        return page if characters is None else newest_within(page, characters)

    def news(self, project: str, session: Session, position: int, revision: int) -> News:
        """Return the news of this very session after a position and a revision."""
        return News(self._store, project, session, position, revision)

    def position_before(self, project: str, session: Session, newest: int, most_bytes: int) -> int:
        """Return the position before the `newest` last messages, or before all; reads `most_bytes` at a time.

        Raises: SessionNotFound.
        """
        if not session.deleted_count:
            return max(0, session.last_position - newest)
        before: int | None = session.last_position + 1
        while newest > 0 and before is not None:
            page = self._store.sessions.before(project, session.id, before, newest, most_bytes)
            newest -= len(page.messages)
            before = page.messages[0].position if page.has_before else None
        return 0 if before is None else before - 1

    def _new(self, project: str, session_id: str, title: str) -> Session:
        now, policy = self._clock.now(), self._store.settings(project).secret_policy()
        stored = as_stored(title, policy)
        return Session(id=session_id, title=stored, create_time=now, update_time=now, title_position=0)

    def _require_project(self, project: str, session_id: str) -> None:
        """A write would create it. Raises: SessionNotFound."""
        if self._store.project(project) is None:
            raise SessionNotFound(session_id)


class News:
    """News of a session, step by step: new messages, and earlier ones that were changed or deleted.

    Attributes:
        position: Position of the last message that was returned.
        revision: Revision up to which changes were returned.
    """

    def __init__(self, store: Store, project: str, session: Session, position: int, revision: int) -> None:
        self._reads = store.sessions
        self._project = project
        self._session = session
        self._waiting: list[tuple[int, int]] = []
        self._reached = revision
        self.position = position
        self.revision = revision

    @property
    def is_current(self) -> bool:
        """Whether all was given that there was when the session was read for this."""
        return self.position >= self._session.last_position and self.revision >= self._session.revision

    def read(self, most_bytes: int) -> tuple[tuple[SessionMessage, ...], tuple[SessionMessage, ...]]:
        """New messages, and changed ones, as far as `most_bytes` go for either; deleted ones are among them.

        Raises: SessionNotFound.
        """
        if not self._waiting:
            now = self._reads.get(self._project, self._session.id)
            self._waiting, self._reached = now.changed_since(self.revision, self.position), now.revision
        changed: tuple[SessionMessage, ...] = ()
        while self._waiting and not changed:
            first, last = self._waiting.pop(0)
            changed = self._behind(first - 1, most_bytes, last)
            reached = changed[-1].position if changed else last
            self._waiting[:0] = [(reached + 1, last)] if reached < last else []
        if not self._waiting:
            self.revision = self._reached
        appended = self._behind(self.position, most_bytes)
        self.position = appended[-1].position if appended else self.position
        return appended, changed

    def _behind(self, position: int, most_bytes: int, last: int | None = None) -> tuple[SessionMessage, ...]:
        session = self._session
        return self._reads.behind(self._project, session.id, position, most_bytes, session.number, last)


def clear_sessions(store: Store, project: str, claim: Claim | None = None) -> int:
    """Delete the messages of all removed sessions, in as many writes as needed. Returns the seq of the last one."""

    def apply(work: UnitOfWork) -> ClearReply:
        return ClearReply(is_left=work.sessions.clear(_CLEARED_AT_ONCE))

    while True:
        cleared = written(store, WriteCommand(project=project), ClearReply, apply, claim=claim)
        if not cleared.reply.is_left:
            return cleared.seq


def present(work: SessionWork, session_id: str) -> Session:
    """The session as the write sees it. Raises: SessionNotFound."""
    session = work.get(session_id)
    if session is None:
        raise SessionNotFound(session_id)
    return session


def place(work: SessionWork, session_id: str, message: SessionMessage, field: str) -> SessionMessage:
    """Return the stored message: appended unless one with its id, role and content exists.

    The id of a deleted message stays taken, so that a late repeat does not restore it. The message's time is raised to
    that of the message before it, if that is later. Raises: SessionNotFound; MessageIdTaken, of the request's `field`.
    """
    session = present(work, session_id)
    known = work.message(session_id, message.id)
    if known is not None:
        if (known.role, known.content) != (message.role, message.content):
            raise MessageIdTaken(field, message.id)
        return known
    placed = replace(message, send_time=max(message.send_time, session.update_time))
    if not session.title and message.role is PromptRole.USER:
        session = replace(session, title=title_of(message.content), title_position=session.last_position + 1)
    return work.append(replace(session, update_time=placed.send_time), placed)


def title_of(content: str) -> str:
    """The first line that is not blank, its spaces folded, cut at TITLE_CHARACTERS; nothing in it turns a display."""
    lines = (" ".join(_UNSEEN.sub("", line).split()) for line in content.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"


def newest_within(page: MessagePage, characters: int) -> MessagePage:
    """The newest messages of a page with so many characters at most; the newest of all whatever its length."""
    for age, message in enumerate(reversed(page.messages)):
        characters -= len(message.content)
        if age and characters < 0:
            return MessagePage(messages=page.messages[-age:], has_before=True)
    return page
