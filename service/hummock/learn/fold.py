"""What an event changes: the one place that knows. Nothing here reads a clock, a text or a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from hummock.core.learning import (
    MAX_KEYWORDS,
    FeedbackCounts,
    LearningChanges,
    LearningState,
    Profile,
    Usage,
    forgetting,
)
from hummock.core.learning_events import (
    FeedbackGiven,
    Forgotten,
    Injected,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    LearningEvent,
    SettingsChanged,
    Switched,
    TurnObserved,
)
from hummock.ports.learning import LearningView


def fold(before: LearningView, event: LearningEvent) -> LearningChanges:
    """What the event makes of the learning as it was before it."""
    state = replace(before.state(), events=before.state().events + 1)
    match event:
        case TurnObserved():
            return _moved(before, state, event.scope, event.turn)
        case Injected():
            return replace(
                _moved(before, state, event.scope, event.turn),
                usage={(event.scope, memory_id): used for memory_id, used in _used(before, event)},
            )
        case KeywordsLearned():
            profiles = dict(_learned(before, event))
            return LearningChanges(state=_noting_keywords(before, state, profiles), profiles=profiles)
        case KeywordsSet():
            profile = before.profile(event.memory_id) or Profile()
            profiles = {event.memory_id: replace(profile, keywords=merged((), event.keywords))}
            return LearningChanges(state=_noting_keywords(before, state, profiles), profiles=profiles)
        case Switched():
            return LearningChanges(state=_switched(state, enabled=event.enabled))
        case SettingsChanged():
            return LearningChanges(state=replace(state, settings=event.settings))
        case Forgotten():
            return forgetting(before.state(), event.memory_ids)
        case FeedbackGiven():
            return LearningChanges(state=replace(state, feedback=_counted(state.feedback, event)))


def merged(known: tuple[str, ...], found: Iterable[str]) -> tuple[str, ...]:
    """The keywords of both, each once, the known ones first; at most MAX_KEYWORDS, but never fewer than known."""
    together = tuple(dict.fromkeys((*known, *found)))
    return together[: max(MAX_KEYWORDS, len(known))]


def _counted(counts: FeedbackCounts, event: FeedbackGiven) -> FeedbackCounts:
    said = Counter(verdict.judgement for verdict in event.verdicts)
    return FeedbackCounts(
        helpful=counts.helpful + said[Judgement.HELPFUL],
        not_helpful=counts.not_helpful + said[Judgement.NOT_HELPFUL],
        wrong=counts.wrong + said[Judgement.WRONG],
    )


def _moved(before: LearningView, state: LearningState, scope: str, turn: int) -> LearningChanges:
    """The scope is at a turn. Where it goes back, as when a conversation is taken up earlier, the clock stays."""
    last = before.turn(scope)
    advance = max(0, turn - (last or 0))
    missed = 0 if state.enabled else _missed(last, turn)
    return LearningChanges(
        state=replace(state, turns=state.turns + advance, missed_turns=state.missed_turns + missed),
        turns={scope: turn},
    )


def _missed(last: int | None, turn: int) -> int:
    """Turns that went by; of those before a scope's first nothing is known."""
    return 1 if last is None else max(0, turn - last)


def _used(before: LearningView, event: Injected) -> Iterable[tuple[str, Usage]]:
    referenced = set(event.referenced_ids)
    sent = set(event.injected_ids).difference(event.dropped_ids)
    for memory_id in dict.fromkeys((*event.referenced_ids, *event.injected_ids)):
        usage = before.used(event.scope, memory_id) or Usage()
        if memory_id in referenced:
            usage = replace(usage, frequency=usage.frequency + 1)
        if memory_id in sent:
            usage = replace(usage, last_sent_turn=event.turn)
        yield memory_id, usage


def _learned(before: LearningView, event: KeywordsLearned) -> Iterable[tuple[str, Profile]]:
    found = {update.memory_id: update.keywords for update in event.updates}
    for memory_id in dict.fromkeys((*event.analyzed_ids, *found)):
        profile = before.profile(memory_id) or Profile()
        keywords = merged(profile.keywords, found.get(memory_id, ()))
        has_new = len(keywords) > len(profile.keywords)
        yield (
            memory_id,
            Profile(
                keywords=keywords,
                last_analyzed_turn=event.turn,
                miss_count=0 if has_new else profile.miss_count + 1,
            ),
        )


def _noting_keywords(before: LearningView, state: LearningState, profiles: dict[str, Profile]) -> LearningState:
    for memory_id, profile in profiles.items():
        if profile.keywords != (before.profile(memory_id) or Profile()).keywords:
            return replace(state, keywords_event=state.events)
    return state


def _switched(state: LearningState, *, enabled: bool) -> LearningState:
    return replace(state, enabled=enabled, missed_turns=0 if enabled else state.missed_turns)
