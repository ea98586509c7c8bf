"""Messages of a project's learning, parsed and presented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hummock.core.errors import InvalidRequest
from hummock.core.learning import (
    NEVER,
    FeedbackGiven,
    Forgotten,
    Injected,
    Injection,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    LoggedEvent,
    SettingsChanged,
    Switched,
    TurnDecision,
    TurnObserved,
)
from hummock.core.learning_requests import EntryState, LearningCommand, ObserveCommand, SettingsChanges
from hummock.rpc import values
from hummock.rpc.conversion import message_of, value_of
from hummock_client.v1 import learning_pb2
from hummock_client.v1 import learning_service_pb2 as pb

_OF_INJECTION = frozenset({"high_above", "mid_above", "mid_cooldown_turns", "low_cooldown_turns"})
_REPLIES_OMIT: Final[Mapping[type, tuple[str, ...]]] = {
    TurnObserved: ("assistant_hash",),
    Injected: ("counted_ids",),
    Forgotten: ("scopes",),
    FeedbackGiven: ("voice", "judged_texts"),
}
"""Fields of events that only an export has."""

JUDGED: Final = {"useful_ids": Judgement.HELPFUL, "useless_ids": Judgement.NOT_HELPFUL, "wrong_ids": Judgement.WRONG}
"""The judgement on the memories of each list of a FeedbackGiven, in the order of its judged_texts."""


def learning_command(request: pb.UpdateLearningSettingsRequest) -> LearningCommand:
    """Parse a change of a project's learning settings. Keywords have no surrounding space and no duplicates."""
    if not (request.HasField("enabled") or request.HasField("settings") or request.keywords):
        raise InvalidRequest("", "one of enabled, settings and keywords is required")
    return LearningCommand(
        **values.write(request),
        enabled=request.enabled if request.HasField("enabled") else None,
        changes=settings_changes(request.settings),
        keywords=tuple(_keywords_set(f"keywords[{place}]", sent) for place, sent in enumerate(request.keywords)),
    )


def observe_command(request: pb.ObserveTurnRequest) -> ObserveCommand:
    """A turn that is over."""
    return value_of(
        ObserveCommand,
        request,
        **values.write(request),
        scope=values.identifier("scope", request.scope),
        used_ids=values.identifiers("used_memory_ids", request.used_memory_ids),
    )


def settings_changes(sent: learning_pb2.LearningSettings) -> SettingsChanges:
    """The numbers that are set."""
    return value_of(SettingsChanges, sent)


def fork_of(request: pb.ReplayLearningRequest) -> SettingsChanges | None:
    """The numbers of the fork that is asked for; None when none is."""
    if not request.HasField("fork"):
        return None
    for field, _ in request.fork.ListFields():
        if field.name not in _OF_INJECTION:
            raise InvalidRequest(f"fork.{field.name}", "decides nothing about what is injected; leave it out")
    return settings_changes(request.fork)


def decision_values(decision: TurnDecision) -> tuple[object, ...]:
    """The decisions on a turn, as the values of their message."""
    rows = [
        (
            row.memory_id,
            (row.usage.frequency, None if row.usage.last_sent_turn == NEVER else row.usage.last_sent_turn),
            row.probability,
            row.status,
            row.reason,
            row.forced,
        )
        for row in decision.injections
    ]
    return decision.enabled, rows, decision.dropped_count


def injection(row: Injection) -> learning_pb2.Injection:
    """A row of the injection table."""
    last = _known(row.usage.last_sent_turn)
    return message_of(
        learning_pb2.Injection, row, usage=message_of(learning_pb2.EntryUsage, row.usage, last_sent_turn=last)
    )


def entry_state(entry: EntryState) -> pb.EntryState:
    """An entry and all that is known of its learning."""
    learnt = entry.profile and message_of(
        learning_pb2.EntryProfile, entry.profile, last_analyzed_turn=_known(entry.profile.last_analyzed_turn)
    )
    return message_of(pb.EntryState, entry, profile=learnt, injection=injection(entry.injection))


def logged_event(logged: LoggedEvent, *, is_whole: bool = False) -> pb.LearningEvent:
    """An event of the log, with all of its fields or those of replies."""
    reply = pb.LearningEvent(number=logged.number, event_time=values.timestamp(logged.time))
    match logged.event:
        case TurnObserved() as event:
            reply.turn_observed.CopyFrom(message_of(pb.TurnObserved, event))
        case KeywordsLearned() as event:
            reply.keywords_learned.CopyFrom(_keywords_learned(event))
        case Injected() as event:
            reply.injected.CopyFrom(message_of(pb.Injected, event))
        case KeywordsSet() as event:
            reply.keywords_set.CopyFrom(message_of(pb.EntryKeywords, event))
        case Switched() as event:
            reply.switched = event.enabled
        case SettingsChanged() as event:
            reply.settings_changed.CopyFrom(message_of(learning_pb2.LearningSettings, event.settings))
        case Forgotten() as event:
            reply.forgotten.CopyFrom(message_of(pb.Forgotten, event))
        case FeedbackGiven() as event:
            reply.feedback_given.CopyFrom(_feedback(event))
    for name in () if is_whole else _REPLIES_OMIT.get(type(logged.event), ()):
        getattr(reply, str(reply.WhichOneof("event"))).ClearField(name)
    return reply


def _keywords_set(field: str, sent: pb.EntryKeywords) -> KeywordsSet:
    return KeywordsSet(
        memory_id=values.identifier(f"{field}.memory_id", sent.memory_id),
        keywords=_keywords(f"{field}.keywords", sent.keywords),
    )


def _keywords(field: str, sent: Sequence[str]) -> tuple[str, ...]:
    keywords: dict[str, None] = {}
    for place, keyword in enumerate(sent):
        stripped = values.identifier(f"{field}[{place}]", keyword.strip())
        if not stripped:
            raise InvalidRequest(f"{field}[{place}]", "is blank")
        keywords[stripped] = None
    return tuple(keywords)


def _known(turn: int) -> int | None:
    return None if turn == NEVER else turn


def _keywords_learned(event: KeywordsLearned) -> pb.KeywordsLearned:
    return message_of(
        pb.KeywordsLearned,
        event,
        updates=[update for update in event.updates if update.keywords],
        hints=[
            pb.EntryKeywords(memory_id=update.memory_id, keywords=update.hints)
            for update in event.updates
            if update.hints
        ],
    )


def _feedback(event: FeedbackGiven) -> pb.FeedbackGiven:
    judged = {
        name: [verdict for verdict in event.verdicts if verdict.judgement is judgement]
        for name, judgement in JUDGED.items()
    }
    return message_of(
        pb.FeedbackGiven,
        event,
        **{name: [verdict.memory_id for verdict in verdicts] for name, verdicts in judged.items()},
        judged_texts=[verdict.text for verdicts in judged.values() for verdict in verdicts],
    )
