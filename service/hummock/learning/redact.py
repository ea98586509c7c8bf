"""Redacts forgotten memories and scopes from events of the learning log, without changing other effects.

A forgotten id becomes empty in all events, including the one that forgets it, so a replay leaves nothing under the
empty id. A scope is renamed to one that no caller can use, and is forgotten by the same event. Counts of turns,
verdicts and events do not change.
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
"""Shortest user text, in characters, that counts as a quote of a memory."""


def whole(log: LearningReader | LearningUnit) -> Iterator[LoggedEvent]:
    """All events, oldest first. Raises: EventDamaged."""
    count = log.state().events
    for after in range(0, count, _EVENTS_AT_ONCE):
        last = min(after + _EVENTS_AT_ONCE, count)
        yield from without_gaps(log.events(after, last - after), after, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Ids of forgotten memories, and the new names of forgotten sessions, by id.

    `texts` are those of the memories and of their search, normalised by `prose`, none empty.
    """

    memory_ids: frozenset[str]
    scopes: Mapping[str, str]
    texts: tuple[str, ...]

    def changed(self, log: LearningReader | LearningUnit) -> Iterator[tuple[int, LearningEvent]]:
        """Yield the changed events with their numbers. Raises: EventDamaged: it may quote a forgotten memory."""
        for logged in whole(log):
            event = self.event(logged.event)
            if event != logged.event:
                yield logged.number, event

    def event(self, event: LearningEvent) -> LearningEvent:
        """Redact one event."""
        match event:
            case TurnObserved():
                is_said = event.scope in self.scopes or self._quotes(event.user_text)
                return replace(
                    event,
                    scope=self.scopes.get(event.scope, event.scope),
                    user_text="" if is_said else event.user_text,
                    assistant_hash=b"" if is_said else event.assistant_hash,
                    used_ids=self._ids(event.used_ids),
                )
            case Injected():
                return replace(
                    event,
                    scope=self.scopes.get(event.scope, event.scope),
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

    def _ids(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple("" if memory_id in self.memory_ids else memory_id for memory_id in ids)

    def _quotes(self, said: str) -> bool:
        text = prose(said)
        return any(one in text or (len(text) >= _FEWEST_CHARACTERS and text in one) for one in self.texts)
