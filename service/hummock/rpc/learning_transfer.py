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
    Judgement,
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
from hummock.rpc.learning_messages import logged_event, settings_changes
from hummock_client.v1 import learning_service_pb2 as pb
from hummock_client.v1 import transfer_pb2

_JUDGEMENTS = (Judgement.HELPFUL, Judgement.NOT_HELPFUL, Judgement.WRONG)


def event_record(given: GivenEvent) -> transfer_pb2.TransferRecord:
    """Convert an event, with the fields that replies omit."""
    record = transfer_pb2.TransferRecord()
    sent = record.event
    sent.event.CopyFrom(logged_event(given.logged))
    if given.previous_time is not None:
        values.set_timestamp(sent.previous_time, given.previous_time)
    match given.logged.event:
        case TurnObserved(assistant_hash=assistant_hash):
            sent.event.turn_observed.assistant_hash = assistant_hash
        case Injected(counted_ids=counted_ids):
            sent.event.injected.counted_ids.extend(counted_ids)
        case Forgotten(scopes=scopes):
            sent.event.forgotten.scopes.extend(scopes)
        case FeedbackGiven(voice=voice, verdicts=verdicts):
            sent.event.feedback_given.voice = voice
            sent.event.feedback_given.judged_texts.extend(
                verdict.text for judgement in _JUDGEMENTS for verdict in verdicts if verdict.judgement is judgement
            )
    return record


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
            return TurnObserved(
                scope=_name(turn.scope),
                turn=turn.turn,
                user_text=turn.user_text,
                assistant_hash=turn.assistant_hash,
                used_ids=_names(turn.used_ids),
            )
        case "keywords_learned":
            return _keywords_learned(sent.keywords_learned)
        case "injected":
            injected = sent.injected
            return Injected(
                scope=_name(injected.scope),
                turn=injected.turn,
                request_id=injected.request_id,
                referenced_ids=_names(injected.referenced_ids),
                injected_ids=_names(injected.injected_ids),
                dropped_ids=_names(injected.dropped_ids),
                counted_ids=_names(injected.counted_ids),
            )
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
    return KeywordsLearned(
        learner=Learner(sent.learner),
        turn=sent.turn,
        updates=tuple(found.values()),
        analyzed_ids=_names(sent.analyzed_ids),
        rule=sent.rule,
    )


def _feedback(sent: pb.FeedbackGiven) -> FeedbackGiven:
    said = zip(_JUDGEMENTS, (sent.useful_ids, sent.useless_ids, sent.wrong_ids), strict=True)
    judged = [(judgement, _name(memory_id)) for judgement, ids in said for memory_id in ids]
    if len(judged) != len(sent.judged_texts):
        raise InvalidRequest("event.event.feedback_given.judged_texts", "are not as many as the memories")
    return FeedbackGiven(
        query_text=sent.query_text,
        verdicts=tuple(
            Verdict(memory_id=memory_id, judgement=judgement, text=text)
            for (judgement, memory_id), text in zip(judged, sent.judged_texts, strict=True)
        ),
        note=sent.note,
        session_id=_name(sent.session_id),
        voice=sent.voice,
    )


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
