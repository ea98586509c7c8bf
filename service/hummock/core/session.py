"""Sessions, their messages and their turns, as values. Times are Unix seconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import astuple

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.memory import LearnStatus, SecretsFound, WriteCommand


class PromptRole(IntEnum):
    """Role of a speaker."""

    SYSTEM = 1
    USER = 2
    ASSISTANT = 3


class PromptTarget(IntEnum):
    """Prompt that a section goes into."""

    SYSTEM = 1
    USER = 2


class PromptTemplate(IntEnum):
    """A prompt that Hummock brings with it."""

    CODE_ANALYST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a chat; its id is empty if it has none, a send time of None means that of the previous one."""

    role: PromptRole
    content: str
    id: str = ""
    send_time: float | None = None


HISTORY_MESSAGES = 20
HISTORY_CHARACTERS = 16_000


class Session(Struct, frozen=True, kw_only=True):
    """A conversation with stored messages.

    Attributes:
        title: Empty until the first user message, unless it was given.
        update_time: Send time of the last message; the create time before the first.
        message_count: Number of messages without the deleted ones, whose positions stay taken.
        title_position: Position of the message that gave the title; 0 if none did, None if unknown.
        revision: Number of changes and deletions of messages.
        changes: Ranges of positions, first to last, of the newest of these changes, the latest at the end.
        number: Assigned by the store; a later session with the same id gets another one. 0 before it is stored. It is
            the last field, since it is ignored when sessions are compared.
    """

    id: str
    title: str
    create_time: float
    update_time: float
    is_archived: bool = False
    message_count: int = 0
    deleted_count: int = 0
    title_position: int | None = None
    revision: int = 0
    changes: tuple[tuple[int, int], ...] = ()
    number: int = 0

    @property
    def last_position(self) -> int:
        """The position of the message that was appended last, deleted or not."""
        return self.message_count + self.deleted_count

    def changed_since(self, revision: int, position: int) -> list[tuple[int, int]]:
        """Return the ranges of positions up to this one that changed after a revision, first to last, in order.

        All positions if the revision is too old.
        """
        missed = self.revision - revision
        if missed <= 0:
            return []
        changes = self.changes[-missed:] if missed <= len(self.changes) else ((1, self.last_position),)
        found: list[tuple[int, int]] = []
        for first, last in sorted((first, min(last, position)) for first, last in changes if first <= position):
            if found and first <= found[-1][1] + 1:
                found[-1] = found[-1][0], max(found[-1][1], last)
            else:
                found.append((first, last))
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])


class SessionMessage(Struct, frozen=True, kw_only=True):
    """A message of a session.

    Attributes:
        id: Unique in its session, among the deleted ones too.
        content: Cleaned text; empty if the message was deleted.
        raw: Text before cleaning; empty if unknown.
        send_time: When it was appended; never earlier than the previous message.
        position: From 1 without gaps; 0 before it is appended.
        memory_id: The memory learnt from it; empty for none.
        held_id: Id under which it is, or was, held for review instead.
    """

    id: str
    role: PromptRole
    content: str
    raw: str
    send_time: float
    position: int = 0
    memory_id: str = ""
    held_id: str = ""

    @property
    def is_deleted(self) -> bool:
        """Whether it was deleted: it keeps its id and its position, and says nothing."""
        return not self.content


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Some sessions, the most recently moved first; `next_behind` continues after them, None on the last page."""

    sessions: tuple[Session, ...]
    next_behind: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Some messages in the order of time, and whether there are others before them."""

    messages: tuple[SessionMessage, ...]
    has_before: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """The active session, and whether it was just created."""

    session: Session
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession(WriteCommand):
    """A session to create; an empty id leaves it to the service, an empty title to the first user message."""

    session_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSession(WriteCommand):
    """New values of a session's fields; None keeps the old one."""

    session_id: str
    title: str | None
    is_archived: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSession(WriteCommand):
    """A session to remove."""

    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendMessage(WriteCommand):
    """A message to append; an empty `message_id` leaves it to the service."""

    session_id: str
    message_id: str
    role: PromptRole
    content: str
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMessage(WriteCommand):
    """New texts of a message, and whether to delete all later ones; None keeps the old text.

    `deadline` says whether anybody still waits for it, `writer` is the name of the token that it came with.
    """

    session_id: str
    message_id: str
    content: str | None
    raw: str | None
    deletes_following: bool
    deadline: Deadline = NO_DEADLINE
    writer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteMessage(WriteCommand):
    """A message to delete, and whether to delete all later ones too."""

    session_id: str
    message_id: str
    deletes_following: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedMessage:
    """Position of a message that was changed.

    `memory_id` is that of the memory that holds it, empty where none does; where `held_for` is not empty, the one that
    it is to have.
    """

    position: int
    memory_id: str
    held_for: tuple[str, ...]
    deleted_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedMessages:
    """Number of deleted messages."""

    deleted_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSession:
    """A session as a write left it, and the project's seq after that."""

    session: Session
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedSession:
    """Result of a removal: how many messages the session had, and the project's seq after it."""

    message_count: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedMessage:
    """Position of a message, and the project's seq after the write."""

    message_id: str
    position: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """The newest messages of a session, limited in number and total characters.

    The newest one is always included. None means the project's setting, or else `HISTORY_MESSAGES` and
    `HISTORY_CHARACTERS`.
    """

    session_id: str
    max_messages: int | None = None
    max_characters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSide:
    """One side of a turn; an empty `message_id` leaves it to the service.

    `create_time` is when it was said, in Unix seconds; None means now.
    """

    text: str
    message_id: str
    raw: str
    emotion_label: str
    speaker: str
    create_time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnTurnCommand(WriteCommand):
    """A finished turn to store.

    `files` are those that the model changed, as in `Memory`; `time_zone` is that of the memories of both sides, as in
    `Draft`. `replaces_answer` says that it takes the place of the one that is there under its message's id,
    `is_deferred` that both sides get their vectors later. `deadline` says whether anybody still waits for it, `writer`
    is the name of the token that it came with.
    """

    session_id: str
    user: TurnSide
    assistant: TurnSide
    used_memory_ids: tuple[str, ...]
    replaces_answer: bool = False
    is_deferred: bool = False
    deadline: Deadline = NO_DEADLINE
    writer: str = ""
    files: tuple[str, ...] = ()
    time_zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSide:
    """Outcome of storing one side of a turn.

    `status` is CREATED, UNCHANGED if its memory existed before, QUOTED if it only repeats memories, or SMALL_TALK;
    `memory_id` is empty for the last two. HELD means that it waits for review because of `held_for`; `memory_id` is
    then the id that it is held under. `secrets` are those found in the text as sent.
    """

    message_id: str
    position: int
    memory_id: str
    status: LearnStatus
    secrets: tuple[SecretsFound, ...] = ()
    held_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTurn:
    """Result of a turn: the project's seq after it, and both sides."""

    seq: int
    user: LearnedSide
    assistant: LearnedSide


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTurn:
    """A stored turn, for learners; the used memories are those that the caller named, and may not exist.

    `seq` is the project's after the turn. A repeated request is reported again, with its first seq.
    """

    project: str
    session_id: str
    user_text: str
    assistant_text: str
    used_memory_ids: tuple[str, ...]
    seq: int
