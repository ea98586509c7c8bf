"""Learn a finished turn: both sides become memories and messages, in one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from hummock.core.embedding import Embedding
from hummock.core.memory import Draft, LearnStatus, MemoryIndex, MemoryKind, Origin, Payload
from hummock.core.session import (
    LearnedSide,
    LearnedTurn,
    LearnTurnCommand,
    ObservedTurn,
    PromptRole,
    SessionMessage,
    TurnSide,
)
from hummock.memories.learn import Preparation, Prepared, make_memory
from hummock.memories.quoted import Quoted
from hummock.memories.sessions import place
from hummock.ports.models import Clock
from hummock.ports.store import Store, UnitOfWork, WriteRequest, Written

Follower = Callable[[ObservedTurn], None]
"""Is told of a stored turn on the caller's thread, so that it returns at once and raises nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReply:
    """What is kept of a turn for repeats of its request_id."""

    user: LearnedSide
    assistant: LearnedSide


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """One side, ready to be written; `field` is where its message's id stands in the request.

    `prepared` is None of an answer that only quotes memories.
    """

    message: SessionMessage
    field: str
    prepared: Prepared | None
    vectors: tuple[Embedding, ...]


class LearnTurn:
    """Stores turns. Safe to call from several threads."""

    def __init__(
        self,
        store: Store,
        preparation: Preparation,
        clock: Clock,
        make_id: Callable[[], str],
        followers: Sequence[Follower],
    ) -> None:
        """The followers are told of each turn once it is durable, in this order."""
        self._store = store
        self._preparation = preparation
        self._clock = clock
        self._make_id = make_id
        self._followers = tuple(followers)
        self._is_quoted = Quoted(store)

    def __call__(self, command: LearnTurnCommand) -> LearnedTurn:
        """Store both sides or none; when this returns they are durable, recallable and in the session.

        Raises: SessionNotFound, MessageIdTaken, RequestIdReused, StorageFull.
        """
        # A repeat is answered as the first time, though the session is gone.
        earlier = self._store.earlier(command.project, command.request_id, command.fingerprint, TurnReply)
        written = self._written(command) if earlier is None else earlier
        self._tell(command, written.seq)
        return LearnedTurn(seq=written.seq, user=written.reply.user, assistant=written.reply.assistant)

    def _written(self, command: LearnTurnCommand) -> Written[TurnReply]:
        # Before anything is embedded, and before a write that would create the project. Whether the session is still
        # there the write itself says.
        self._store.sessions.get(command.project, command.session_id)
        now = self._clock.now()
        sides = self._sides(command, now)

        def apply(work: UnitOfWork) -> TurnReply:
            user, assistant = (_store_side(work, command.session_id, side, now) for side in sides)
            return TurnReply(user=user, assistant=assistant)

        request = WriteRequest(
            request_id=command.request_id, fingerprint=command.fingerprint, reply_type=TurnReply, apply=apply
        )
        return self._store.write(command.project, request).result()

    def _sides(self, command: LearnTurnCommand, now: float) -> list[_Side]:
        """Both sides with their vectors, the user's first.

        An answer that only quotes memories would come back from now on beside what it quotes (1.1-14).
        """
        is_quoted = self._is_quoted(
            command.project, command.session_id, command.assistant.text, command.used_memory_ids
        )
        given = (
            (command.user, PromptRole.USER, Origin.USER_INPUT, "user"),
            (command.assistant, PromptRole.ASSISTANT, Origin.AI_OUTPUT, "assistant"),
        )
        drafts = [_draft(command.session_id, side, origin, name) for side, _, origin, name in given]
        learnt = self._preparation.prepare(command.project, drafts[:1] if is_quoted else drafts)
        contents = [*zip(learnt, self._preparation.embed(learnt), strict=True), (None, ())]
        return [
            _Side(
                message=SessionMessage(
                    id=side.message_id or self._make_id(), role=role, content=side.text, raw=side.raw, send_time=now
                ),
                field=f"{name}.message_id",
                prepared=prepared,
                vectors=vectors,
            )
            for (side, role, _, name), (prepared, vectors) in zip(given, contents, strict=False)
        ]

    def _tell(self, command: LearnTurnCommand, seq: int) -> None:
        observed = ObservedTurn(
            project=command.project,
            session_id=command.session_id,
            user_text=command.user.text,
            assistant_text=command.assistant.text,
            used_memory_ids=command.used_memory_ids,
            seq=seq,
        )
        for follower in self._followers:
            follower(observed)


def _draft(session_id: str, side: TurnSide, origin: Origin, speaker: str) -> Draft:
    return Draft(
        id="",
        kind=MemoryKind.NOTE,
        origin=origin,
        index=MemoryIndex(),
        payload=Payload(content=side.text, raw=side.raw),
        session_id=session_id,
        speaker=side.speaker or speaker,
        emotion_label=side.emotion_label,
    )


def _store_side(work: UnitOfWork, session_id: str, side: _Side, now: float) -> LearnedSide:
    message, prepared = place(work.sessions, session_id, side.message, side.field), side.prepared
    if message.memory_id:
        status = LearnStatus.UNCHANGED
    elif prepared is None:
        status = LearnStatus.QUOTED
    else:
        status = LearnStatus.CREATED
        message = replace(message, memory_id=prepared.memory_id)
        memory = make_memory(prepared, None, chunk_count=len(side.vectors), now=now)
        # It was said when the message was sent, which only the write knows.
        memory = replace(memory, event_time=message.send_time)
        work.put(memory, prepared.key, prepared.words.analysed().terms, side.vectors)
        work.sessions.learnt(session_id, message)
    return LearnedSide(message_id=message.id, position=message.position, memory_id=message.memory_id, status=status)
