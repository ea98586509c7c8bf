"""Adds turns and feedback to the learning log: durable when answered, then passed to learners."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from hummock.core.errors import ProjectNotFound
from hummock.core.learning import FeedbackGiven, Injected, TurnObserved, next_turn
from hummock.core.learning_requests import FeedbackCommand, FeedbackNoted, ObserveCommand
from hummock.core.session import ObservedTurn
from hummock.learning.log import record
from hummock.ports.learning import LearningReader
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, WriteRequest, Written
from hummock.text.credentials import as_stored
from hummock.text.normalise import short_hash, text_hash

_NAMESPACE: Final = uuid.UUID("5f1e0c1b-6a55-4d1b-9b0e-6f8a52c3c7d1")
_EVENTS_LOOKED_AT = 64
"""Newest events that are searched for the last turn of a scope."""

OnTurn = Callable[[str, str], None]
"""Callback with a project and the user's text, once per turn; must return at once and not raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReply:
    """Stored reply of an observation, for repeats of its request_id: only that it happened."""


class Observe:
    """Writes turns down. Safe to call from several threads."""

    def __init__(self, store: Store, seen: OnTurn) -> None:
        self._store = store
        self._seen = seen

    def __call__(self, command: ObserveCommand) -> int:
        """Write a turn down; when this returns it is durable. Gives the project's seq.

        Raises: RequestIdReused, StorageFull.
        """
        written = self._write(command).result()
        # A repeat may come late, and its words are not the newest any more.
        if not written.is_repeat:
            self._seen(command.project, command.user_text)
        return written.seq

    def follow(self, turn: ObservedTurn) -> None:
        """Takes note of a turn that was stored; does not wait for the disk.

        In a project that has never learnt, turns are nothing to write down.
        """
        number = self._store.read_learning(turn.project, lambda learning: _turn_of(learning, turn.session_id))
        if number is None:
            return
        command = ObserveCommand(
            project=turn.project,
            scope=turn.session_id,
            turn=number,
            user_text=turn.user_text,
            assistant_text=turn.assistant_text,
            used_ids=turn.used_memory_ids,
            # A repeated Learn(turn) is reported again, but one write is one turn.
            request_id=str(uuid.uuid5(_NAMESPACE, str(turn.seq))),
            fingerprint=b"",
        )
        written = self._write(command)
        written.add_done_callback(lambda future: self._tell(future, turn))

    def _tell(self, written: Future[Written[ObservedReply]], turn: ObservedTurn) -> None:
        if written.exception() is None and not written.result().is_repeat:
            self._seen(turn.project, turn.user_text)

    def _write(self, command: ObserveCommand) -> Future[Written[ObservedReply]]:
        def apply(work: UnitOfWork) -> ObservedReply:
            is_on, policy = work.learning.state().enabled, work.settings().secret_policy()
            observed = TurnObserved(
                scope=command.scope,
                turn=command.turn,
                # If off, turns are only counted, so the text is not kept.
                user_text=as_stored(command.user_text, policy) if is_on else "",
                assistant_hash=text_hash(command.assistant_text, is_code=False) if command.assistant_text else b"",
                used_ids=tuple(one for one in dict.fromkeys(command.used_ids) if work.get(one) is not None),
            )
            record(work.learning, observed)
            return ObservedReply()

        request = WriteRequest(
            request_id=command.request_id, fingerprint=command.fingerprint, reply_type=ObservedReply, apply=apply
        )
        return self._store.write(command.project, request)


def _turn_of(learning: LearningReader, scope: str) -> int | None:
    """Return the number of the finished turn: the last rendered one, else the one after the last observed.

    None if the project has never learnt.
    """
    state = learning.state()
    if not state.events:
        return None
    first = max(0, state.events - _EVENTS_LOOKED_AT)
    for logged in reversed(learning.events(first, _EVENTS_LOOKED_AT)):
        event = logged.event
        if isinstance(event, Injected) and event.scope == scope:
            return event.turn
        if isinstance(event, TurnObserved) and event.scope == scope:
            return next_turn(event.turn)
    return next_turn(learning.turn(scope))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackReply:
    """Stored reply of feedback, for repeats of its request_id."""

    recorded: int
    unknown_ids: tuple[str, ...]


class Feedback:
    """Records feedback. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, command: FeedbackCommand) -> FeedbackNoted:
        """Log the verdicts on memories that the project has; without any of them and without a note, nothing.

        Raises: ProjectNotFound, RequestIdReused, StorageFull.
        """
        if self._store.project(command.project) is None:
            raise ProjectNotFound(command.project)

        def apply(work: UnitOfWork) -> FeedbackReply:
            known = tuple(
                replace(verdict, text=short_hash(memory.content_hash))
                for verdict in command.verdicts
                if (memory := work.get(verdict.memory_id)) is not None
            )
            if known or command.note:
                policy = work.settings().secret_policy()
                event = FeedbackGiven(
                    query_text=as_stored(command.query_text, policy),
                    verdicts=known,
                    note=as_stored(command.note, policy),
                    session_id=command.session_id,
                    voice=voice_of(command.session_id, command.query_text),
                )
                record(work.learning, event)
            kept = {verdict.memory_id for verdict in known}
            unknown = tuple(one.memory_id for one in command.verdicts if one.memory_id not in kept)
            return FeedbackReply(recorded=len(known), unknown_ids=unknown)

        request = WriteRequest(
            request_id=command.request_id,
            fingerprint=command.fingerprint,
            reply_type=FeedbackReply,
            apply=apply,
            creates=False,
        )
        written = self._store.write(command.project, request).result()
        return FeedbackNoted(seq=written.seq, recorded=written.reply.recorded, unknown_ids=written.reply.unknown_ids)


def voice_of(session_id: str, query_text: str) -> int:
    """Return the 64-bit id of a voice, not 0: of the session, else shared by all equal queries."""
    said = b"s" + session_id.encode() if session_id else b"q" + text_hash(query_text, is_code=False)
    return short_hash(blake2b(said, digest_size=8).digest()) or 1
