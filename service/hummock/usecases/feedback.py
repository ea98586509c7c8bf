"""Feedback: what was of use is written down, for people and for those who learn from it."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.errors import ProjectNotFound
from hummock.core.feedback import FeedbackCommand, FeedbackNoted
from hummock.core.learning_events import FeedbackGiven
from hummock.learn import record
from hummock.ports import Store, UnitOfWork, WriteRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackReply:
    """What is kept of feedback for repeats of its request_id."""

    recorded: int
    unknown_ids: tuple[str, ...]


class Feedback:
    """Takes feedback. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, command: FeedbackCommand) -> FeedbackNoted:
        """Log the verdicts on memories that the project has; without any of them and without a note, nothing.

        Raises: ProjectNotFound, RequestIdReused, StorageFull.
        """
        if self._store.project(command.project) is None:
            raise ProjectNotFound(command.project)

        def apply(work: UnitOfWork) -> FeedbackReply:
            known = tuple(verdict for verdict in command.verdicts if work.get(verdict.memory_id) is not None)
            if known or command.note:
                event = FeedbackGiven(
                    query_text=command.query_text, verdicts=known, note=command.note, session_id=command.session_id
                )
                record(work.learning, event)
            kept = {verdict.memory_id for verdict in known}
            unknown = tuple(one.memory_id for one in command.verdicts if one.memory_id not in kept)
            return FeedbackReply(recorded=len(known), unknown_ids=unknown)

        written = self._store.write(
            command.project,
            WriteRequest(
                request_id=command.request_id,
                fingerprint=command.fingerprint,
                reply_type=FeedbackReply,
                apply=apply,
            ),
        ).result()
        return FeedbackNoted(seq=written.seq, recorded=written.reply.recorded, unknown_ids=written.reply.unknown_ids)
