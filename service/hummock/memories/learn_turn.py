"""Learn a finished turn: both sides become memories and messages, in one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from hummock.core.deadline import Deadline
from hummock.core.embedding import Embedding
from hummock.core.errors import MessageIdTaken
from hummock.core.memory import Draft, LearnStatus, MemoryIndex, MemoryKind, Origin, Payload, SecretsFound
from hummock.core.session import (
    LearnedSide,
    LearnedTurn,
    LearnTurnCommand,
    ObservedTurn,
    PromptRole,
    SessionMessage,
    TurnSide,
)
from hummock.core.settings import ProjectSettings
from hummock.memories.learn import require_past
from hummock.memories.messages import change, memory_of, relearn, there
from hummock.memories.preparation import Preparation, Prepared, screened_texts, to_hold
from hummock.memories.quoted import Quoted
from hummock.memories.screening import families_of
from hummock.memories.sessions import place, present, written
from hummock.ports.models import Clock
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, Written
from hummock.text.credentials import as_stored
from hummock.text.small_talk import is_awaited, tells_nothing

Follower = Callable[[ObservedTurn], None]
"""Callback for a stored turn, on the caller's thread: must return at once and not raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReply:
    """Reply of a turn, kept for repeats of its request_id."""

    user: LearnedSide
    assistant: LearnedSide


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """One side of a turn, ready to be written; `field` is the request's field with its message id.

    `prepared` is None for what becomes no memory, as `unlearnt` says. `secrets` are those found in its text.
    """

    message: SessionMessage
    secrets: tuple[SecretsFound, ...]
    field: str
    prepared: Prepared | None
    vectors: tuple[Embedding, ...]
    unlearnt: LearnStatus | None


class LearnTurn:
    """Stores turns. Safe to call from several threads."""

    def __init__(
        self,
        store: Store,
        preparation: Preparation,
        clock: Clock,
        make_id: Callable[[], str],
        followers: Sequence[Follower],
        on_pending: Callable[[str], None],
    ) -> None:
        """The followers are called for each turn once it is durable, in this order.

        `on_pending` gets a project with memories that wait for vectors.
        """
        self._store = store
        self._preparation = preparation
        self._clock = clock
        self._make_id = make_id
        self._followers = tuple(followers)
        self._on_pending = on_pending
        self._is_quoted = Quoted(store)

    def __call__(self, command: LearnTurnCommand) -> LearnedTurn:
        """Store both sides or none; when this returns they are durable, recallable and in the session.

        Raises: InvalidRequest, SessionNotFound, MessageNotFound, MessageIdTaken, RequestIdReused, StorageFull.
        """
        # A repeat is answered as the first time, though the session is gone.
        earlier = self._store.earlier(command.project, command.request_id, command.fingerprint, TurnReply)
        done = self._written(command) if earlier is None else earlier
        if command.is_deferred:
            self._on_pending(command.project)
        if not command.replaces_answer:  # followers have seen a replaced answer's turn
            self._tell(command, done)
        return LearnedTurn(seq=done.seq, user=done.reply.user, assistant=done.reply.assistant)

    def _written(self, command: LearnTurnCommand) -> Written[TurnReply]:
        # Before anything is embedded, and before a write that would create the project. Whether the session is still
        # there the write itself says.
        self._store.sessions.get(command.project, command.session_id)
        now = self._clock.now()
        require_past("user.create_time", command.user.create_time, now)
        require_past("assistant.create_time", command.assistant.create_time, now)
        sides = self._sides(command, now)

        def apply(work: UnitOfWork) -> TurnReply:
            session = present(work.sessions, command.session_id)
            if command.replaces_answer:
                there(work.sessions, session.id, command.user.message_id)
            user = _store_side(work, session.id, sides[0], now)
            if command.replaces_answer:
                return TurnReply(user=user, assistant=_replace_answer(work, command, sides[1], now))
            return TurnReply(user=user, assistant=_store_side(work, session.id, sides[1], now))

        return written(self._store, command, TurnReply, apply, creates=True)

    def _sides(self, command: LearnTurnCommand, now: float) -> list[_Side]:
        """Prepare both sides with their vectors, the user's first.

        An answer that only quotes memories is not learnt: recalls would return it along with its sources (1.1-14).
        Neither is small talk, unless it answers a question.
        """
        is_quoted = self._is_quoted(
            command.project, command.session_id, command.assistant.text, command.used_memory_ids, command.deadline
        )
        given = (
            (command.user, PromptRole.USER, Origin.USER_INPUT, "user"),
            (command.assistant, PromptRole.ASSISTANT, Origin.AI_OUTPUT, "assistant"),
        )
        drafts = [_draft(command, side, origin, name) for side, _, origin, name in given]
        settings = self._store.settings(command.project)
        policy = settings.secret_policy()
        unlearnt = [
            self._small_talk(command, settings),
            LearnStatus.QUOTED if is_quoted else _answer_small_talk(command, settings),
        ]
        stored = [draft for draft, status in zip(drafts, unlearnt, strict=True) if status is None]
        learnt = self._preparation.prepare(command.project, stored, settings, command.deadline)
        read_as = families_of([one.draft for one in learnt], settings.review_policy(), command.deadline)
        ids = [side.message_id or self._make_id() for side, *_ in given]
        own_ids = [message_id for message_id, status in zip(ids, unlearnt, strict=True) if status is None]
        learnt = [
            to_hold(one, families, message_id) if families else one
            for one, families, message_id in zip(learnt, read_as, own_ids, strict=True)
        ]
        vectors = [()] * len(learnt) if command.is_deferred else self._vectors(learnt, command.deadline)
        made = zip(learnt, vectors, strict=True)
        contents: list[tuple[Prepared | None, tuple[Embedding, ...]]] = [
            (None, ()) if status else next(made) for status in unlearnt
        ]
        screened = [screened_texts((side.text, side.raw), policy) for side, *_ in given]
        return [
            _Side(
                message=SessionMessage(id=message_id, role=role, content=content, raw=raw, send_time=now),
                secrets=secrets,
                field=f"{name}.message_id",
                prepared=prepared,
                vectors=vectors,
                unlearnt=status,
            )
            for message_id, (_, role, _, name), ((content, raw), secrets), (prepared, vectors), status in zip(
                ids, given, screened, contents, unlearnt, strict=True
            )
        ]

    def _small_talk(self, command: LearnTurnCommand, settings: ProjectSettings) -> LearnStatus | None:
        """SMALL_TALK if the user's side is, and the message before it asked for nothing; else None."""
        found = _small_talk(command.user.text, settings)
        if found is None:
            return None
        sessions, project, session_id = self._store.sessions, command.project, command.session_id
        own = sessions.message(project, session_id, command.user.message_id) if command.user.message_id else None
        before = sessions.before(project, session_id, None if own is None else own.position, 1, 0).messages
        is_answer = bool(before) and before[-1].role is PromptRole.ASSISTANT and is_awaited(before[-1].content)
        return None if is_answer else found

    def _vectors(self, learnt: Sequence[Prepared], deadline: Deadline) -> list[tuple[Embedding, ...]]:
        """Embed each memory, except held ones, which get no vectors."""
        made = iter(self._preparation.embed([one for one in learnt if not one.held_for], deadline))
        return [() if one.held_for else next(made) for one in learnt]

    def _tell(self, command: LearnTurnCommand, done: Written[TurnReply]) -> None:
        policy = self._store.settings(command.project).secret_policy()
        # Held text must not be learnt from.
        answer = "" if done.reply.assistant.status is LearnStatus.HELD else command.assistant.text
        observed = ObservedTurn(
            project=command.project,
            session_id=command.session_id,
            user_text=as_stored(command.user.text, policy),
            assistant_text=as_stored(answer, policy),
            used_memory_ids=command.used_memory_ids,
            seq=done.seq,
        )
        for follower in self._followers:
            follower(observed)


def _small_talk(said: str, settings: ProjectSettings) -> LearnStatus | None:
    return LearnStatus.SMALL_TALK if tells_nothing(said) and not settings.keeps_small_talk() else None


def _answer_small_talk(command: LearnTurnCommand, settings: ProjectSettings) -> LearnStatus | None:
    """SMALL_TALK if the model's side is, and the user's asked for nothing: a mere "no" may be an answer."""
    return None if is_awaited(command.user.text) else _small_talk(command.assistant.text, settings)


def _draft(command: LearnTurnCommand, side: TurnSide, origin: Origin, speaker: str) -> Draft:
    return Draft(
        id="",
        kind=MemoryKind.NOTE,
        origin=origin,
        index=MemoryIndex(),
        payload=Payload(content=side.text, raw=side.raw),
        session_id=command.session_id,
        speaker=side.speaker or speaker,
        emotion_label=side.emotion_label,
        writer=command.writer,
        create_time=side.create_time,
        files=command.files,
        time_zone=command.time_zone,
    )


def _store_side(work: UnitOfWork, session_id: str, side: _Side, now: float) -> LearnedSide:
    message = place(work.sessions, session_id, side.message, side.field)
    known = None if message.memory_id else memory_of(work, message)
    if message.memory_id or known is not None:
        return _learned_side(message, side, LearnStatus.UNCHANGED, "" if known is None else known.id)
    learnt = relearn(work, message, side.prepared, side.vectors, now)
    work.sessions.learnt(session_id, learnt)
    return _learned_side(learnt, side)


def _replace_answer(work: UnitOfWork, command: LearnTurnCommand, side: _Side, now: float) -> LearnedSide:
    """Replace the stored answer. Raises: MessageNotFound, MessageIdTaken."""
    session = present(work.sessions, command.session_id)
    before = there(work.sessions, session.id, side.message.id)
    if before.role is not PromptRole.ASSISTANT:
        raise MessageIdTaken(side.field, before.id)
    said = replace(before, content=side.message.content, raw=side.message.raw)
    known = memory_of(work, before)
    if said == before and side.prepared and known is not None and known.fingerprint == side.prepared.fingerprint:
        return _learned_side(before, side, LearnStatus.UNCHANGED, known.id)
    learnt = relearn(work, said, side.prepared, side.vectors, now)
    used = tuple(one for one in dict.fromkeys(command.used_memory_ids) if work.get(one) is not None)
    change(work, session, [before], [learnt], used)
    return _learned_side(learnt, side)


def _learned_side(
    message: SessionMessage, side: _Side, status: LearnStatus | None = None, memory_id: str = ""
) -> LearnedSide:
    """Report the outcome of a side. A held side has no memory yet; its `memory_id` is the id it is held under."""
    held_for = side.prepared.held_for if side.prepared is not None and status is None else ()
    if status is None:
        status = side.unlearnt or LearnStatus.CREATED
    return LearnedSide(
        message_id=message.id,
        position=message.position,
        memory_id=memory_id or message.memory_id or message.held_id,
        status=LearnStatus.HELD if held_for else status,
        secrets=side.secrets,
        held_for=held_for,
    )
