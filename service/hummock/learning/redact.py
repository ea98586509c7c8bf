"""Events of the learning log without what is to be forgotten; what they make of everything else stays.

An id that is forgotten becomes the empty one, in all events, also in that which forgets it: replaying the log leaves
nothing under the empty id, as nothing was left under the other. A scope becomes one that no caller can name, and is
forgotten by the same event. Counts (of turns, of verdicts, of events) stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from hummock.core.learning import (
    FeedbackGiven,
    Forgotten,
    Injected,
    KeywordsLearned,
    KeywordsSet,
    LearningEvent,
    LoggedEvent,
    TurnObserved,
)
from hummock.learning.log import without_gaps
from hummock.ports.learning import LearningReader, LearningUnit
from hummock.text.normalise import prose

_EVENTS_AT_ONCE = 1024
_FEWEST_CHARACTERS = 8
"""Shortest text that was said, in characters, that counts as a part of a memory's text."""


def whole(log: LearningReader | LearningUnit) -> Iterator[LoggedEvent]:
    """All events, oldest first. Raises: EventDamaged."""
    count = log.state().events
    for after in range(0, count, _EVENTS_AT_ONCE):
        last = min(after + _EVENTS_AT_ONCE, count)
        yield from without_gaps(log.events(after, last - after), after, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What is to be taken out.

    Attributes:
        memory_ids: Of memories that are forgotten.
        scopes: Of sessions that are forgotten, with what each is called instead.
        texts: Of those memories, and what they were asked by; in the form of `prose`, none empty.
    """

    memory_ids: frozenset[str]
    scopes: Mapping[str, str]
    texts: tuple[str, ...]

    def changed(self, log: LearningReader | LearningUnit) -> Iterator[tuple[int, LearningEvent]]:
        """The events that become others, with their numbers. Raises: EventDamaged: it may quote what is forgotten."""
        for logged in whole(log):
            event = self.event(logged.event)
            if event != logged.event:
                yield logged.number, event

    def event(self, event: LearningEvent) -> LearningEvent:
        """An event without what is to be forgotten."""
        match event:
            case TurnObserved():
                is_said = event.scope in self.scopes or self._quotes(event.user_text)
                return replace(
                    event,
                    scope=self._scope(event.scope),
                    user_text="" if is_said else event.user_text,
                    assistant_hash=b"" if is_said else event.assistant_hash,
                    used_ids=self._ids(event.used_ids),
                )
            case Injected():
                return replace(
                    event,
                    scope=self._scope(event.scope),
                    referenced_ids=self._ids(event.referenced_ids),
                    injected_ids=self._ids(event.injected_ids),
                    dropped_ids=self._ids(event.dropped_ids),
                    counted_ids=self._ids(event.counted_ids),
                )
            case KeywordsLearned():
                kept = tuple(update for update in event.updates if update.memory_id not in self.memory_ids)
                return replace(event, updates=kept, analyzed_ids=self._ids(event.analyzed_ids))
            case KeywordsSet(memory_id=memory_id) if memory_id in self.memory_ids:
                return replace(event, memory_id="", keywords=())
            case Forgotten():
                return replace(event, memory_ids=self._ids(event.memory_ids))
            case FeedbackGiven():
                return self._feedback(event)
        return event

    def _feedback(self, event: FeedbackGiven) -> FeedbackGiven:
        verdicts = tuple(
            replace(verdict, memory_id="", text=0) if verdict.memory_id in self.memory_ids else verdict
            for verdict in event.verdicts
        )
        is_told = verdicts != event.verdicts or event.session_id in self.scopes
        is_told = is_told or self._quotes(event.query_text) or self._quotes(event.note)
        return replace(
            event,
            verdicts=verdicts,
            query_text="" if is_told else event.query_text,
            note="" if is_told else event.note,
            session_id="" if event.session_id in self.scopes else event.session_id,
        )

    def _scope(self, scope: str) -> str:
        return self.scopes.get(scope, scope)

    def _ids(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple("" if memory_id in self.memory_ids else memory_id for memory_id in ids)

    def _quotes(self, said: str) -> bool:
        text = prose(said)
        return any(one in text or (len(text) >= _FEWEST_CHARACTERS and text in one) for one in self.texts)
