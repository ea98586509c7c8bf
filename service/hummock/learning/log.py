"""The learning log: the effect of events, and replays. No function here reads a clock, a text or a model."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from hummock.core.errors import EventDamaged
from hummock.core.learning import (
    MAX_KEYWORDS,
    MAX_VOICES,
    FeedbackCounts,
    FeedbackGiven,
    Forgotten,
    Injected,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    KeywordUpdate,
    LearningChanges,
    LearningEvent,
    LearningSettings,
    LearningState,
    LoggedEvent,
    Profile,
    SettingsChanged,
    Switched,
    TurnObserved,
    Usage,
    Voice,
    forgetting,
)
from hummock.core.learning_requests import Fork, ForkedTurn
from hummock.learning.inject import ScopeUsage, injected_ids
from hummock.ports.learning import LearningReader, LearningRows, LearningUnit, LearningView

MAX_SCOPES: Final = 64
"""Scopes whose usage is kept; that of a thousand entries is some 200 KB."""
_MOST_FOLLOWED: Final = 32
"""Events that are followed; for more the usage is read again."""


def fold(before: LearningView, event: LearningEvent) -> LearningChanges:
    """Return the changes that an event makes to the state before it."""
    was = before.state()
    state = replace(was, events=was.events + 1)
    match event:
        case TurnObserved():
            return _moved(state, before.turn(event.scope), event.scope, event.turn)
        case Injected():
            return counting(was, before.turn(event.scope), partial(before.used, event.scope), event)
        case KeywordsLearned():
            profiles = dict(_learned(before, event))
            return LearningChanges(state=_noting_keywords(before, state, profiles), profiles=profiles)
        case KeywordsSet():
            profile = before.profile(event.memory_id) or Profile()
            # Setting by hand also clears hints: earlier guesses would still find a corrected memory.
            profiles = {event.memory_id: replace(profile, keywords=merged((), event.keywords), hints=())}
            return LearningChanges(state=_noting_keywords(before, state, profiles), profiles=profiles)
        case Switched():
            missed = 0 if event.enabled else state.missed_turns
            return LearningChanges(state=replace(state, enabled=event.enabled, missed_turns=missed))
        case SettingsChanged():
            return LearningChanges(state=replace(state, settings=event.settings))
        case Forgotten():
            return forgetting(was, event.memory_ids, event.scopes)
        case FeedbackGiven():
            return LearningChanges(
                state=replace(state, feedback=_counted(state.feedback, event)), profiles=dict(_said(before, event))
            )


def counting(
    was: LearningState, last_turn: int | None, used: Callable[[str], Usage | None], event: Injected
) -> LearningChanges:
    """Return the changes of a counted prompt, given its scope's newest turn and what gives the usage of a memory."""
    moved = _moved(replace(was, events=was.events + 1), last_turn, event.scope, event.turn)
    return replace(moved, usage={(event.scope, one): usage for one, usage in _used(used, event)})


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


def _said(before: LearningView, event: FeedbackGiven) -> Iterable[tuple[str, Profile]]:
    """Update profiles with this voice's judgements; NOT_HELPFUL only withdraws its earlier one."""
    for verdict in event.verdicts if event.voice else ():
        profile = before.profile(verdict.memory_id) or Profile()
        voices = [voice for voice in profile.voices if voice.speaker != event.voice]
        if verdict.judgement is not Judgement.NOT_HELPFUL:
            voices.append(Voice(speaker=event.voice, text=verdict.text, judgement=verdict.judgement))
        if tuple(voices) != profile.voices:
            yield verdict.memory_id, replace(profile, voices=tuple(voices[-MAX_VOICES:]))


def _moved(state: LearningState, last: int | None, scope: str, turn: int) -> LearningChanges:
    """Set the scope's turn. If it goes back, as when a conversation is resumed earlier, the clock stays."""
    advance = max(0, turn - (last or 0))
    # How many turns passed before a scope's first is unknown.
    missed = 0 if state.enabled else 1 if last is None else advance
    moved = replace(state, turns=state.turns + advance, missed_turns=state.missed_turns + missed)
    return LearningChanges(state=moved, turns={scope: turn})


def _used(before: Callable[[str], Usage | None], event: Injected) -> Iterable[tuple[str, Usage]]:
    referenced = set(event.referenced_ids)
    sent = set(event.injected_ids).difference(event.dropped_ids)
    for memory_id in dict.fromkeys((*event.referenced_ids, *event.injected_ids)):
        usage = before(memory_id) or Usage()
        if memory_id in referenced:
            counts = memory_id not in event.counted_ids
            usage = replace(usage, frequency=usage.frequency + counts, counted_turn=event.turn)
        if memory_id in sent:
            usage = replace(usage, last_sent_turn=event.turn)
        yield memory_id, usage


def _learned(before: LearningView, event: KeywordsLearned) -> Iterable[tuple[str, Profile]]:
    found = {update.memory_id: update for update in event.updates}
    for memory_id in dict.fromkeys((*event.analyzed_ids, *found)):
        profile = before.profile(memory_id) or Profile()
        update = found.get(memory_id) or KeywordUpdate(memory_id=memory_id, keywords=())
        keywords = merged(profile.keywords, update.keywords)
        hints = tuple(hint for hint in merged(profile.hints, update.hints) if hint not in keywords)
        has_new = len(keywords) > len(profile.keywords) or len(hints) > len(profile.hints)
        misses = 0 if has_new else profile.miss_count + 1
        learnt = replace(profile, keywords=keywords, last_analyzed_turn=event.turn, miss_count=misses, hints=hints)
        yield memory_id, learnt


def _noting_keywords(before: LearningView, state: LearningState, profiles: dict[str, Profile]) -> LearningState:
    is_new = any(one.keywords != (before.profile(id_) or Profile()).keywords for id_, one in profiles.items())
    return replace(state, keywords_event=state.events) if is_new else state


def record(learning: LearningUnit, event: LearningEvent, time: float | None = None) -> None:
    """Log an event and store its changes; `time` is when it happened, in Unix seconds, None for now."""
    learning.append(event, fold(learning, event), time)


class KeptUsage:
    """How scopes used memories, kept from turn to turn: a later turn reads the events since.

    Safe to call from several threads.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], tuple[int, ScopeUsage]] = OrderedDict()
        self._lock = Lock()

    def of(self, learning: LearningReader, scope: str) -> ScopeUsage:
        """All that the scope has used."""
        number, events = learning.version()
        with self._lock:
            known = self._kept.pop((number, scope), None)
        usage = None if known is None else _followed(*known, learning, events, scope)
        if usage is None:
            usage = ScopeUsage.of(learning.usage(scope))
        with self._lock:
            self._kept[number, scope] = events, usage
            if len(self._kept) > MAX_SCOPES:
                self._kept.popitem(last=False)
        return usage


def _followed(after: int, before: ScopeUsage, learning: LearningReader, last: int, scope: str) -> ScopeUsage | None:
    """The usage after the events up to number `last`; None if they do not tell, or if they are many."""
    if after == last:
        return before
    logged = learning.events(after, last - after) if after < last <= after + _MOST_FOLLOWED else []
    if len(logged) != last - after or any(isinstance(one.event, Forgotten) for one in logged):
        return None
    changed: dict[str, Usage] = {}
    for event in (one.event for one in logged):
        if isinstance(event, Injected) and event.scope == scope:
            changed.update(_used(lambda one: changed.get(one) or before.by_id.get(one), event))
    return before.after(changed)


class Rebuilt:
    """The learning after some events; at first after none. It keeps no log."""

    def __init__(self) -> None:
        self._state = LearningState()
        self._turns: dict[str, int] = {}
        self._usage: dict[str, dict[str, Usage]] = {}
        self._profiles: dict[str, Profile] = {}

    def apply(self, event: LearningEvent) -> None:
        """One event more."""
        changes = fold(self, event)
        self._state = changes.state
        self._turns.update(changes.turns)
        for (scope, memory_id), usage in changes.usage.items():
            self._usage.setdefault(scope, {})[memory_id] = usage
        self._profiles.update(changes.profiles)
        for memory_id in changes.forgotten:
            self._profiles.pop(memory_id, None)
            for used in self._usage.values():
                used.pop(memory_id, None)
        for scope in changes.forgotten_scopes:
            self._turns.pop(scope, None)
            self._usage.pop(scope, None)

    def state(self) -> LearningState:
        """What concerns the whole project."""
        return self._state

    def turn(self, scope: str) -> int | None:
        """The scope's newest turn; None for one that has had none."""
        return self._turns.get(scope)

    def used(self, scope: str, memory_id: str) -> Usage | None:
        """Return the scope's usage of a memory; None if it never used it."""
        return self._usage.get(scope, {}).get(memory_id)

    def profile(self, memory_id: str) -> Profile | None:
        """Return the profile of a memory; None if it was never analysed and has no keywords."""
        return self._profiles.get(memory_id)

    def scope(self, scope: str) -> Mapping[str, Usage]:
        """All that the scope has used, by memory id, in no particular order; it follows further events."""
        return self._usage.get(scope, {})

    def usage(self, scope: str) -> dict[str, Usage]:
        """Return the scope's usage by memory id, ordered by UTF-8 bytes."""
        return dict(sorted(self.scope(scope).items()))

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        """All profiles with their memory ids, in the order of their UTF-8 bytes."""
        return iter(sorted(self._profiles.items()))

    def scopes(self) -> Iterator[tuple[str, int]]:
        """All scopes that have had a turn, with their newest."""
        return iter(self._turns.items())


def digest(learning: LearningRows) -> str:
    """Hash the project's state, its scopes with turns and usage, and its profiles (SHA-256 in hexadecimal).

    It depends only on these values, not on the order of events or on the store.
    """
    hashed = sha256()
    for row in _rows(learning):
        hashed.update(json.dumps(row).encode())
        hashed.update(b"\n")
    return hashed.hexdigest()


def _rows(learning: LearningRows) -> Iterator[tuple[object, ...]]:
    parts = astuple(learning.state())
    yield ("state", *(astuple(part) if isinstance(part, Struct) else part for part in parts))
    for scope, turn in sorted(learning.scopes()):
        yield ("scope", scope, turn)
        for memory_id, usage in learning.usage(scope).items():
            yield ("usage", memory_id, usage.frequency, usage.last_sent_turn)
    for memory_id, profile in learning.profiles():
        row = ("profile", memory_id, profile.keywords, profile.last_analyzed_turn, profile.miss_count)
        if profile.voices:
            yield (*row, profile.hints, tuple(astuple(voice) for voice in profile.voices))
        else:
            # Without hints it is the row of before there were any, so that digests of before stay.
            yield (*row, profile.hints) if profile.hints else row


def without_gaps(events: Sequence[LoggedEvent], after: int, last: int) -> Iterator[LoggedEvent]:
    """Yield the events after number `after` up to number `last`. Raises: EventDamaged: one is missing."""
    found = iter(events)
    for number in range(after + 1, last + 1):
        logged = next(found, None)
        if logged is None or logged.number != number:
            raise EventDamaged(number)
        yield logged


MOST_DIFFERING: Final = 1000
"""Turns that a fork lists."""


class ForkedHistory:
    """Replays a log with other settings from the beginning and compares the injections.

    Texts and references stay the same. Entries that had no room then have none in the fork; all others are assumed to
    have had room.
    """

    def __init__(self, changed: Callable[[LearningSettings], LearningSettings]) -> None:
        """`changed` returns the fork's settings for the settings in use at a time."""
        self._changed = changed
        self._rebuilt = Rebuilt()
        self._turn_count = self._injected_count = self._forked_count = self._differing_count = 0
        self._differing: list[ForkedTurn] = []

    def apply(self, logged: LoggedEvent) -> None:
        """Apply the next event. Raises: errors of the fork's settings if they do not fit those of the time."""
        event = logged.event
        if isinstance(event, Injected) and self._rebuilt.state().enabled:
            event = self._decided_anew(logged.number, event)
        self._rebuilt.apply(event)

    def report(self) -> Fork:
        """Return the comparison so far."""
        return Fork(
            settings=self._changed(self._rebuilt.state().settings),
            turn_count=self._turn_count,
            injected_count=self._injected_count,
            forked_injected_count=self._forked_count,
            differing_count=self._differing_count,
            differing=tuple(self._differing),
        )

    def _decided_anew(self, number: int, event: Injected) -> Injected:
        settings = self._changed(self._rebuilt.state().settings)
        used = ScopeUsage.of(self._rebuilt.scope(event.scope))
        injected = injected_ids(used, event.referenced_ids, event.turn, settings)
        self._note(number, event, injected)
        chosen = set(injected)
        dropped = tuple(memory_id for memory_id in event.dropped_ids if memory_id in chosen)
        return replace(event, injected_ids=injected, dropped_ids=dropped)

    def _note(self, number: int, event: Injected, injected: tuple[str, ...]) -> None:
        self._turn_count += 1
        self._injected_count += len(event.injected_ids)
        self._forked_count += len(injected)
        added = tuple(sorted(set(injected).difference(event.injected_ids)))
        removed = tuple(sorted(set(event.injected_ids).difference(injected)))
        if not added and not removed:
            return
        self._differing_count += 1
        if len(self._differing) < MOST_DIFFERING:
            self._differing.append(
                ForkedTurn(event=number, scope=event.scope, turn=event.turn, added_ids=added, removed_ids=removed)
            )
