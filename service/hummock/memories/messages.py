"""Changes and deletions of stored messages, and of the memories learnt from them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from msgspec.structs import replace

from hummock.core.embedding import Embedding
from hummock.core.errors import InvalidRequest, MessageNotFound, SessionNotFound, Unavailable
from hummock.core.memory import Memory
from hummock.core.session import (
    DeletedMessages,
    DeleteMessage,
    PromptRole,
    Session,
    SessionMessage,
    UpdatedMessage,
    UpdateMessage,
)
from hummock.learning.restate import restate
from hummock.memories.learn import hold
from hummock.memories.preparation import Preparation, Prepared, make_memory, to_hold
from hummock.memories.screening import families_of, without_unverified_pin
from hummock.memories.sessions import present, title_of, written
from hummock.ports.models import Clock
from hummock.ports.sessions import SessionWork
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, Written
from hummock.text.credentials import as_stored
from hummock.text.template import as_draft
from hummock.text.told_days import event_time_read

MOST_FOLLOWING = 512
"""Following messages that one call deletes; other writes wait some tens of milliseconds for it."""

_MOST_CHANGES = 64
"""Changes that a session remembers. A watch that missed more gets all messages again."""

_ATTEMPTS = 8
"""Times that a change starts again because another write changed the message or its memory in between."""


class Messages:
    """Changes and deletes messages. Safe to call from several threads."""

    def __init__(self, store: Store, preparation: Preparation, clock: Clock) -> None:
        self._store = store
        self._preparation = preparation
        self._clock = clock

    def update(self, asked: UpdateMessage) -> Written[UpdatedMessage]:
        """Change a message and the memory that it was learnt as, in one write.

        Raises: SessionNotFound, MessageNotFound, InvalidRequest, RequestIdReused, StorageFull; Unavailable when others
            kept changing it.
        """
        # A repeat is answered as the first time, though the message is gone.
        earlier = self._store.earlier(asked.project, asked.request_id, asked.fingerprint, UpdatedMessage)
        if earlier is not None:
            return earlier
        for _ in range(_ATTEMPTS):
            with suppress(_Changed):
                return self._update(asked)
        raise Unavailable(f"message {asked.message_id} is being changed by others all the time; try again")

    def delete(self, asked: DeleteMessage) -> Written[DeletedMessages]:
        """Delete a message and the memory that it was learnt as, in one write.

        Raises: SessionNotFound, MessageNotFound, InvalidRequest, RequestIdReused.
        """

        def apply(work: UnitOfWork) -> DeletedMessages:
            session = present(work.sessions, asked.session_id)
            first = there(work.sessions, session.id, asked.message_id)
            gone = [first, *(_following(work.sessions, session, first) if asked.deletes_following else ())]
            change(work, session, gone, [_unlearnt(work, one) for one in gone])
            return DeletedMessages(deleted_count=len(gone))

        self._require_project(asked)
        return written(self._store, asked, DeletedMessages, apply)

    def _update(self, asked: UpdateMessage) -> Written[UpdatedMessage]:
        before = self._store.sessions.message(asked.project, asked.session_id, asked.message_id)
        if before is None:
            raise MessageNotFound(asked.message_id)
        after = self._changed(asked, before)
        known = self._learnt(asked.project, before)
        prepared, vectors = (None, ()) if known is None else self._prepared(asked, known, after)

        def apply(work: UnitOfWork) -> UpdatedMessage:
            session = present(work.sessions, asked.session_id)
            if there(work.sessions, session.id, before.id) != before or not _is_same(_learnt_as(work, before), known):
                raise _Changed
            stored = after if prepared is None else relearn(work, after, prepared, vectors, self._clock.now())
            gone = _following(work.sessions, session, before) if asked.deletes_following else []
            if stored != before or gone:
                change(work, session, [before, *gone], [stored, *(_unlearnt(work, one) for one in gone)])
            return UpdatedMessage(
                position=before.position,
                memory_id=stored.memory_id or stored.held_id if known is not None else "",
                held_for=() if prepared is None else prepared.held_for,
                deleted_count=len(gone),
            )

        self._require_project(asked)
        return written(self._store, asked, UpdatedMessage, apply)

    def _changed(self, asked: UpdateMessage, before: SessionMessage) -> SessionMessage:
        """Return the changed message; a new content without raw text clears the raw text."""
        policy = self._store.settings(asked.project).secret_policy()
        if asked.content is None:
            return replace(before, raw=as_stored(asked.raw or "", policy))
        return replace(before, content=as_stored(asked.content, policy), raw=as_stored(asked.raw or "", policy))

    def _learnt(self, project: str, message: SessionMessage) -> Memory | None:
        """Return the full memory learnt from the message, or the held one; None if there is neither."""
        found = [one for one in self._store.get(project, _ids(message), 0, full=True) if one is not None]
        held = [one.memory for one in self._store.review.get(project, [message.held_id]) if one is not None]
        return next(iter((*found, *held)), None)

    def _prepared(
        self, asked: UpdateMessage, known: Memory, after: SessionMessage
    ) -> tuple[Prepared, tuple[Embedding, ...]]:
        """Prepare the message's memory and its vectors; a held one gets none."""
        settings, draft = self._store.settings(asked.project), as_draft(known)
        draft = replace(
            draft, payload=replace(draft.payload, content=after.content, raw=after.raw), writer=asked.writer
        )
        draft = without_unverified_pin(draft)
        (one,) = self._preparation.prepare(asked.project, [draft], settings, asked.deadline)
        (families,) = families_of([one.draft], settings.review_policy(), asked.deadline)
        if families:
            return to_hold(one, families), ()
        (vectors,) = self._preparation.embed([one], asked.deadline)
        return one, vectors

    def _require_project(self, asked: UpdateMessage | DeleteMessage) -> None:
        # A write would create the project.
        if self._store.project(asked.project) is None:
            raise SessionNotFound(asked.session_id)


class _Changed(Exception):
    """The message, or its memory, is another one than the change was made of."""


def there(work: SessionWork, session_id: str, message_id: str) -> SessionMessage:
    """A message as the write sees it. Raises: MessageNotFound."""
    message = work.message(session_id, message_id)
    if message is None or message.is_deleted:
        raise MessageNotFound(message_id)
    return message


def relearn(
    work: UnitOfWork, message: SessionMessage, prepared: Prepared | None, vectors: Sequence[Embedding], now: float
) -> SessionMessage:
    """Replace the memory learnt from a message; None removes it. Returns the message with the id of its memory.

    If the memory is held for review, that is the id it is held under.
    """
    if prepared is None:
        _unlearn(work, message)
        return replace(message, memory_id="", held_id="")
    known = memory_of(work, message)
    memory = make_memory(prepared, known, chunk_count=len(vectors), now=now)
    # A day that the text names goes before the time at which it was said. A message's send time is final only within
    # the write.
    if memory.event_time is None and event_time_read(memory) is None:
        said = prepared.draft.create_time
        memory = replace(memory, event_time=message.send_time if said is None else said)
    if prepared.held_for:
        _unlearn(work, message, but_for=memory.id)
        hold(work, memory, prepared.held_for, now)
        return replace(message, memory_id="", held_id=memory.id)
    if message.held_id:
        work.review.delete(message.held_id)
    memory = memory if known is None else replace(memory, id=known.id)
    work.put(memory, prepared.key, prepared.words.analysed().terms, vectors)
    return replace(message, memory_id=memory.id, held_id="")


def change(
    work: UnitOfWork,
    session: Session,
    before: Sequence[SessionMessage],
    after: Sequence[SessionMessage],
    used_ids: Sequence[str] | None = None,
) -> None:
    """Replace messages, in order of time, in the session and in the learning log.

    Updates the session's counts and title. `used_ids` are as for `restate`.
    """
    said = [(one, now.content) for one, now in zip(before, after, strict=True)]
    restate(work.learning, session.id, said, used_ids)
    deleted = sum(message.is_deleted for message in after)
    first, last = min(one.position for one in after), max(one.position for one in after)
    counted = replace(
        session,
        message_count=session.message_count - deleted,
        deleted_count=session.deleted_count + deleted,
        revision=session.revision + 1,
        changes=(*session.changes, (first, last))[-_MOST_CHANGES:],
    )
    # One write of the session: what only removes is done in a full store as well.
    work.sessions.put(_titled(work.sessions, counted, before, after), after)


def _titled(
    work: SessionWork, session: Session, before: Sequence[SessionMessage], after: Sequence[SessionMessage]
) -> Session:
    """The session with the title that its messages will give it, where the one that gave it is to be another one."""
    gave = next((one for one in before if _gave_title(session, one)), None)
    if gave is None:
        return session
    now = {one.position: one for one in after}
    for stored in work.behind(session.id, gave.position - 1):
        message = now.get(stored.position, stored)
        if message.role is PromptRole.USER and (title := title_of(message.content)):
            return replace(session, title=title, title_position=message.position)
    return replace(session, title="", title_position=0)


def _gave_title(session: Session, message: SessionMessage) -> bool:
    if session.title_position is not None:
        return message.position == session.title_position
    # From before this was noted, or imported.
    return message.role is PromptRole.USER and bool(session.title) and session.title == title_of(message.content)


def _following(work: SessionWork, session: Session, message: SessionMessage) -> list[SessionMessage]:
    """Return the messages after one. Raises: InvalidRequest."""
    found = list(islice(work.behind(session.id, message.position), MOST_FOLLOWING + 1))
    if len(found) > MOST_FOLLOWING:
        raise InvalidRequest(
            "delete_following", f"has more than {MOST_FOLLOWING} messages to delete; begin with a later one"
        )
    return found


def _unlearnt(work: UnitOfWork, message: SessionMessage) -> SessionMessage:
    _unlearn(work, message)
    return replace(message, content="", raw="", memory_id="", held_id="")


def _unlearn(work: UnitOfWork, message: SessionMessage, but_for: str = "") -> None:
    """Remove the memory of a message, and the held one unless its id is `but_for`."""
    for learnt in _ids(message):
        work.delete(learnt)
    if message.held_id != but_for:
        work.review.delete(message.held_id)


def memory_of(work: UnitOfWork, message: SessionMessage) -> Memory | None:
    """Return the memory learnt from a message, if it exists."""
    return next(filter(None, map(work.get, _ids(message))), None)


def _learnt_as(work: UnitOfWork, message: SessionMessage) -> Memory | None:
    held = work.review.get(message.held_id) if message.held_id else None
    return memory_of(work, message) or (None if held is None else held.memory)


def _ids(message: SessionMessage) -> list[str]:
    return [one for one in (message.memory_id, message.held_id) if one]


def _is_same(now: Memory | None, before: Memory | None) -> bool:
    return (None if now is None else now.fingerprint) == (None if before is None else before.fingerprint)
