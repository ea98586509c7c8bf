"""Messages of a project's learning, parsed and presented."""

from __future__ import annotations

from collections.abc import Sequence

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
    LearningSettings,
    LearningState,
    LoggedEvent,
    Profile,
    SettingsChanged,
    Switched,
    TurnDecision,
    TurnObserved,
)
from hummock.core.learning_requests import (
    EntryState,
    Fork,
    ForkedTurn,
    LearningCommand,
    LearningUpdated,
    ObserveCommand,
    Replayed,
    SettingsChanges,
)
from hummock.rpc import values
from hummock_client.v1 import learning_pb2, learning_service_pb2
from hummock_client.v1 import learning_service_pb2 as pb

_OF_INJECTION = frozenset({"high_above", "mid_above", "mid_cooldown_turns", "low_cooldown_turns"})


def learning_command(request: pb.UpdateLearningSettingsRequest) -> LearningCommand:
    """Parse a change of a project's learning settings. Keywords have no surrounding space and no duplicates."""
    if not (request.HasField("enabled") or request.HasField("settings") or request.keywords):
        raise InvalidRequest("", "one of enabled, settings and keywords is required")
    return LearningCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        enabled=request.enabled if request.HasField("enabled") else None,
        changes=settings_changes(request.settings),
        keywords=tuple(_keywords_set(f"keywords[{place}]", sent) for place, sent in enumerate(request.keywords)),
    )


def observe_command(request: pb.ObserveTurnRequest) -> ObserveCommand:
    """A turn that is over."""
    return ObserveCommand(
        project=values.project_name("project", request.project),
        scope=values.identifier("scope", request.scope),
        turn=request.turn,
        user_text=request.user_text,
        assistant_text=request.assistant_text,
        used_ids=tuple(
            values.identifier(f"used_memory_ids[{place}]", one) for place, one in enumerate(request.used_memory_ids)
        ),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
    )


def settings_changes(sent: learning_pb2.LearningSettings) -> SettingsChanges:
    """The numbers that are set."""
    return SettingsChanges(
        high_above=sent.high_above if sent.HasField("high_above") else None,
        mid_above=sent.mid_above if sent.HasField("mid_above") else None,
        mid_cooldown_turns=sent.mid_cooldown_turns if sent.HasField("mid_cooldown_turns") else None,
        low_cooldown_turns=sent.low_cooldown_turns if sent.HasField("low_cooldown_turns") else None,
        min_similarity=sent.min_similarity if sent.HasField("min_similarity") else None,
        candidates=sent.candidates if sent.HasField("candidates") else None,
        analysis_cooldown_turns=sent.analysis_cooldown_turns if sent.HasField("analysis_cooldown_turns") else None,
        keyword_target=sent.keyword_target if sent.HasField("keyword_target") else None,
        cold_start_pause_s=values.seconds(sent.cold_start_pause) if sent.HasField("cold_start_pause") else None,
    )


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
    used = row.usage
    return learning_pb2.Injection(
        memory_id=row.memory_id,
        usage=learning_pb2.EntryUsage(frequency=used.frequency, last_sent_turn=_known(used.last_sent_turn)),
        probability=row.probability,
        status=learning_pb2.InjectionStatus.ValueType(row.status),
        reason=row.reason,
        forced=row.forced,
    )


def state(learning: LearningState) -> learning_service_pb2.LearningState:
    """The learning state of a whole project, as a message."""
    return learning_service_pb2.LearningState(
        enabled=learning.enabled,
        settings=settings(learning.settings),
        turns=learning.turns,
        missed_turns=learning.missed_turns,
        events=learning.events,
    )


def settings(numbers: LearningSettings) -> learning_pb2.LearningSettings:
    """The numbers of the loop, all of them."""
    return learning_pb2.LearningSettings(
        high_above=numbers.high_above,
        mid_above=numbers.mid_above,
        mid_cooldown_turns=numbers.mid_cooldown_turns,
        low_cooldown_turns=numbers.low_cooldown_turns,
        min_similarity=numbers.min_similarity,
        candidates=numbers.candidates,
        analysis_cooldown_turns=numbers.analysis_cooldown_turns,
        keyword_target=numbers.keyword_target,
        cold_start_pause=values.duration(numbers.cold_start_pause_s),
    )


def profile(learnt: Profile) -> learning_pb2.EntryProfile:
    """Convert what was learnt about an entry."""
    return learning_pb2.EntryProfile(
        keywords=learnt.keywords,
        last_analyzed_turn=_known(learnt.last_analyzed_turn),
        miss_count=learnt.miss_count,
        hints=learnt.hints,
    )


def entry_state(entry: EntryState) -> learning_service_pb2.EntryState:
    """An entry and all that is known of its learning."""
    return learning_service_pb2.EntryState(
        memory_id=entry.memory_id,
        title=entry.title,
        profile=None if entry.profile is None else profile(entry.profile),
        injection=injection(entry.injection),
    )


def update_response(updated: LearningUpdated) -> learning_service_pb2.UpdateLearningSettingsResponse:
    """A project's settings for learning after a change, as a reply."""
    return learning_service_pb2.UpdateLearningSettingsResponse(
        seq=updated.seq,
        state=state(updated.state),
        missed_turns=updated.missed_turns,
        cold_start=updated.cold_start,
        cold_start_skipped=updated.cold_start_skipped,
    )


def replay_response(replayed: Replayed) -> learning_service_pb2.ReplayLearningResponse:
    """The result of a replay, as a reply."""
    return learning_service_pb2.ReplayLearningResponse(
        events=replayed.events,
        digest=replayed.digest,
        replayed_digest=replayed.replayed_digest,
        matches=replayed.matches,
        fork=None if replayed.fork is None else _fork(replayed.fork),
    )


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
            reply.keywords_set.CopyFrom(_entry_keywords(event.memory_id, event.keywords))
        case Switched() as event:
            reply.switched = event.enabled
        case SettingsChanged() as event:
            reply.settings_changed.CopyFrom(settings(event.settings))
        case Forgotten() as event:
            reply.forgotten.CopyFrom(pb.Forgotten(memory_ids=event.memory_ids))
        case FeedbackGiven() as event:
            reply.feedback_given.CopyFrom(_feedback(event))
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


def _fork(fork: Fork) -> learning_service_pb2.Fork:
    return learning_service_pb2.Fork(
        settings=settings(fork.settings),
        turn_count=fork.turn_count,
        injected_count=fork.injected_count,
        forked_injected_count=fork.forked_injected_count,
        differing_count=fork.differing_count,
        differing=map(_forked_turn, fork.differing),
    )


def _forked_turn(turn: ForkedTurn) -> learning_service_pb2.ForkedTurn:
    return learning_service_pb2.ForkedTurn(
        event=turn.event, scope=turn.scope, turn=turn.turn, added_ids=turn.added_ids, removed_ids=turn.removed_ids
    )


def _known(turn: int) -> int | None:
    return None if turn == NEVER else turn


def _entry_keywords(memory_id: str, keywords: tuple[str, ...]) -> pb.EntryKeywords:
    return pb.EntryKeywords(memory_id=memory_id, keywords=keywords)


def _keywords_learned(event: KeywordsLearned) -> pb.KeywordsLearned:
    return pb.KeywordsLearned(
        learner=learning_pb2.Learner.ValueType(event.learner),
        turn=event.turn,
        updates=(_entry_keywords(update.memory_id, update.keywords) for update in event.updates if update.keywords),
        analyzed_ids=event.analyzed_ids,
        hints=(_entry_keywords(update.memory_id, update.hints) for update in event.updates if update.hints),
        rule=event.rule,
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
