"""Replies that list the learning log."""

from __future__ import annotations

from hummock.core.learning_events import (
    FeedbackGiven,
    Forgotten,
    Injected,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    LoggedEvent,
    SettingsChanged,
    Switched,
    TurnObserved,
)
from hummock.rpc.present import learning as present_learning
from hummock.rpc.present import values
from hummock.v1 import learning_pb2
from hummock.v1 import learning_service_pb2 as pb


def logged_event(logged: LoggedEvent) -> pb.LearningEvent:
    """An event of the log."""
    reply = pb.LearningEvent(number=logged.number, event_time=values.timestamp(logged.time))
    match logged.event:
        case TurnObserved() as event:
            reply.turn_observed.CopyFrom(
                pb.TurnObserved(scope=event.scope, turn=event.turn, user_text=event.user_text, used_ids=event.used_ids)
            )
        case KeywordsLearned() as event:
            reply.keywords_learned.CopyFrom(_keywords_learned(event))
        case Injected() as event:
            reply.injected.CopyFrom(_injected(event))
        case KeywordsSet() as event:
            reply.keywords_set.CopyFrom(_keywords(event.memory_id, event.keywords))
        case Switched() as event:
            reply.switched = event.enabled
        case SettingsChanged() as event:
            reply.settings_changed.CopyFrom(present_learning.settings(event.settings))
        case Forgotten() as event:
            reply.forgotten.CopyFrom(pb.Forgotten(memory_ids=event.memory_ids))
        case FeedbackGiven() as event:
            reply.feedback_given.CopyFrom(_feedback(event))
    return reply


def _keywords(memory_id: str, keywords: tuple[str, ...]) -> pb.EntryKeywords:
    return pb.EntryKeywords(memory_id=memory_id, keywords=keywords)


def _keywords_learned(event: KeywordsLearned) -> pb.KeywordsLearned:
    return pb.KeywordsLearned(
        learner=learning_pb2.Learner.ValueType(event.learner),
        turn=event.turn,
        updates=(_keywords(update.memory_id, update.keywords) for update in event.updates),
        analyzed_ids=event.analyzed_ids,
    )


def _injected(event: Injected) -> pb.Injected:
    return pb.Injected(
        scope=event.scope,
        turn=event.turn,
        request_id=event.request_id,
        referenced_ids=event.referenced_ids,
        injected_ids=event.injected_ids,
        dropped_ids=event.dropped_ids,
    )


def _feedback(event: FeedbackGiven) -> pb.FeedbackGiven:
    return pb.FeedbackGiven(
        query_text=event.query_text,
        useful_ids=_judged(event, Judgement.HELPFUL),
        useless_ids=_judged(event, Judgement.NOT_HELPFUL),
        wrong_ids=_judged(event, Judgement.WRONG),
        note=event.note,
        session_id=event.session_id,
    )


def _judged(event: FeedbackGiven, judgement: Judgement) -> list[str]:
    return [one.memory_id for one in event.verdicts if one.judgement is judgement]
