"""Replies that say what a project has learnt, and what is decided from it."""

from __future__ import annotations

from hummock.core.learning import (
    NEVER,
    Injection,
    LearningSettings,
    LearningState,
    Profile,
    TurnDecision,
    Usage,
)
from hummock.core.learning_queries import EntryState, Fork, ForkedTurn, LearningUpdated, Replayed
from hummock.rpc.present import values
from hummock.v1 import learning_pb2, learning_service_pb2


def turn_decision(decision: TurnDecision) -> learning_pb2.TurnDecision:
    """What was decided for a turn."""
    return learning_pb2.TurnDecision(enabled=decision.enabled, injections=map(injection, decision.injections))


def injection(row: Injection) -> learning_pb2.Injection:
    """A row of the injection table."""
    return learning_pb2.Injection(
        memory_id=row.memory_id,
        usage=_usage(row.usage),
        probability=row.probability,
        status=learning_pb2.InjectionStatus.ValueType(row.status),
        reason=row.reason,
        forced=row.forced,
    )


def state(learning: LearningState) -> learning_service_pb2.LearningState:
    """What concerns a whole project."""
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
    """What was learnt of an entry."""
    return learning_pb2.EntryProfile(
        keywords=learnt.keywords,
        last_analyzed_turn=_known(learnt.last_analyzed_turn),
        miss_count=learnt.miss_count,
    )


def entry_state(entry: EntryState) -> learning_service_pb2.EntryState:
    """An entry and all that is known of its learning."""
    return learning_service_pb2.EntryState(
        memory_id=entry.memory_id,
        title=entry.title,
        profile=None if entry.profile is None else profile(entry.profile),
        injection=injection(entry.injection),
    )


def update_response(updated: LearningUpdated) -> learning_service_pb2.LearningServiceUpdateSettingsResponse:
    """How a project learns after a change."""
    return learning_service_pb2.LearningServiceUpdateSettingsResponse(
        seq=updated.seq,
        state=state(updated.state),
        missed_turns=updated.missed_turns,
        cold_start=updated.cold_start,
    )


def replay_response(replayed: Replayed) -> learning_service_pb2.LearningServiceReplayResponse:
    """What a replay came to."""
    return learning_service_pb2.LearningServiceReplayResponse(
        events=replayed.events,
        digest=replayed.digest,
        replayed_digest=replayed.replayed_digest,
        matches=replayed.matches,
        fork=None if replayed.fork is None else _fork(replayed.fork),
    )


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
        event=turn.event,
        scope=turn.scope,
        turn=turn.turn,
        added_ids=turn.added_ids,
        removed_ids=turn.removed_ids,
    )


def _usage(usage: Usage) -> learning_pb2.EntryUsage:
    return learning_pb2.EntryUsage(frequency=usage.frequency, last_sent_turn=_known(usage.last_sent_turn))


def _known(turn: int) -> int | None:
    return None if turn == NEVER else turn
