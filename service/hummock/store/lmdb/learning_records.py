"""Learning as it lies in the store: records like those of `codec.py`, converted field by field.

An event is stored with its time and, as the first element of its own record, a number that says what it is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hummock.core.learning import (
    NEVER,
    FeedbackGiven,
    Forgotten,
    Injected,
    KeywordsLearned,
    KeywordsSet,
    LearningEvent,
    LearningState,
    LoggedEvent,
    Profile,
    SettingsChanged,
    Switched,
    TurnObserved,
    Usage,
)


class SettingsRecord(msgspec.Struct, array_like=True, frozen=True):
    """LearningSettings."""

    high_above: int
    mid_above: int
    mid_cooldown_turns: int
    low_cooldown_turns: int
    min_similarity: float
    candidates: int
    analysis_cooldown_turns: int
    keyword_target: int
    cold_start_pause_s: float


class FeedbackCountsRecord(msgspec.Struct, array_like=True, frozen=True):
    """FeedbackCounts."""

    helpful: int = 0
    not_helpful: int = 0
    wrong: int = 0


class LearningStateRecord(msgspec.Struct, array_like=True, frozen=True):
    """LearningState."""

    enabled: bool
    settings: SettingsRecord
    turns: int
    missed_turns: int
    events: int
    keywords_event: int
    feedback: FeedbackCountsRecord = FeedbackCountsRecord()


class TurnRecord(msgspec.Struct, array_like=True, frozen=True):
    """A scope's newest turn; the scope stands in the key."""

    turn: int


class UsageRecord(msgspec.Struct, array_like=True, frozen=True):
    """Usage."""

    frequency: int = 0
    last_sent_turn: int = NEVER


class ProfileRecord(msgspec.Struct, array_like=True, frozen=True):
    """Profile."""

    keywords: tuple[str, ...] = ()
    last_analyzed_turn: int = NEVER
    miss_count: int = 0


class TurnObservedRecord(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """TurnObserved."""

    scope: str
    turn: int
    user_text: str
    assistant_hash: bytes
    used_ids: tuple[str, ...]


class UpdateRecord(msgspec.Struct, array_like=True, frozen=True):
    """KeywordUpdate."""

    memory_id: str
    keywords: tuple[str, ...]


class KeywordsLearnedRecord(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """KeywordsLearned."""

    learner: int
    turn: int
    updates: tuple[UpdateRecord, ...]
    analyzed_ids: tuple[str, ...]


class InjectedRecord(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """Injected."""

    scope: str
    turn: int
    request_id: str
    referenced_ids: tuple[str, ...]
    injected_ids: tuple[str, ...]
    dropped_ids: tuple[str, ...]


class KeywordsSetRecord(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """KeywordsSet."""

    memory_id: str
    keywords: tuple[str, ...]


class SwitchedRecord(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """Switched."""

    enabled: bool


class SettingsChangedRecord(msgspec.Struct, array_like=True, frozen=True, tag=6):
    """SettingsChanged."""

    settings: SettingsRecord


class ForgottenRecord(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """Forgotten."""

    memory_ids: tuple[str, ...]


class VerdictRecord(msgspec.Struct, array_like=True, frozen=True):
    """Verdict."""

    memory_id: str
    judgement: int


class FeedbackGivenRecord(msgspec.Struct, array_like=True, frozen=True, tag=8):
    """FeedbackGiven."""

    query_text: str
    verdicts: tuple[VerdictRecord, ...]
    note: str = ""
    session_id: str = ""


EventRecord = (
    TurnObservedRecord
    | KeywordsLearnedRecord
    | InjectedRecord
    | KeywordsSetRecord
    | SwitchedRecord
    | SettingsChangedRecord
    | ForgottenRecord
    | FeedbackGivenRecord
)

_RECORDS: Final[dict[type[LearningEvent], type[EventRecord]]] = {
    TurnObserved: TurnObservedRecord,
    KeywordsLearned: KeywordsLearnedRecord,
    Injected: InjectedRecord,
    KeywordsSet: KeywordsSetRecord,
    Switched: SwitchedRecord,
    SettingsChanged: SettingsChangedRecord,
    Forgotten: ForgottenRecord,
    FeedbackGiven: FeedbackGivenRecord,
}
_EVENTS: Final[dict[type[EventRecord], type[LearningEvent]]] = {record: event for event, record in _RECORDS.items()}


class LoggedRecord(msgspec.Struct, array_like=True, frozen=True):
    """An event and its time in Unix seconds; its number stands in the key."""

    time: float
    event: EventRecord


_encode = msgspec.msgpack.Encoder().encode
_decode_logged = msgspec.msgpack.Decoder(LoggedRecord).decode
_decode_state = msgspec.msgpack.Decoder(LearningStateRecord).decode
_decode_turn = msgspec.msgpack.Decoder(TurnRecord).decode
_decode_usage = msgspec.msgpack.Decoder(UsageRecord).decode
_decode_profile = msgspec.msgpack.Decoder(ProfileRecord).decode


def encode_event(time: float, event: LearningEvent) -> bytes:
    """An event that happened at this time."""
    record = msgspec.convert(event, _RECORDS[type(event)], from_attributes=True)
    return _encode(LoggedRecord(time, record))


def decode_event(number: int, value: bytes) -> LoggedEvent:
    """Inverse of `encode_event`."""
    record = _decode_logged(value)
    event = msgspec.convert(record.event, _EVENTS[type(record.event)], from_attributes=True)
    return LoggedEvent(number=number, time=record.time, event=event)


def encode_state(state: LearningState) -> bytes:
    """What concerns a whole project."""
    return _encode(msgspec.convert(state, LearningStateRecord, from_attributes=True))


def decode_state(value: bytes) -> LearningState:
    """Inverse of `encode_state`."""
    return msgspec.convert(_decode_state(value), LearningState, from_attributes=True)


def encode_turn(turn: int) -> bytes:
    """A scope's newest turn."""
    return _encode(TurnRecord(turn))


def decode_turn(value: bytes) -> int:
    """Inverse of `encode_turn`."""
    return _decode_turn(value).turn


def encode_usage(usage: Usage) -> bytes:
    """A memory's usage in a scope."""
    return _encode(UsageRecord(usage.frequency, usage.last_sent_turn))


def decode_usage(value: bytes) -> Usage:
    """Inverse of `encode_usage`."""
    record = _decode_usage(value)
    return Usage(frequency=record.frequency, last_sent_turn=record.last_sent_turn)


def encode_profile(profile: Profile) -> bytes:
    """What was learnt of a memory."""
    return _encode(ProfileRecord(profile.keywords, profile.last_analyzed_turn, profile.miss_count))


def decode_profile(value: bytes) -> Profile:
    """Inverse of `encode_profile`."""
    record = _decode_profile(value)
    return Profile(keywords=record.keywords, last_analyzed_turn=record.last_analyzed_turn, miss_count=record.miss_count)
