"""Events of the learning log on their way out of a service, and into one: all of each, to the bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from msgspec.structs import replace

from hummock.core.errors import InvalidRequest
from hummock.core.learning import (
    MAX_KEYWORD_CHARACTERS,
    MAX_KEYWORDS,
    FeedbackGiven,
    Forgotten,
    Injected,
    KeywordsLearned,
    KeywordsSet,
    KeywordUpdate,
    Learner,
    LearningEvent,
    LearningSettings,
    LoggedEvent,
    SettingsChanged,
    Switched,
    TurnObserved,
    Verdict,
)
from hummock.core.memory import MAX_ID_BYTES
from hummock.core.transfer import GivenEvent
from hummock.rpc import values
from hummock.rpc.conversion import message_of, value_of
from hummock.rpc.learning_messages import JUDGED, logged_event, settings_changes
from hummock_client.v1 import learning_service_pb2 as pb
from hummock_client.v1 import transfer_pb2


def event_record(given: GivenEvent) -> transfer_pb2.TransferRecord:
    """Convert an event, with the fields that replies omit."""
    event = logged_event(given.logged, is_whole=True)
    return transfer_pb2.TransferRecord(event=message_of(transfer_pb2.TransferEvent, given, event=event))


def given_event(sent: transfer_pb2.TransferEvent) -> GivenEvent:
    """Parse an imported event. A forgotten memory in it has no id. Raises: InvalidRequest."""
    event, time = sent.event, values.time("event.event.event_time", sent.event, "event_time")
    if not event.number or time is None:
        raise InvalidRequest("event.event", "has no number, or no event_time; both are required")
    return GivenEvent(
        logged=LoggedEvent(number=event.number, time=time, event=_event(event)),
        previous_time=values.time("event.previous_time", sent, "previous_time"),
    )


def _event(sent: pb.LearningEvent) -> LearningEvent:
    match sent.WhichOneof("event"):
        case "turn_observed":
            turn = sent.turn_observed
            return value_of(TurnObserved, turn, scope=_name(turn.scope), used_ids=_names(turn.used_ids))
        case "keywords_learned":
            return _keywords_learned(sent.keywords_learned)
        case "injected":
            injected = sent.injected
            names = {
                name: _names(getattr(injected, name))
                for name in ("referenced_ids", "injected_ids", "dropped_ids", "counted_ids")
            }
            return value_of(Injected, injected, scope=_name(injected.scope), **names)
        case "keywords_set":
            return KeywordsSet(memory_id=_name(sent.keywords_set.memory_id), keywords=_words(sent.keywords_set))
        case "switched":
            return Switched(enabled=sent.switched)
        case "settings_changed":
            said = asdict(settings_changes(sent.settings_changed))
            numbers = {name: value for name, value in said.items() if value is not None}
            return SettingsChanged(settings=LearningSettings(**numbers))
        case "forgotten":
            return Forgotten(memory_ids=_names(sent.forgotten.memory_ids), scopes=_names(sent.forgotten.scopes))
        case "feedback_given":
            return _feedback(sent.feedback_given)
    raise InvalidRequest("event.event", "is of a kind that is not known here")


def _keywords_learned(sent: pb.KeywordsLearned) -> KeywordsLearned:
    if sent.learner not in [int(one) for one in Learner]:
        raise InvalidRequest("event.event.keywords_learned.learner", "is not known here")
    found = {_name(one.memory_id): KeywordUpdate(memory_id=one.memory_id, keywords=_words(one)) for one in sent.updates}
    for one in sent.hints:
        known = found.get(one.memory_id) or KeywordUpdate(memory_id=_name(one.memory_id), keywords=())
        found[one.memory_id] = replace(known, hints=_words(one))
    return value_of(
        KeywordsLearned,
        sent,
        learner=Learner(sent.learner),
        updates=tuple(found.values()),
        analyzed_ids=_names(sent.analyzed_ids),
    )


def _feedback(sent: pb.FeedbackGiven) -> FeedbackGiven:
    judged = [(_name(memory_id), judgement) for name, judgement in JUDGED.items() for memory_id in getattr(sent, name)]
    if len(judged) != len(sent.judged_texts):
        raise InvalidRequest("event.event.feedback_given.judged_texts", "are not as many as the memories")
    verdicts = tuple(
        Verdict(memory_id=memory_id, judgement=judgement, text=text)
        for (memory_id, judgement), text in zip(judged, sent.judged_texts, strict=True)
    )
    return value_of(FeedbackGiven, sent, verdicts=verdicts, session_id=_name(sent.session_id))


def _names(sent: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_name, sent))


def _name(sent: str) -> str:
    """Check an id or a scope; a forgotten scope has an id that no caller may use."""
    if len(sent.encode()) > MAX_ID_BYTES:
        raise InvalidRequest("event.event", f"has an id of {len(sent.encode())} bytes; the limit is {MAX_ID_BYTES}")
    return sent


def _words(sent: pb.EntryKeywords) -> tuple[str, ...]:
    words: Sequence[str] = sent.keywords
    if len(words) > MAX_KEYWORDS or any(len(word) > MAX_KEYWORD_CHARACTERS for word in words):
        raise InvalidRequest(
            "event.event",
            f"has more than {MAX_KEYWORDS} keywords of one memory, or one above {MAX_KEYWORD_CHARACTERS} characters",
        )
    return tuple(words)
